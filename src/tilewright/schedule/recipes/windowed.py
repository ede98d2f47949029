"""Windows whose channels lie innermost: depthwise convolutions and pooling over channels-last data.

    for line, columns of the result, vector of channels:
        sums = 0                                 (registers: one vector for each column)
        for each element of the window: sums += data[line, column, channels] · weights[channels]
        out = epilogue(sums)

Neighbouring columns share most of their windows: what is loaded for one is used for the others.

A border is not copied if the window is small: it is computed where it is read, and lowering cuts
the loops there, so that only the outermost tiles ask for it. Columns whose distance is a power of
two fight for the same places of the first cache, though: small images are then copied, border and
all, some channels at a time, to where they lie densely.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tilewright.schedule.footprints import terms
from tilewright.schedule.recipes.context import (
    Context,
    extent_of,
    iter_loop,
    lanes_of,
    parallelize,
    work_of,
)
from tilewright.schedule.recipes.contraction.digits import split_constants
from tilewright.schedule.recipes.contraction.roles import names_of
from tilewright.schedule.recipes.elementwise import (
    across_lines,
    has_border,
    schedule_elementwise,
)
from tilewright.schedule.recipes.window_plan import WindowPlan
from tilewright.tensor import cover as covers
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import Kind, kind_of, loads_of
from tilewright.tensor.visit import free_vars

__all__ = ["is_channels_last", "schedule_window", "wants_border"]

# A window of at most this many elements is unrolled.
_WINDOW = 25

# One of at most this many elements asks for its border: each place of it is a copy of the code.
_ASKING = 12

# Columns of the result at a time, at most; as many as divide a line, if these are not few.
_COLUMNS, _ENOUGH_COLUMNS = 6, 4

# Channels that are copied at a time, at most.
_CHANNELS = 64

# How many times the threads there must be shares of work, to be dealt evenly.
_SHARES = 8


def is_channels_last(block: tir.Block) -> bool:
    """Whether result and data are contiguous along one iterator, and the window lies across."""
    store = block.body
    if kind_of(block) is not Kind.WINDOWED or not isinstance(store, tir.Store):
        return False
    spatial = [it.var for it in block.iters if it.kind is tir.IterKind.SPATIAL]
    if len(spatial) < 2 or spatial != list(store.indices):
        return False
    return all(
        (1, spatial[-1]) in terms(load.indices[-1])
        for load in loads_of(block)
        if _slides(load, block)
    )


def wants_border(window: tir.Block, border: tir.Block) -> bool:
    """Whether a block makes the data of a window by putting a border around them."""
    store = border.body
    if not isinstance(store, tir.Store) or not border.iters:
        return False
    if not is_channels_last(window) or not has_border(border):
        return False
    channel = border.iters[-1].var
    plain = list(store.indices) == [it.var for it in border.iters]
    return (
        plain and isinstance(store.value, tir.Select) and channel not in free_vars(store.value.cond)
    )


def _slides(load: tir.Load, block: tir.Block) -> bool:
    """Whether some index of an access mixes a place of the result and one of the window."""
    reduce = {it.var for it in block.iters if it.kind is tir.IterKind.REDUCE}
    spatial = {it.var for it in block.iters} - reduce
    return any(free_vars(index) & reduce and free_vars(index) & spatial for index in load.indices)


@dataclass(frozen=True)
class _Window:
    """What the recipe needs to know about a window."""

    taps: int
    lines: int
    step: int
    reach: int

    @classmethod
    def of(cls, node: tir.Block) -> _Window:
        """Along columns: how far windows are apart, and how far one reaches."""
        assert isinstance(node.body, tir.Store)
        column = node.body.indices[-2]
        extents = {
            it.var: tir.int_value(it.extent) or _WINDOW + 1
            for it in node.iters
            if it.kind is tir.IterKind.REDUCE
        }
        step = reach = across = 1
        for load in loads_of(node):
            for index in load.indices:
                found = {part: abs(k) for k, part in terms(index) if isinstance(part, tir.Var)}
                if column in found:
                    inside = {v: k for v, k in found.items() if v in extents}
                    step = max(1, found[column])  # type: ignore[index]
                    reach = 1 + sum(k * (extents[v] - 1) for v, k in inside.items())
                    across = math.prod(extents[v] for v in inside)
        taps = math.prod(extents.values())
        return cls(taps, taps // across, step, reach)

    def columns_read(self, columns: int) -> int:
        """Columns of the data that so many columns of the result need."""
        return (columns - 1) * self.step + self.reach

    def columns_at_once(self, context: Context) -> int:
        """As many as registers hold, together with their data and one vector of weights."""
        plan, registers = context.loops, context.target.vector_registers
        most = plan.sums if isinstance(plan, WindowPlan) else _COLUMNS
        fitting = [c for c in range(1, most + 1) if c + self.columns_read(c) < registers]
        return fitting[-1] if fitting else 1


def schedule_window(context: Context, blocks: tuple[str, ...], epilogue: str | None = None) -> None:
    """Schedule a window, the last of `blocks`, and the border in front of it if there is one."""
    s = context.schedule
    *border, block = blocks
    window = _Window.of(s.block(block))
    line = context.target.cache(1).line_bytes // s.block(block).writes[0].buffer.dtype.size_bytes
    turned = bool(border) and across_lines(s.block(border[0])) is not None
    copied = _channels_copied(context, border[0], window, line) if border and not turned else 0
    if border and not copied and not turned and _asks(context, block, window):
        s.compute_inline(border[0])
    elif border and not copied:
        schedule_elementwise(context, border[0])
    split_constants(context, s.block(block))
    node, cycles = s.block(block), work_of(context, block)
    loops = [iter_loop(context, block, p) for p in range(len(node.iters))]
    places = [n for n, it in zip(loops, node.iters, strict=True) if it.kind is not REDUCE]
    walks = [n for n, it in zip(loops, node.iters, strict=True) if it.kind is REDUCE]
    copy = epilogue or str(s.cache_write(block, scope="register"))
    s.set_scope(s.block(block).writes[0].buffer.name, scope="register")
    *outer, column, channel = places
    outer = _in_order_of_data(context, block, outer)
    vectors, lane = s.split(channel, lanes_of(context, block))
    tiles, inner = _split_columns(context, column, window)
    share: list[str] = []
    if copied or _lacks_lines(context, outer, vectors):
        first, vectors = s.split(vectors, max(line, copied) // lanes_of(context, block))
        share = [first]
    s.reorder(*share, *outer, tiles, vectors, *walks, inner, lane)
    if copied:
        s.vectorize(names_of(s.compute_at(border[0], share[0]))[-1])
    made = names_of(s.reverse_compute_at(copy, vectors))
    init = s.decompose_reduction(block, walks[0])
    for name in (block, init):
        *_, row, vector = s.loops(name)
        s.unroll(row)
        s.vectorize(vector)
    for loop in made[:-1]:
        s.unroll(loop)
    s.vectorize(made[-1])
    _unroll_window(context, walks)
    _lay_channels_innermost(context, block, line)
    around = [*share, *outer, tiles]
    shared = next((loop for loop in around if extent_of(context, loop) != 1), around[0])
    parallelize(context, shared, cycles)


REDUCE = tir.IterKind.REDUCE


def _channels_copied(context: Context, border: str, window: _Window, line: int) -> int:
    """How many channels of the data, with their border, are better copied at a time; 0 for none.

    They must fit into the first cache, and it must pay: the window is large, or the places of the
    cache that one tile uses are too few.
    """
    buffer = context.schedule.block(border).writes[0].buffer
    cache = context.target.cache(1)
    sizes = [tir.int_value(size) for size in buffer.shape]
    if None in sizes or sizes[0] != 1:
        return 0
    *space, channels = (size or 1 for size in sizes)
    room = cache.share_bytes // (math.prod(space) * buffer.dtype.size_bytes)
    most = min(room, channels, _CHANNELS)
    fitting = [c for c in range(2 * line, most + 1, line) if channels % c == 0]
    apart, way = channels * buffer.dtype.size_bytes, cache.size_bytes // cache.ways
    different = max(1, way // math.gcd(apart, way))
    columns = window.columns_at_once(context)
    crowd = window.lines * window.columns_read(columns) / different
    pays = window.taps > _ASKING or crowd > cache.ways
    return fitting[-1] if fitting and pays else 0


def _asks(context: Context, block: str, window: _Window) -> bool:
    """Whether the border is computed where it is read: small windows over data of known size."""
    node = context.schedule.block(block)
    known = all(tir.int_value(it.extent) is not None for it in node.iters[1:])
    return known and window.taps <= _ASKING


def _in_order_of_data(context: Context, block: str, loops: list[str]) -> list[str]:
    """Outer loops by how far a step of each moves through the data, the farthest outside.

    What lies together is then used together, however the result is stored.
    """
    s = context.schedule
    node = s.block(block)
    data = [load for load in loads_of(node) if _slides(load, node)]
    if len(data) != 1:
        return loops
    names = [iter_loop(context, block, p) for p in range(len(node.iters))]

    def distance(loop: str) -> int:
        var, stride, found = node.iters[names.index(loop)].var, 1, 0
        for size, index in zip(
            reversed(data[0].buffer.shape), reversed(data[0].indices), strict=True
        ):
            found += sum(stride * k for k, part in terms(index) if var in free_vars(part))
            stride *= tir.int_value(size) or 1
        return found

    return sorted(loops, key=distance, reverse=True) if all(map(distance, loops[1:])) else loops


def _lacks_lines(context: Context, outer: list[str], vectors: str) -> bool:
    """Whether threads had better share channels than lines."""
    if context.threads == 1:
        return False
    extents = [extent_of(context, loop) for loop in outer]
    first = next((extent for extent in extents if extent != 1), 1)
    if first is None or first >= _SHARES * context.threads:
        return False
    return (extent_of(context, vectors) or 0) >= 4 * context.threads


def _lay_channels_innermost(context: Context, block: str, line: int) -> None:
    """Store weights so that a line of channels of all elements of the window is one piece."""
    s = context.schedule
    node = s.block(block)
    channel = [it.var for it in node.iters if it.kind is not REDUCE][-1]
    for load in loads_of(node):
        places = [d for d, index in enumerate(load.indices) if index is channel]
        if len(places) != 1 or load.buffer.name not in context.constants:
            continue
        (place,) = places
        rank, name = len(load.indices), load.buffer.name
        others = [d for d in range(rank) if d != place]
        if others and (tir.int_value(load.buffer.shape[place]) or 1) % line == 0:
            s.layout_split(name, dim=place, factor=line)
            s.layout_reorder(name, order=[place, *(d + (d > place) for d in others), place + 1])
        elif others:
            s.layout_reorder(name, order=[*others, place])


def _split_columns(context: Context, column: str, window: _Window) -> tuple[str, str]:
    """Tiles of equal size if they are not too small; of an unknown number, single columns last."""
    s = context.schedule
    size, extent = window.columns_at_once(context), extent_of(context, column)
    if extent is None:
        tiles, inner = s.split(column, (size, 1) if size > 1 else (1,))
        return str(tiles), str(inner)
    even = [c for c in range(min(size, _ENOUGH_COLUMNS), size + 1) if extent % c == 0]
    cover = covers.uneven(extent, even[-1] if even else size)
    tiles, inner = s.split(column, tuple((n, tir.int_value(many)) for n, many in cover.segments))
    return str(tiles), str(inner)


def _unroll_window(context: Context, walks: list[str]) -> None:
    """Unroll the innermost loops of the window, as far as it stays small."""
    size = 1
    for loop in reversed(walks):
        size *= extent_of(context, loop) or _WINDOW + 1
        if size > _WINDOW:
            return
        context.schedule.unroll(loop)
