"""The loops around a register tile: panels, blocks, what threads share and what is fetched."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tilewright.errors import UserError
from tilewright.schedule.recipes.context import (
    PLANNED_THREADS,
    Context,
    extent_of,
    share_loop,
    split_for_vectors,
    tile_sizes,
)
from tilewright.schedule.recipes.contraction.digits import column_loop
from tilewright.schedule.recipes.contraction.packing import finish_packing
from tilewright.schedule.recipes.contraction.roles import Loops, Operands, names_of
from tilewright.schedule.recipes.contraction.space import ContractionPoint
from tilewright.tensor import cover as covers
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import contraction
from tilewright.tensor.visit import free_vars

__all__ = ["even", "fetch_ahead", "finish_tile", "split_tile", "tile", "unroll_walk"]

MAX_EXACT_TILES = 6
"""Up to this size of a tile, what is left over has a tile of its own size."""


# Places at which a reduction that waits for memory goes on at once, and how long it must be.
_STREAMS = 4
_STREAMED_REDUCTION = 512

# Steps of the reduction that one iteration takes, the best first, and how long it must be for that.
_STEPS_AT_ONCE = (4, 5, 3, 6)
_LONG_WALK = 32

# The same for the innermost of several loops; and the most steps of short ones that are unrolled.
_PART = 8
_SHORT_WALK = 12


@dataclass(frozen=True)
class _Split:
    blocks: tuple[str, ...]
    tiles: tuple[str, ...]
    inner: tuple[str, ...]


@dataclass(frozen=True)
class _Panels:
    outer: str
    inner: str


def tile(
    context: Context,
    block: str,
    loops: Loops,
    point: ContractionPoint,
    epilogue: str | None,
    operands: Operands,
) -> None:
    """Tile a contraction whose sums stay in registers over the whole reduction."""
    s = context.schedule
    if epilogue is None:
        copy = s.cache_write(block, scope="register")
    else:
        copy = epilogue
        s.set_scope(s.block(block).writes[0].buffer.name, scope="register")
    stays = _right_stays(context, block, loops, point, operands)
    together = None if stays else _tiles_of_all_groups(context, block, loops, point)
    rows, columns = split_tile(context, loops, point, with_blocks=not stays and together is None)
    outer = [*loops.batch, *loops.outer_rows, *loops.outer_columns]
    if together is not None:
        blocks, tiles_in_block = s.split(rows.tiles[0], together)
        rows = _Split((), (str(tiles_in_block),), rows.inner)
        outer.insert(0, str(blocks))
    spans: tuple[str, ...] = ()
    if stays:
        around, tiles = [*outer, *rows.tiles], [columns.outer]
    else:
        spans, panels = _spans(context, columns.outer, alone=not outer and bool(rows.blocks))
        around, tiles = [*outer, *rows.blocks, panels], list(rows.tiles)
        if operands.packed_by is None and _lacks_shares(context, around, tiles):
            around, tiles = [*around, *tiles], []
    walk, streams = _streams(context, loops, point)
    s.reorder(*spans, *around, *tiles, *walk, *streams, *rows.inner, columns.inner)
    packs_batches = stays and operands.packed_by is not None  # each once, by whoever has it
    shared, panel = _share(context, outer if packs_batches else [*spans, *around])
    if operands.packed_by is not None:
        place = outer[-1] if stays and outer else panel
        made = s.compute_at(operands.packed_by, place if place in s.loops(block) else shared)
        width = point.tile_columns if stays else None
        finish_packing(context, operands.packed_by, made, width)
    made = s.reverse_compute_at(copy, tiles[-1] if tiles else panel)
    if not streams:
        walk = _unroll_walks(context, walk)
    fetch_ahead(context, walk[-1], tiles, operands.to_fetch(right_stays=stays))
    init = s.decompose_reduction(block, walk[0])
    finish_tile(context, block, len(rows.inner) + len(streams))
    finish_tile(context, init, len(rows.inner))
    finish_copy(context, block, copy, made)
    share_loop(context, shared, parallel=bool(point.parallel))


def _right_stays(
    context: Context, block: str, loops: Loops, point: ContractionPoint, operands: Operands
) -> bool:
    """Whether to walk rows outside and panels inside, with all of the right operand in the cache.

    The left operand and the result are then single streams. An operand that is not packed ahead is
    packed once per batch.
    """
    extents = [extent_of(context, name) for name in (loops.column, *loops.reduce)]
    if loops.row is None or loops.outer_columns or None in extents or point.tile_rows == 1:
        return False
    size = context.schedule.block(block).writes[0].buffer.dtype.size_bytes
    right = size * prod(extent or 1 for extent in extents)
    if right > context.target.cache(2).share_bytes / 8:
        return False
    rows = extent_of(context, loops.row) or 0
    if operands.is_constant:
        shares = math.ceil(rows / point.tile_rows)
        left = size * rows * prod(extent or 1 for extent in extents[1:])
        large = left > context.target.cache(2).share_bytes / 2
        return large and not loops.batch and not loops.outer_rows and _divides(context, shares)
    batches = prod(extent_of(context, name) or 1 for name in loops.batch)
    return operands.packed_by is not None and bool(loops.batch) and _divides(context, batches)


def _tiles_of_all_groups(
    context: Context, block: str, loops: Loops, point: ContractionPoint
) -> int | None:
    """Row tiles after which the next group has its turn; None if each group takes all of them.

    Groups of channels that lie side by side share lines of memory: data that do not fit into the
    second cache would come from further away once for every group.
    """
    roles = contraction(context.schedule.block(block))
    rows = None if loops.row is None else extent_of(context, loops.row)
    if roles is None or rows is None or not roles.batch or loops.outer_rows:
        return None
    groups = {roles.block.iters[p].var for p in roles.batch}
    sizes = [tir.int_value(d) for d in roles.left.buffer.shape]
    if None in sizes or not groups & free_vars(roles.left.indices[-1]):
        return None
    left = prod(d or 1 for d in sizes) * roles.left.buffer.dtype.size_bytes
    room = context.target.cache(2).share_bytes / 4
    count = math.ceil(rows / point.tile_rows)
    if left <= 2 * room or not _divides(context, count):
        return None
    blocks = math.ceil(left / room)
    if context.threads > 1:  # as many for each
        blocks = math.ceil(blocks / (4 * context.threads)) * 4 * context.threads
    return math.ceil(count / blocks)


def _divides(context: Context, shares: int) -> bool:
    """Whether so many shares keep threads about equally busy; other ways have no more of them."""
    return context.threads == 1 or shares >= 4 * PLANNED_THREADS


def _streams(
    context: Context, loops: Loops, point: ContractionPoint
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The walk along the reduction, and loops over the places where it goes on side by side.

    A tile of one row uses each element of the right operand once and waits for memory, which
    delivers several streams faster than one.
    """
    extent = extent_of(context, loops.reduce[-1]) or 0
    if point.tile_rows > 1 or extent % _STREAMS or extent < _STREAMED_REDUCTION:
        return loops.reduce, ()
    streams, walk = context.schedule.split(loops.reduce[-1], extent // _STREAMS)
    return (*loops.reduce[:-1], walk), (streams,)


def _unroll_walks(context: Context, walk: tuple[str, ...]) -> tuple[str, ...]:
    """Unroll short loops at the end of the walk, or a part of a long one; the loops that are left.

    A window over data in rows is a few steps inside of the walk over channels.
    """
    rest, steps = list(walk), 1
    while len(rest) > 1 and steps * (extent_of(context, rest[-1]) or 99) <= _SHORT_WALK:
        steps *= extent_of(context, rest[-1]) or 1
        context.schedule.unroll(rest.pop())
    if steps == 1:
        rest[-1] = unroll_walk(context, rest[-1], least=_LONG_WALK if len(rest) == 1 else _PART)
    return tuple(rest)


def unroll_walk(context: Context, walk: str, least: int = _LONG_WALK) -> str:
    """Take several steps of the reduction per iteration; the loop over them.

    Alone on a core, the counting and the wish for a line fit beside the arithmetic. A core that is
    shared with another thread decodes half as much, and there every instruction counts.
    """
    extent = extent_of(context, walk)
    if extent is None or extent < least:
        return walk
    factor = next((f for f in _STEPS_AT_ONCE if extent % f == 0), _STEPS_AT_ONCE[0])
    outer, inner = context.schedule.split(walk, factor)
    context.schedule.unroll(inner)
    return str(outer)


def fetch_ahead(context: Context, walk: str, tiles: Sequence[str], names: Sequence[str]) -> None:
    """Let the walk along the reduction fetch what comes next of these operands.

    It pays where several tiles use the same part: the next one then arrives while they work.
    """
    s = context.schedule
    params = {param.name for param in s.func.params}
    known = [name for name in names if name in params]
    if known and tiles and extent_of(context, tiles[-1]) != 1:
        s.annotate(walk, "prefetch", tuple(known))


def _spans(context: Context, panels: str, *, alone: bool) -> tuple[tuple[str, ...], str]:
    """Spans of panels for the threads, if that is fairer than blocks of rows; and the panels.

    Blocks are few and of different sizes, panels are many and alike.
    """
    count = extent_of(context, panels) or 0
    fair = count % context.threads == 0 or count >= 4 * context.threads
    if context.threads == 1 or not alone or not fair:
        return (), panels
    spans, panel = context.schedule.split(panels, math.ceil(count / (4 * context.threads)))
    return (spans,), panel


def _lacks_shares(context: Context, around: Sequence[str], tiles: Sequence[str]) -> bool:
    """Whether blocks and panels are too few for the threads, which then share tiles of rows."""
    extents = [extent_of(context, loop) for loop in (*around, *tiles)]
    if None in extents or all(extent == 1 for extent in extents[len(around) :]):
        return False
    return prod(extent or 1 for extent in extents[: len(around)]) < context.threads


def _share(context: Context, around: list[str], most: int | None = None) -> tuple[str, str]:
    """The loop for the threads, fused from no more loops than they need, and the innermost one.

    A loop that stays by itself is cut where its last panel is narrower; a fused one cannot be.
    """
    iterations, count = 1, 0
    most = len(around) if most is None else most
    while count < most and iterations < 4 * context.threads:
        iterations *= extent_of(context, around[count]) or 4 * context.threads
        count += 1
    if context.threads == 1 or count == 1:
        return around[0], around[-1]
    before = context.schedule.copy()
    try:
        shared = str(context.schedule.fuse(*around[:count]))
    except UserError:  # of an unknown number of tiles it cannot be told which one it is
        context.schedule.restore(before)
        return _share(context, around, count - 1)
    return shared, shared if count == len(around) else around[-1]


def split_tile(
    context: Context, loops: Loops, point: ContractionPoint, *, with_blocks: bool = True
) -> tuple[_Split, _Panels]:
    """Cut rows and columns into register tiles, and the tiles of rows into blocks."""
    s = context.schedule
    outer, inner = split_for_vectors(context, loops.column, point.lanes, point.tile_vectors)
    columns = _Panels(outer, inner)
    if loops.row is None:
        return _Split((), (), ()), columns
    extent = extent_of(context, loops.row)
    if extent is None:
        tiles, row = s.split(loops.row, tile_sizes(point.tile_rows, MAX_EXACT_TILES))
        return _Split((), (tiles,), (row,)), columns
    tiles, row = s.split(loops.row, even(extent, point.tile_rows))
    count = math.ceil(extent / point.tile_rows)
    if not with_blocks or point.row_tiles_per_block >= count:
        return _Split((), (tiles,), (row,)), columns
    blocks, tiles = s.split(tiles, point.row_tiles_per_block)
    return _Split((blocks,), (tiles,), (row,)), columns


def even(extent: int, largest: int) -> tuple[tuple[int, int | None], ...]:
    """Tiles of at most so many, as equal as possible: (size, how many of them)."""
    segments = covers.uneven(extent, largest).segments
    return tuple((size, tir.int_value(count)) for size, count in segments)


def finish_tile(context: Context, block: str, rows: int) -> None:
    """Unroll the rows (0 or 1 loops) and vectorise the columns of a micro tile."""
    s = context.schedule
    *outer, column = s.loops(block)
    s.vectorize(column)
    for loop in outer[len(outer) - rows :]:
        s.unroll(loop)


def finish_copy(context: Context, block: str, copy: str, made: object) -> None:
    """Unroll the rows and vectorise the columns of what follows a tile; blocks go one by one."""
    s = context.schedule
    loops = names_of(made)
    found = column_loop(context, block, copy, loops)
    column, width = found or (loops[-1], 0)
    others = [loop for loop in loops if loop != column]
    if loops[-1] != column:
        s.reorder(*others, column)
    if width and extent_of(context, column) != width:
        blocks, column = s.split(column, width)
        others.append(str(blocks))
    s.vectorize(column)
    for loop in others:
        s.unroll(loop)
