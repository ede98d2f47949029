"""What every recipe is given, and the small moves that several recipes share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from tilewright.dtypes import index
from tilewright.schedule.primitives.split import is_multiple
from tilewright.schedule.recipes.streams import moved, vector_cycles
from tilewright.schedule.recipes.work import extent_or_assumed, work_in
from tilewright.schedule.schedule import Schedule
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import free_vars, walk

if TYPE_CHECKING:
    from tilewright.schedule.recipes.contraction.space import ContractionPoint
    from tilewright.schedule.recipes.recipe import Decision
    from tilewright.schedule.recipes.windows.points import WindowPoint

    Plan = ContractionPoint | WindowPoint

__all__ = [
    "NOMINAL_THREADS",
    "PLANNED_THREADS",
    "SHARES",
    "Context",
    "extent_of",
    "iter_loop",
    "lanes_of",
    "parallelize",
    "share_loop",
    "split_for_vectors",
    "tile_sizes",
    "vector_tail",
    "work_of",
]

NOMINAL_THREADS = 8
"""Threads that the kernels of a model are scheduled for. They run on any number of them.

Loops that threads share are cut for four times as many, so that 32 find work and fewer are about
equally busy; more iterations than that cost one thread time.
"""

PLANNED_THREADS = 2
"""Threads at most that the model of the machine divides the work by: it chooses register tiles,
blocks and layouts, and what many threads prefer (small tiles) would slow few of them down."""

SHARES = 4
"""Iterations of a shared loop that each nominal thread is to find; see `NOMINAL_THREADS`."""

P = TypeVar("P")

# Up to so many vectors side by side, what is left over of columns has a tile of its own width.
_EXACT_VECTORS = 4


@dataclass(frozen=True)
class Context:
    """A schedule in the making, the machine, and the names of constant parameters.

    `loops` is a point for the contraction or the window that was chosen elsewhere, `points` are
    points for groups by the name of their last block; without them, a recipe drafts one. What was
    decided for each group is added to `decisions`.
    """

    schedule: Schedule
    target: Target
    threads: int
    constants: frozenset[str]
    loops: Plan | None = None
    points: Mapping[str, object] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list, compare=False)

    def point_of(self, block: str, kind: type[P]) -> P | None:
        """The point that was given for a group, by the name of its last block or by its kind."""
        found = self.points.get(block, self.loops)
        return found if isinstance(found, kind) else None

    def decide(self, decision: Decision) -> None:
        """Note what was decided for a group; what an attempt before this one decided is void.

        A group may have two: parts of a sum are a contraction, and are then added up by rows.
        """
        key = decision.recipe.name, decision.blocks
        self.decisions[:] = [d for d in self.decisions if (d.recipe.name, d.blocks) != key]
        self.decisions.append(decision)


def lanes_of(context: Context, block: str) -> int:
    """Lanes of a vector of the widest element that the block computes with."""
    body = context.schedule.block(block).body
    sizes = [
        part.dtype.size_bytes
        for part in walk(body)
        if isinstance(part, tir.Expr) and not part.dtype.is_bool and part.dtype != index
    ]
    return context.target.lanes(max(sizes, default=4))


def extent_of(context: Context, loop: str) -> int | None:
    """The constant extent of a loop, or None."""
    return tir.int_value(context.schedule.loop(loop).extent)


def iter_loop(context: Context, block: str, position: int) -> str:
    """The loop that alone drives one iterator of a block (true until its loops are tiled)."""
    binding = context.schedule.block(block).bindings[position]
    if type(binding) is tir.Var:
        return binding.name
    names = [v.name for v in free_vars(binding)]
    loops = context.schedule.loops(block)
    return next(name for name in reversed(loops) if name in names)


def work_of(context: Context, block: str) -> float:
    """Predicted cycles of a block with vectors along its result, on one thread."""
    node = context.schedule.block(block)
    along = [it.var for it in node.iters if it.kind is tir.IterKind.SPATIAL] or [node.iters[-1].var]
    work = work_in(node, along[-1], context.target)
    vectors = prod(extent_or_assumed(it.extent) for it in node.iters) / work.lanes
    machine, alone = context.target.machine, np.zeros(1, np.int64)
    cycles = vectors * vector_cycles(work, machine, np.ones(1))
    return float(moved(machine, cycles, work.read_bytes + work.written_bytes, alone)[0])


def parallelize(context: Context, loop: str, cycles: float) -> None:
    """Make a loop parallel where there is more than one thread and enough work for it.

    One iteration is for one thread: it had better see that sums need no memory.
    """
    share_loop(context, loop, parallel=cycles > context.target.machine.barrier_cycles)


def share_loop(context: Context, loop: str, *, parallel: bool) -> None:
    """Make a loop parallel if that is wished, and there are threads and iterations for it."""
    if parallel and context.threads > 1 and extent_of(context, loop) != 1:
        context.schedule.parallel(loop)


def vector_tail(context: Context, loop: str, lanes: int, vectors: int) -> tuple[str | None, str]:
    """Split off and vectorise the innermost tile of a loop; the loop over tiles, and the tile."""
    extent = extent_of(context, loop)
    width = lanes * vectors
    if extent is not None and extent <= width:
        context.schedule.vectorize(loop)
        return None, loop
    if extent is None:
        outer, inner = map(str, context.schedule.split_guarded(loop, width))
    else:
        outer, inner = split_for_vectors(context, loop, lanes, vectors)
    context.schedule.vectorize(inner)
    return outer, inner


def split_for_vectors(context: Context, loop: str, lanes: int, vectors: int) -> tuple[str, str]:
    """Tiles of so many vectors; what a symbolic extent leaves over goes by single vectors first.

    If it is whole vectors for sure, one tile takes all that are left over.
    """
    tiles: int | list[int] = lanes * vectors
    extent = context.schedule.loop(loop).extent
    if tir.int_value(extent) is None and is_multiple(extent, lanes):
        tiles = [lanes * n for n in tile_sizes(vectors, _EXACT_VECTORS)]
    elif tir.int_value(extent) is None:
        tiles = sorted({lanes * vectors, lanes, 1}, reverse=True)
    outer, inner = context.schedule.split(loop, tiles)
    return str(outer), str(inner)


def tile_sizes(largest: int, exact: int) -> tuple[int, ...]:
    """Tile sizes that cover any extent: the largest, and fewer the smaller they are.

    Every size is a micro-kernel of its own to compile. Up to `exact`, what is left over has a tile
    of its own size; of larger ones it takes two or three.
    """
    if largest <= exact:
        return tuple(range(largest, 0, -1))
    sizes = [largest]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // 2))
    return tuple(sizes)
