"""What slides: windows along the lines of an image, told by the indices of their data.

A block is such a window if it folds over elements of windows only, and its data are contiguous
along the last dimension of the result, where the window slides too:

    Y[n, c, h, w] += X[n, c, 2·h + r, 2·w + s] · W[c, r, s]
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tilewright.schedule.recipes.elementwise import has_border
from tilewright.schedule.schedule import Schedule
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import folding, is_in_order, loads_of
from tilewright.tensor.terms import terms
from tilewright.tensor.visit import free_vars

__all__ = ["Lines", "Slide", "puts_border", "runs_along_lines"]

REDUCE = tir.IterKind.REDUCE


@dataclass(frozen=True)
class Slide:
    """How windows move along one dimension: their step, and where their elements lie."""

    step: int
    walks: tuple[tir.Var, ...]
    offsets: tuple[int, ...]

    @classmethod
    def of(cls, index: tir.Expr, place: tir.Var, extents: dict[tir.Var, int]) -> Slide | None:
        """What an index says about it; None if it is no sum of a place and elements of a window."""
        step, walks, offsets = 0, list[tir.Var](), {0}
        for factor, part in terms(index):
            if isinstance(part, tir.Const):
                offsets = {at + factor * int(part.value) for at in offsets}
            elif part is place:
                step += factor
            elif isinstance(part, tir.Var) and part in extents and factor > 0:
                walks.append(part)
                offsets = {at + factor * k for at in offsets for k in range(extents[part])}
            else:
                return None
        return cls(step, tuple(walks), tuple(sorted(offsets))) if step > 0 else None

    @property
    def overlaps(self) -> bool:
        """Whether neighbours read some places together."""
        return self.reach(1) > self.step

    def reach(self, places: int) -> int:
        """How many places, from the first to the last that so many neighbours read."""
        return (places - 1) * self.step + self.offsets[-1] - self.offsets[0] + 1


@dataclass(frozen=True)
class Lines:
    """A window along lines: its data, and how it slides along a line and across lines.

    `places` are the iterators of the result, the last of them along a line of `width`, the one
    before over `height` lines; `extents` are those of the window.
    """

    data: tir.Load
    places: tuple[tir.Var, ...]
    height: int
    width: int
    along: Slide
    across: Slide | None
    extents: dict[tir.Var, int]

    @classmethod
    def of(cls, node: tir.Block) -> Lines | None:
        """None if the block is something else, or of unknown size (the batch may be unknown)."""
        store, places = node.body, [it for it in node.iters if it.kind is not REDUCE]
        sizes = {it.var: tir.int_value(it.extent) for it in node.iters if it.kind is REDUCE}
        known = [*sizes.values(), *(tir.int_value(it.extent) for it in places[1:])]
        if not isinstance(store, tir.Store) or folding(node) is None or node.init is None:
            return None
        if len(places) < 3 or not sizes or None in known or node.predicate != tir.TRUE:
            return None
        if store.indices != tuple(it.var for it in places):
            return None
        row, line = places[-2].var, places[-1].var
        extents = {var: size or 1 for var, size in sizes.items()}
        moving = [n for n in loads_of(node) if any(line in free_vars(i) for i in n.indices)]
        others = [n for n in loads_of(node) if n not in moving]
        if len(moving) != 1 or not _is_window(node, moving[0], extents):
            return None
        (data,) = moving
        along = Slide.of(data.indices[-1], line, extents)
        if along is None or any(line in free_vars(i) for i in data.indices[:-1]):
            return None
        if not others and along.step == 1 and not along.walks:
            return None  # nothing tells the places of a line from channels
        fixed = any(row in free_vars(i) for n in others for i in n.indices)
        rows = [Slide.of(i, row, extents) for i in data.indices[:-1] if row in free_vars(i)]
        across = rows[0] if len(rows) == 1 and not fixed else None
        height, width = (tir.int_value(it.extent) or 1 for it in places[-2:])
        order = tuple(it.var for it in places)
        return cls(data, order, height, width, along, across, extents)

    @property
    def row_dimension(self) -> int:
        """The dimension of the data that lines follow each other in."""
        row = self.places[-2]
        return next(d for d, index in enumerate(self.data.indices) if row in free_vars(index))

    @property
    def taps(self) -> int:
        """Elements of a window."""
        return prod(self.extents.values())

    @property
    def depth(self) -> int:
        """The first dimension of the result, in front of lines, along which windows overlap."""
        walks = self.extents.keys()
        mixed = [free_vars(i) for i in self.data.indices if free_vars(i) & walks]
        return next(
            (d for d, place in enumerate(self.places[:-2]) if any(place in i for i in mixed)),
            len(self.places) - 2,
        )

    @property
    def pictures(self) -> int:
        """How many pictures a window is deep."""
        flat = (*self.along.walks, *(self.across.walks if self.across is not None else ()))
        return prod(size for var, size in self.extents.items() if var not in flat)


def _is_window(node: tir.Block, data: tir.Load, extents: dict[tir.Var, int]) -> bool:
    """Whether every element of the result has data of its own, and every sum runs over a window."""
    sliding = set[tir.Var]()
    for index in data.indices:
        places = free_vars(index) - extents.keys()
        slide = Slide.of(index, next(iter(places)), extents) if len(places) == 1 else None
        sliding.update(() if slide is None else slide.walks)
    several = {it.var for it in node.iters if tir.int_value(it.extent) != 1}
    used = set().union(*map(free_vars, data.indices))
    return sliding == extents.keys() and several <= used


def runs_along_lines(schedule: Schedule, block: str, epilogue: str | None = None) -> bool:
    """Whether a block is a window along lines, and what follows it reads it in order."""
    node = schedule.block(block)
    if Lines.of(node) is None:
        return False
    if epilogue is None:
        return True
    reader, buffer = schedule.block(epilogue), node.writes[0].buffer
    own = [load for load in loads_of(reader) if load.buffer is buffer]
    return all(is_in_order(load.indices, reader.iters) for load in own)


def puts_border(window: tir.Block, border: tir.Block) -> bool:
    """Whether a block makes the data of such a window by putting a border around them."""
    lines, store = Lines.of(window), border.body
    if lines is None or not isinstance(store, tir.Store) or store.buffer is not lines.data.buffer:
        return False
    order = tuple(it.var for it in border.iters)
    sizes = [tir.int_value(it.extent) for it in border.iters[1:]]
    return store.indices == order and None not in sizes and has_border(border)
