"""The loops around a register tile: panels, blocks, what threads share and what is fetched."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.errors import UserError
from tilewright.intrin.products import ProductInstruction
from tilewright.schedule.recipes.context import (
    Context,
    extent_of,
    share_loop,
    split_for_vectors,
    tile_sizes,
    vector_tail,
)
from tilewright.schedule.recipes.contraction.digits import column_loop
from tilewright.schedule.recipes.contraction.packing import finish_packing
from tilewright.schedule.recipes.contraction.roles import Loops, Operands, names_of
from tilewright.schedule.recipes.contraction.space import (
    BLOCKS_FIRST,
    RIGHT_STAYS,
    ContractionPoint,
)
from tilewright.tensor import cover as covers
from tilewright.tensor import ir as tir

__all__ = ["even", "fetch_ahead", "finish_tile", "split_tile", "tile", "unroll_walks"]

_COPIED = 4
"""Vectors of a row that one iteration of a copy takes."""


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
    instruction: ProductInstruction | None = None,
) -> None:
    """Tile a contraction whose sums stay in registers over the whole reduction.

    With an instruction, its steps are the innermost loop, inside of the columns that it has.
    """
    s = context.schedule
    copied = str(s.cache_read(block, operands.left)) if point.copies_left else None
    if epilogue is None:
        copy = s.cache_write(block, scope="register")
    else:
        copy = epilogue
        s.set_scope(s.block(block).writes[0].buffer.name, scope="register")
    stays = point.order == RIGHT_STAYS
    rows, columns = split_tile(context, loops, point, with_blocks=not stays)
    outer = [*loops.batch, *loops.outer_rows, *loops.outer_columns]
    spans: tuple[str, ...] = ()
    if stays:
        around, tiles = [*outer, *rows.tiles], [columns.outer]
    else:
        spans, panels = _spans(context, columns.outer, point)
        first, second = (
            (rows.blocks, outer) if point.order == BLOCKS_FIRST else (outer, rows.blocks)
        )
        around, tiles = [*first, *second, panels], list(rows.tiles)
        if point.share_tiles:
            around, tiles = [*around, *tiles], []
    walk, streams = _streams(context, loops, point)
    inner: tuple[str, ...] = (columns.inner,)
    steps: tuple[str, ...] = ()
    if instruction is not None:
        inner = tuple(map(str, s.split(columns.inner, instruction.columns)))
        last, step = s.split(walk[-1], instruction.steps)
        walk, steps = (*walk[:-1], str(last)), (str(step),)
    s.reorder(*spans, *around, *tiles, *walk, *streams, *rows.inner, *inner, *steps)
    packs_batches = stays and operands.packed_by is not None  # each once, by whoever has it
    shared, panel = _share(context, outer if packs_batches else [*spans, *around], point.shares)
    if copied is not None:
        _copy_rows(context, block, copied, point, [*outer, *rows.blocks], shared)
    if operands.packed_by is not None:
        place = outer[-1] if stays and outer else panel
        made = s.compute_at(operands.packed_by, place if place in s.loops(block) else shared)
        width = point.tile_columns if stays else None
        finish_packing(context, operands.packed_by, made, width)
    made = s.reverse_compute_at(copy, tiles[-1] if tiles else panel)
    if not streams:
        walk = unroll_walks(context, walk, point.unroll)
    if point.prefetch:
        names = operands.to_fetch(right_stays=stays)
        fetch_ahead(context, walk[-1], tiles, names, point.prefetch)
    init = s.decompose_reduction(block, walk[0])
    if instruction is None:
        finish_tile(context, block, len(rows.inner) + len(streams))
        finish_tile(context, init, len(rows.inner))
    finish_copy(context, block, copy, made)
    if instruction is not None:
        finish_tile(context, init, len(rows.inner) + 1)
        for loop in (*rows.inner, *inner[:-1]):
            s.unroll(loop)
        s.tensorize(inner[-1], instruction.name)
    share_loop(context, shared, parallel=bool(point.parallel))


def _copy_rows(
    context: Context,
    block: str,
    copied: str,
    point: ContractionPoint,
    around: Sequence[str],
    shared: str,
) -> None:
    """Copy the rows of a block where its panels begin; all rows in front, if nothing is shared."""
    s = context.schedule
    left = [loop for loop in around if loop in s.loops(block)]
    if left or point.parallel:
        s.compute_at(copied, left[-1] if left else shared)
    vector_tail(context, s.loops(copied)[-1], point.lanes, _COPIED)


def _streams(
    context: Context, loops: Loops, point: ContractionPoint
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The walk along the reduction, and loops over the places where it goes on side by side.

    A tile of one row uses each element of the right operand once and waits for memory, which
    delivers several streams faster than one.
    """
    extent = extent_of(context, loops.reduce[-1]) or 0
    if point.streams == 1 or extent % point.streams or extent == point.streams:
        return loops.reduce, ()
    streams, walk = context.schedule.split(loops.reduce[-1], extent // point.streams)
    return (*loops.reduce[:-1], walk), (streams,)


def unroll_walks(context: Context, walk: Sequence[str], steps: int) -> tuple[str, ...]:
    """Take several steps of the reduction per iteration; the loops that are left.

    Short loops at the end of the walk are unrolled as a whole, where they have no more steps (a
    window over data in rows is a few steps inside of the walk over channels); or else a part of
    the last one.
    """
    s, rest, done = context.schedule, list(walk), 1
    while len(rest) > 1 and 0 < done * (extent_of(context, rest[-1]) or 0) <= steps:
        done *= extent_of(context, rest[-1]) or 1
        s.unroll(rest.pop())
    extent = extent_of(context, rest[-1])
    if done == 1 and steps > 1 and extent is not None and extent > steps:
        outer, inner = s.split(rest[-1], steps)
        s.unroll(inner)
        rest[-1] = str(outer)
    return tuple(rest)


def fetch_ahead(
    context: Context, walk: str, tiles: Sequence[str], names: Sequence[str], parts: int
) -> None:
    """Let the walk along the reduction fetch what comes next of these operands, parts ahead.

    It pays where several tiles use the same part: the next one then arrives while they work.
    """
    s = context.schedule
    params = {param.name for param in s.func.params}
    known = [name for name in names if name in params]
    if known and tiles and extent_of(context, tiles[-1]) != 1:
        s.annotate(walk, "prefetch", tuple(known))
        if parts > 1:
            s.annotate(walk, "prefetch_ahead", parts)


def _spans(context: Context, panels: str, point: ContractionPoint) -> tuple[tuple[str, ...], str]:
    """Spans of panels, each for all blocks of rows, and the panels.

    A span that a cache holds comes from memory once. Threads may share spans rather than blocks of
    rows, which are few and of different sizes.
    """
    count = extent_of(context, panels)
    if not point.spans or count is None:
        return (), panels
    spans, panel = context.schedule.split(panels, math.ceil(count / point.spans))
    return (spans,), panel


def _share(
    context: Context, around: list[str], shares: int, most: int | None = None
) -> tuple[str, str]:
    """The loop for the threads, fused from no more loops than they need, and the innermost one.

    A loop that stays by itself is cut where its last panel is narrower; a fused one cannot be.
    """
    iterations, count = 1, 0
    most = len(around) if most is None else most
    while count < most and iterations < shares:
        iterations *= extent_of(context, around[count]) or shares
        count += 1
    if context.threads == 1 or count <= 1:
        return around[0], around[-1]
    before = context.schedule.copy()
    try:
        shared = str(context.schedule.fuse(*around[:count]))
    except UserError:  # of an unknown number of tiles it cannot be told which one it is
        context.schedule.restore(before)
        return _share(context, around, shares, count - 1)
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
        exact = point.tile_rows if point.all_tails else 0
        tiles, row = s.split(loops.row, tile_sizes(point.tile_rows, exact))
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
