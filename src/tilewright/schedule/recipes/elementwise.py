"""Elementwise blocks: one pass over memory, full vectors, threads over what lies outside."""

from __future__ import annotations

from math import prod

from tilewright.schedule.recipes.choices import choices_of, schedule_choice
from tilewright.schedule.recipes.context import (
    Context,
    extent_of,
    lanes_of,
    parallelize,
    split_for_vectors,
    vector_tail,
    work_of,
)
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import loads_of
from tilewright.tensor.visit import free_vars, walk

__all__ = ["schedule_elementwise"]

# Vectors per statement: enough independent work to hide the latency of a polynomial.
_VECTORS = 4

# The same for a copy, which only moves data.
_COPIED_VECTORS = 8

# Bytes of a cache line and of a page, and what an access across lines costs beside one along them.
_LINE_BYTES = 64
_PAGE_BYTES = 4096
_STRIDED_COST = 8

# Pages from one line to the next, from which on the order of tiles follows the source.
_FAR_PAGES = 4


def schedule_elementwise(context: Context, block: str) -> None:
    """Vectorise along the innermost dimension of the result; fuse dimensions that are dense."""
    s = context.schedule
    loops = s.loops(block)
    if not loops:
        return
    if is_scattered(s.block(block)):
        schedule_scattered(context, block)
        return
    across = across_lines(s.block(block))
    if across is not None:
        schedule_transposed(context, block, across)
        return
    if chooses_outside(s.block(block)):
        schedule_choice(context, block)
        return
    if has_border(s.block(block)):
        schedule_border(context, block)
        return
    cycles = work_of(context, block)
    if len(loops) > 1 and is_dense(s.block(block)):
        loops = (s.fuse(*loops),)
    inner = loops[-1]
    outer, _ = vector_tail(context, inner, lanes_of(context, block), _VECTORS)
    around = [*loops[:-1], *([outer] if outer else [])]
    if not around:
        return
    shared = _shared(context, around[:-1] if len(loops) > 1 and outer else around, around)
    parallelize(context, s.fuse(*shared) if len(shared) > 1 else shared[0], cycles)


def _shared(context: Context, whole: list[str], around: list[str]) -> list[str]:
    """The outer loops that threads divide: as few as give each of them several iterations.

    The last of `around` may walk over tiles. It takes part only if all extents are numbers: to tell
    from one number which row and which tile it stands for costs more than threads can gain.
    """
    if context.threads == 1:
        return around[:1]
    wanted, iterations = 4 * context.threads, 1
    for number, loop in enumerate(whole, start=1):
        iterations *= extent_of(context, loop) or 1
        if iterations >= wanted:
            return whole[:number]
    symbolic = any(extent_of(context, loop) is None for loop in whole)
    return whole if symbolic else around


def schedule_scattered(context: Context, block: str) -> None:
    """Stores where data says run in order; vectors where they leave the last place alone."""
    s = context.schedule
    store = s.block(block).body
    assert isinstance(store, tir.Store)
    if store.indices[-1] is s.block(block).iters[-1].var:
        vector_tail(context, s.loops(block)[-1], lanes_of(context, block), _COPIED_VECTORS)


def is_scattered(block: tir.Block) -> bool:
    """Whether data decides what is written."""
    store = block.body
    return isinstance(store, tir.Store) and any(_reads(index) for index in store.indices)


def schedule_transposed(context: Context, block: str, across: int) -> None:
    """Square tiles of vectors, side by side as wide as a cache line.

    The strided loads of a tile become whole rows and shuffles. Lines on both sides are used up
    while they are near. Those that are a multiple of a page apart share few places in the cache:
    each of them is done with before the next tile, on the side of the result if on both.
    """
    s = context.schedule
    cycles = work_of(context, block) * _STRIDED_COST
    loops = list(s.loops(block))
    rows, columns = loops.pop(across), loops.pop()
    lanes = lanes_of(context, block)
    size = s.block(block).writes[0].buffer.dtype.size_bytes
    beside = max(1, _LINE_BYTES // (lanes * size))
    inside: list[str] = []
    read, written = ((extent_of(context, n) or 1) * size % _PAGE_BYTES for n in (rows, columns))
    row_tiles, row = split_for_vectors(context, rows, lanes, 1)
    column_tiles, column = split_for_vectors(context, columns, lanes, 1)
    if beside > 1 and None not in (extent_of(context, t) for t in (row_tiles, column_tiles)):
        row_tiles, row_beside = map(str, s.split(row_tiles, beside))
        column_tiles, column_beside = map(str, s.split(column_tiles, beside))
        inside = [row_beside, column_beside] if read or not written else [column_beside, row_beside]
    tiles = [row_tiles, column_tiles]
    if _steps_far(context, block):  # lines of the source one after another, not pages apart
        tiles.reverse()
    around = [*loops, *tiles]
    s.reorder(*around, *inside, row, column)
    s.vectorize(column)
    s.unroll(row)
    several = [loop for loop in around if extent_of(context, loop) != 1]
    if not several:
        return
    shared = several[0]
    few = context.threads > 1 and (extent_of(context, shared) or 0) < 4 * context.threads
    if few and len(several) > 1:
        shared = _first_two(context, around, several)
    parallelize(context, shared, cycles)


def _steps_far(context: Context, block: str) -> bool:
    """Whether a source is read across so many pages that their translations do not stay near."""
    node = context.schedule.block(block)
    inner = node.iters[-1].var
    for load in loads_of(node):
        sizes = [tir.int_value(size) for size in load.buffer.shape]
        moved = [d for d, index in enumerate(load.indices) if inner in free_vars(index)]
        if not moved or None in sizes:
            continue
        stride = prod(size or 1 for size in sizes[moved[-1] + 1 :]) * load.buffer.dtype.size_bytes
        if stride >= _FAR_PAGES * context.target.machine.page_bytes:
            return True
    return False


def _first_two(context: Context, around: list[str], several: list[str]) -> str:
    """One loop of the first two that run more than once, and of those between them."""
    first, second = around.index(several[0]), around.index(several[1])
    return str(context.schedule.fuse(*around[first : second + 1]))


def across_lines(block: tir.Block) -> int | None:
    """The iterator along which a source is contiguous, if the result is so along another one."""
    position = {it.var: n for n, it in enumerate(block.iters)}
    inner = block.iters[-1].var
    for load in loads_of(block):
        if not load.indices or inner in free_vars(load.indices[-1]):
            continue
        moving = any(inner in free_vars(index) for index in load.indices[:-1])
        found = [position[v] for v in free_vars(load.indices[-1]) if v in position]
        if moving and len(found) == 1 and not any(_reads(index) for index in load.indices):
            return found[0]
    return None


def schedule_border(context: Context, block: str) -> None:
    """A copy that asks where it is: loops stay apart, so that lowering cuts them at the border."""
    s = context.schedule
    cycles = work_of(context, block)
    *around, inner = s.loops(block)
    tiles, _ = vector_tail(context, inner, lanes_of(context, block), _COPIED_VECTORS)
    several = [loop for loop in around if extent_of(context, loop) != 1]
    if tiles is not None and len(several) > 1:
        around, several = [*around, tiles], [*several, tiles]
    if not several:
        return
    shared = several[0]
    if len(several) > 2 and (extent_of(context, shared) or 0) < 4 * context.threads > 4:
        shared = _first_two(context, around, several)
    parallelize(context, shared, cycles)


def chooses_outside(block: tir.Block) -> bool:
    """Whether iterators other than the innermost choose among values: a small transform."""
    chosen = choices_of(block)
    return bool(chosen) and block.iters[-1].var not in chosen


def has_border(block: tir.Block) -> bool:
    """Whether some value is chosen by a comparison of iterators."""
    iters = {it.var for it in block.iters}
    return any(
        isinstance(part, tir.Select)
        and bool(free_vars(part.cond) & iters)
        and not _reads(part.cond)
        for part in walk(block.body)
    )


def _reads(cond: tir.Expr) -> bool:
    return any(isinstance(part, tir.Load) for part in walk(cond))


def is_dense(block: tir.Block) -> bool:
    """Whether every access walks its buffer in the order of the iterators, or does not move."""
    order = tuple(it.var for it in block.iters)
    store = block.body
    if not isinstance(store, tir.Store) or block.predicate != tir.TRUE:
        return False
    accesses = [(store.buffer, store.indices)]
    accesses += [(load.buffer, load.indices) for load in loads_of(block)]
    for buffer, indices in accesses:
        if not any(free_vars(index) for index in indices):
            continue
        if tuple(indices) != order:
            return False
        if any(d != it.extent for d, it in zip(buffer.shape, block.iters, strict=True)):
            return False
    return True
