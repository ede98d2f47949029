"""Contractions: a register tile of sums, walked over the reduction, inside blocks for the caches.

    for block of rows, panel of columns:                  (fused, parallel)
        for tile of rows:
            sums = 0                                      (registers: tile_rows × tile_columns)
            for k: sums += left[rows, k] · right[k, columns]
            out = epilogue(sums)

A long reduction is cut: partial sums of each cut stay in registers and are added to memory once.
A constant right operand is packed ahead of time so that a panel is one stream; one that comes with
the call is packed panel by panel where enough rows use it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import prod

from tilewright.schedule.recipes.context import (
    Context,
    extent_of,
    iter_loop,
    parallelize,
    vector_tail,
)
from tilewright.schedule.recipes.contraction_plan import (
    ContractionPlan,
    ContractionShape,
    plan_contraction,
)
from tilewright.tensor import cover as covers
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import Contraction, contraction
from tilewright.tensor.visit import free_vars

__all__ = ["schedule_contraction"]

# Places at which a reduction that waits for memory goes on at once, and how long it must be.
_STREAMS = 4
_STREAMED_REDUCTION = 512

# Rows that must use a panel before packing it inside the kernel pays.
_ROWS_TO_PACK = 24


@dataclass(frozen=True)
class _Loops:
    """Names of the loops by role, before tiling."""

    batch: tuple[str, ...]
    outer_rows: tuple[str, ...]
    row: str | None
    outer_columns: tuple[str, ...]
    column: str
    reduce: tuple[str, ...]


def schedule_contraction(context: Context, block: str, epilogue: str | None = None) -> None:
    """Schedule a contraction, and the elementwise block behind it if there is one."""
    roles = contraction(context.schedule.block(block))
    assert roles is not None
    plan = plan_contraction(_shape(context, roles), context.target)
    panels = _column_dimension(roles)
    is_constant = roles.right.buffer.name in context.constants
    packs = panels is not None and not is_constant and _shape_rows(roles) >= _ROWS_TO_PACK
    if panels is not None and (is_constant or packs):
        epilogue = _pad_columns(
            context, block, roles, plan, panels, epilogue, is_constant=is_constant
        )
    packed = _packing_block(context, block, roles) if packs else None
    _tile(context, block, _loops(context, block), plan, epilogue, packed)
    if is_constant and panels is not None:
        _pack_constant(context, roles, plan, panels)


def _shape_rows(roles: Contraction) -> int:
    """Rows that use one panel of the right operand; a symbolic number counts as many."""
    extents = [tir.int_value(roles.block.iters[p].extent) for p in roles.rows]
    return prod(128 if e is None else e for e in extents)


def _packing_block(context: Context, block: str, roles: Contraction) -> str:
    """The block that copies a panel of the right operand: the one that pads it, or a new one."""
    s = context.schedule
    right = contraction(s.block(block))
    assert right is not None
    buffer = right.right.buffer
    writers = [n for n in s.blocks() if any(w.buffer is buffer for w in s.block(n).writes)]
    if buffer.name != roles.right.buffer.name and writers:
        return writers[0]
    return str(s.cache_read(block, buffer.name))


def _shape(context: Context, roles: Contraction) -> ContractionShape:
    """Extents by role; a symbolic one counts as a middling number."""
    node = roles.block
    column = _vector_iterator(roles)

    def extent(positions: tuple[int, ...]) -> int:
        sizes = [tir.int_value(node.iters[p].extent) for p in positions]
        return prod(128 if size is None else size for size in sizes)

    row = roles.rows[-1:]
    outer = tuple(p for p in (*roles.rows[:-1], *roles.columns) if p != column)
    return ContractionShape(
        batch=extent((*roles.batch, *outer)),
        rows=max(1, extent(row)) if row else 1,
        columns=extent((column,)),
        reduce=max(1, extent(roles.reduce)),
        element_bytes=node.writes[0].buffer.dtype.size_bytes,
        right_is_constant=roles.right.buffer.name in context.constants,
        threads=context.threads,
    )


def _vector_iterator(roles: Contraction) -> int:
    """The column iterator along which the result is contiguous."""
    last = roles.block.writes[0].ranges[-1].start
    for position in roles.columns:
        if roles.block.iters[position].var == last:
            return position
    return roles.columns[-1]


def _column_dimension(roles: Contraction) -> int | None:
    """Which dimension of the right operand is the vector iterator by itself."""
    var = roles.block.iters[_vector_iterator(roles)].var
    found = [d for d, index in enumerate(roles.right.indices) if index == var]
    return found[0] if len(found) == 1 else None


def _loops(context: Context, block: str) -> _Loops:
    roles = contraction(context.schedule.block(block))
    assert roles is not None
    column = _vector_iterator(roles)

    def names(positions: tuple[int, ...]) -> tuple[str, ...]:
        return tuple(iter_loop(context, block, p) for p in positions)

    rows = names(roles.rows)
    return _Loops(
        batch=names(roles.batch),
        outer_rows=rows[:-1],
        row=rows[-1] if rows else None,
        outer_columns=names(tuple(p for p in roles.columns if p != column)),
        column=iter_loop(context, block, column),
        reduce=names(roles.reduce),
    )


def _pad_columns(
    context: Context,
    block: str,
    roles: Contraction,
    plan: ContractionPlan,
    dimension: int,
    epilogue: str | None,
    *,
    is_constant: bool,
) -> str | None:
    """Let zeros stand behind the last column, so that every vector is full."""
    s = context.schedule
    right = roles.right.buffer
    columns = tir.int_value(right.shape[dimension])
    if columns is None:
        return epilogue
    missing = -columns % plan.tile_columns
    if missing and is_constant:
        s.layout_pad(right.name, dim=dimension, before=0, after=missing)
    if columns % plan.lanes == 0:
        return epilogue
    column = _vector_iterator(roles)
    multiples = [plan.lanes if p == column else 1 for p in range(len(roles.block.iters))]
    crop = _names(s.pad_einsum(block, padding=multiples))[-1]
    if epilogue is None:
        return crop
    s.compute_inline(crop)
    return epilogue


def _pack_constant(
    context: Context, roles: Contraction, plan: ContractionPlan, dimension: int
) -> None:
    """Panels of columns, each one stream in the order in which the tile walks the reduction."""
    s = context.schedule
    name = roles.right.buffer.name
    rank = len(s.buffer(name).shape)
    if (tir.int_value(s.buffer(name).shape[dimension]) or 1) % plan.tile_columns:
        return
    s.layout_split(name, dim=dimension, factor=plan.tile_columns)
    batch = [
        d
        for d, index in enumerate(roles.right.indices)
        if index in [roles.block.iters[p].var for p in roles.batch]
    ]
    moved = [d if d < dimension else d + 1 for d in batch]
    rest = [d for d in range(rank + 1) if d not in (*moved, dimension, dimension + 1)]
    s.layout_reorder(name, order=[*moved, dimension, *rest, dimension + 1])


def _names(made: object) -> list[str]:
    """What a step made, as a list."""
    return [str(name) for name in made] if isinstance(made, tuple) else [str(made)]


def _tile(
    context: Context,
    block: str,
    loops: _Loops,
    plan: ContractionPlan,
    epilogue: str | None,
    packed: str | None,
) -> None:
    s = context.schedule
    cut = len(loops.reduce) == 1 and plan.reduce_per_block < (
        extent_of(context, loops.reduce[0]) or 0
    )
    if cut and packed is None:
        _tile_with_cuts(context, block, loops, plan, epilogue)
        return
    if epilogue is None:
        copy = s.cache_write(block, scope="register")
    else:
        copy = epilogue
        s.set_scope(s.block(block).writes[0].buffer.name, scope="register")
    stays = packed is not None and _right_stays(context, block, loops, plan)
    rows, columns = _split_tile(context, loops, plan, with_blocks=not stays)
    outer = [*loops.batch, *loops.outer_rows, *loops.outer_columns]
    around = [*outer, *rows.tiles] if stays else [*outer, *rows.blocks, columns.outer]
    tiles = [columns.outer] if stays else list(rows.tiles)
    walk, streams = _streams(context, loops, plan)
    s.reorder(*around, *tiles, *walk, *streams, *rows.inner, columns.inner)
    shared, panel = _share(context, around)
    if packed is not None:
        place = outer[-1] if stays else panel
        _finish_packing(context, s.compute_at(packed, place if place in s.loops(block) else shared))
    made = s.reverse_compute_at(copy, tiles[-1] if tiles else panel)
    init = s.decompose_reduction(block, walk[0])
    _finish_tile(context, block, len(rows.inner) + len(streams))
    _finish_tile(context, init, len(rows.inner))
    _finish_copy(context, made)
    parallelize(context, shared, plan.cycles)


def _right_stays(context: Context, block: str, loops: _Loops, plan: ContractionPlan) -> bool:
    """Whether to pack the whole right operand of a batch, and walk rows outside, panels inside.

    Where it stays in the cache, the left operand and the result are then single streams. (A small
    constant that is packed ahead gains nothing: its panels are streams already.)
    """
    extents = [extent_of(context, name) for name in (loops.column, *loops.reduce)]
    if loops.row is None or not loops.batch or loops.outer_columns or None in extents:
        return False
    size = context.schedule.block(block).writes[0].buffer.dtype.size_bytes
    right = size * prod(extent or 1 for extent in extents)
    batches = prod(extent_of(context, name) or 1 for name in loops.batch)
    apart = context.threads == 1 or batches >= 4 * context.threads
    return apart and plan.tile_rows > 1 and right <= context.target.cache(2).share_bytes / 8


def _streams(
    context: Context, loops: _Loops, plan: ContractionPlan
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The walk along the reduction, and loops over the places where it goes on side by side.

    A tile of one row uses each element of the right operand once and waits for memory, which
    delivers several streams faster than one.
    """
    extent = extent_of(context, loops.reduce[-1]) or 0
    if plan.tile_rows > 1 or extent % _STREAMS or extent < _STREAMED_REDUCTION:
        return loops.reduce, ()
    streams, walk = context.schedule.split(loops.reduce[-1], extent // _STREAMS)
    return (*loops.reduce[:-1], walk), (streams,)


def _share(context: Context, around: list[str]) -> tuple[str, str]:
    """The loop for the threads, fused from no more loops than they need, and the innermost one.

    A loop that stays by itself is cut where its last panel is narrower; a fused one cannot be.
    """
    iterations, count = 1, 0
    while count < len(around) and iterations < 4 * context.threads:
        iterations *= extent_of(context, around[count]) or 4 * context.threads
        count += 1
    if context.threads == 1 or count == 1:
        return around[0], around[-1]
    shared = str(context.schedule.fuse(*around[:count]))
    return shared, shared if count == len(around) else around[-1]


@dataclass(frozen=True)
class _Split:
    blocks: tuple[str, ...]
    tiles: tuple[str, ...]
    inner: tuple[str, ...]


@dataclass(frozen=True)
class _Panels:
    outer: str
    inner: str


def _split_tile(
    context: Context, loops: _Loops, plan: ContractionPlan, *, with_blocks: bool = True
) -> tuple[_Split, _Panels]:
    s = context.schedule
    outer, inner = s.split(loops.column, plan.tile_columns)
    columns = _Panels(outer, inner)
    if loops.row is None:
        return _Split((), (), ()), columns
    extent = extent_of(context, loops.row)
    if extent is None:
        tiles, row = s.split(loops.row, plan.tile_rows)
        return _Split((), (tiles,), (row,)), columns
    cover = covers.uneven(extent, plan.tile_rows)
    tiles, row = s.split(
        loops.row, tuple((size, tir.int_value(count)) for size, count in cover.segments)
    )
    count = math.ceil(extent / plan.tile_rows)
    if not with_blocks or plan.row_tiles_per_block >= count:
        return _Split((), (tiles,), (row,)), columns
    blocks, tiles = s.split(tiles, plan.row_tiles_per_block)
    return _Split((blocks,), (tiles,), (row,)), columns


def _finish_tile(context: Context, block: str, rows: int) -> None:
    """Unroll the rows (0 or 1 loops) and vectorise the columns of a micro tile."""
    s = context.schedule
    *outer, column = s.loops(block)
    s.vectorize(column)
    for loop in outer[len(outer) - rows :]:
        s.unroll(loop)


def _finish_copy(context: Context, made: object) -> None:
    s = context.schedule
    loops = _names(made)
    s.vectorize(loops[-1])
    for loop in loops[:-1]:
        s.unroll(loop)


def _finish_packing(context: Context, made: object) -> None:
    """Copy a panel with whole vectors; it is dense because the buffer shrinks to the panel."""
    loops = _names(made)
    context.schedule.vectorize(loops[-1])


def _tile_with_cuts(
    context: Context, block: str, loops: _Loops, plan: ContractionPlan, epilogue: str | None
) -> None:
    """The reduction in cuts: each adds a register tile of partial sums to the result.

    Loops: blocks of rows and spans of panels (fused, parallel), cuts, panels, tiles.
    """
    s = context.schedule
    (reduce,) = loops.reduce
    cuts, _ = s.split(reduce, plan.reduce_per_block)
    partial = s.rfactor(cuts)
    s.set_scope(s.block(partial).writes[0].buffer.name, scope="register")
    folded = _loops_of_fold(context, block)
    rows, columns = _split_tile(context, folded, plan)
    panels = extent_of(context, columns.outer) or 1
    spans, panel = s.split(columns.outer, math.ceil(panels / context.threads))
    around = [*folded.batch, *folded.outer_rows, *folded.outer_columns, *rows.blocks, spans]
    (cut,) = folded.reduce
    s.reorder(*around, cut, panel, *rows.tiles, *rows.inner, columns.inner)
    shared = s.fuse(*around) if len(around) > 1 else around[0]
    made = s.compute_at(partial, rows.tiles[-1] if rows.tiles else panel)
    _order_partial(context, partial, made, len(rows.inner))
    _finish_tile(context, block, len(rows.inner))
    if epilogue is not None:
        _finish_epilogue(context, s.reverse_compute_at(epilogue, shared), plan)
    parallelize(context, shared, plan.cycles)


def _loops_of_fold(context: Context, block: str) -> _Loops:
    """Roles of the loops of the block that folds partial sums: as before, with the cuts."""
    node = context.schedule.block(block)
    names = [iter_loop(context, block, p) for p in range(len(node.iters))]
    return _Loops((), tuple(names[:-3]), names[-3], (), names[-2], (names[-1],))


def _order_partial(context: Context, partial: str, made: object, rows: int) -> None:
    """The micro tile of one cut: the walk along the reduction outside, rows and columns inside."""
    s = context.schedule
    node = s.block(partial)
    fresh_loops = _names(made)
    reduce = [
        name
        for name in fresh_loops
        for it, binding in zip(node.iters, node.bindings, strict=True)
        if it.kind is tir.IterKind.REDUCE and s.loop(name).var in free_vars(binding)
    ]
    spatial = [name for name in fresh_loops if name not in reduce]
    single = [name for name in spatial if extent_of(context, name) == 1]
    s.reorder(*single, *reduce, *(name for name in spatial if name not in single))
    init = s.decompose_reduction(partial, reduce[0])
    _finish_tile(context, partial, rows)
    _finish_tile(context, init, rows)


def _finish_epilogue(context: Context, made: object, plan: ContractionPlan) -> None:
    """An epilogue that runs over a finished span of the result."""
    loops = _names(made)
    vector_tail(context, loops[-1], plan.lanes, 4)
