"""Reductions and windows, by the direction of the vectors.

*Along the reduction* (softmax, norms, row sums): a group of blocks that share their leading
dimensions runs row by row, each row staying in the first cache. A fold joins many vectors as a tree
before it combines their lanes, so that the lanes cost little and no chain of operations is long.

*Across the reduction* (column sums, pooling, depthwise convolution): vectors run along the result,
and the sums stay in registers while the window or the column is walked.
"""

from __future__ import annotations

from tilewright.schedule.recipes.context import (
    Context,
    extent_of,
    iter_loop,
    lanes_of,
    parallelize,
    split_for_vectors,
    vector_tail,
    work_of,
)
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import loads_of
from tilewright.tensor.functions import is_function
from tilewright.tensor.visit import free_vars, walk

__all__ = ["runs_along", "schedule_across", "schedule_rows"]

# Vectors per statement of a stage that does not fold.
_VECTORS = 8

# Vectors that are joined before their lanes are.
_FOLDED_VECTORS = 16

# A window of at most this many elements is unrolled.
_WINDOW = 25


def runs_along(block: tir.Block) -> bool:
    """Whether the inputs that move with the reduction are contiguous along it, and none across."""
    reduce = {it.var for it in block.iters if it.kind is tir.IterKind.REDUCE}
    moving = [
        load.indices[-1]
        for load in loads_of(block)
        if any(free_vars(index) & reduce for index in load.indices)
    ]
    return bool(moving) and all(free_vars(last) <= reduce for last in moving)


def schedule_rows(context: Context, blocks: tuple[str, ...], shared: int) -> None:
    """Run `blocks`, in program order, together for each point of `shared` leading dimensions."""
    s = context.schedule
    cycles = sum(work_of(context, block) for block in blocks)
    loops = s.loops(blocks[-1])[:shared]
    row = s.fuse(*loops) if len(loops) > 1 else loops[0]
    for block in reversed(blocks[:-1]):
        s.compute_at(block, row)
    for block in blocks:
        _fetch_next_row(context, block, row, _finish_row(context, block, row))
    parallelize(context, row, cycles)


def _inside(context: Context, block: str, row: str) -> list[str]:
    """The loops of a block inside the row loop, without those of one iteration."""
    loops = context.schedule.loops(block)
    inside = loops[loops.index(row) + 1 :]
    return [loop for loop in inside if extent_of(context, loop) != 1]


def _finish_row(context: Context, block: str, row: str) -> str | None:
    """Vectorise one stage inside the row loop; the loop over vectors, if there is one."""
    s = context.schedule
    lanes = lanes_of(context, block)
    longer = _inside(context, block, row)
    if not longer:
        return None
    vectors = _VECTORS
    if s.block(block).init is not None:
        vectors = _FOLDED_VECTORS
        init = s.decompose_reduction(block, longer[0])
        _finish_row(context, init, row)
    tiles, _ = vector_tail(context, longer[-1], lanes, vectors)
    return tiles


def _fetch_next_row(context: Context, block: str, row: str, tiles: str | None) -> None:
    """Let a stage with much arithmetic fetch the next row of what it reads.

    The first stage of a row only walks through it and would wait for memory; one that computes a
    power has time to spare. (Stages that wait for loads themselves lose by it.)
    """
    s = context.schedule
    node = s.block(block)
    if tiles is None or not any(map(is_function, walk(node.body))):
        return
    params, moving = set(s.func.params), {s.loop(row).var}
    rows = {
        it.var for it, at in zip(node.iters, node.bindings, strict=True) if free_vars(at) & moving
    }
    read = {
        load.buffer.name: None
        for load in loads_of(node)
        if load.buffer in params and load.indices and free_vars(load.indices[0]) & rows
    }
    if read:
        s.annotate(tiles, "prefetch", tuple(read))


def schedule_across(context: Context, block: str, epilogue: str | None = None) -> None:
    """Vectors along the innermost dimension of the result; sums in registers."""
    s = context.schedule
    node = s.block(block)
    cycles = work_of(context, block)
    spatial = [p for p, it in enumerate(node.iters) if it.kind is tir.IterKind.SPATIAL]
    reduce = [p for p, it in enumerate(node.iters) if it.kind is tir.IterKind.REDUCE]
    outer = [iter_loop(context, block, p) for p in spatial]
    walks = [iter_loop(context, block, p) for p in reduce]
    if not outer:
        return
    if epilogue is None:
        copy = s.cache_write(block, scope="register")
    else:
        copy = epilogue
        s.set_scope(node.writes[0].buffer.name, scope="register")
    extent = extent_of(context, outer[-1])
    lanes = lanes_of(context, block)
    vectors = _VECTORS if extent is None else max(1, min(_VECTORS, extent // lanes))
    tiles, lane = split_for_vectors(context, outer[-1], lanes, vectors)
    around = [*outer[:-1], tiles]
    s.reorder(*around, *walks, lane)
    made = s.reverse_compute_at(copy, tiles)
    init = s.decompose_reduction(block, walks[0])
    for name in (block, init):
        s.vectorize(s.loops(name)[-1])
    copied = made if isinstance(made, tuple) else (made,)
    s.vectorize(copied[-1])
    _unroll_window(context, walks)
    parallelize(context, _outermost(context, around), cycles)


def _unroll_window(context: Context, walks: list[str]) -> None:
    """Unroll the innermost loops of a small window."""
    size = 1
    for loop in reversed(walks):
        extent = extent_of(context, loop)
        if extent is None or size * extent > _WINDOW:
            return
        size *= extent
        context.schedule.unroll(loop)


def _outermost(context: Context, around: list[str]) -> str:
    """One loop with enough iterations for the threads, fused from several where needed."""
    if len(around) > 1 and (extent_of(context, around[0]) or 0) < 4 * context.threads:
        return str(context.schedule.fuse(*around))
    return around[0]
