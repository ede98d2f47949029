"""A long reduction in cuts: each adds a register tile of partial sums to the result in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilewright.errors import ScheduleError
from tilewright.schedule.recipes.context import (
    Context,
    extent_of,
    iter_loop,
    share_loop,
    vector_tail,
)
from tilewright.schedule.recipes.contraction.digits import column_loop
from tilewright.schedule.recipes.contraction.roles import (
    Loops,
    Operands,
    names_of,
    vector_iterator,
)
from tilewright.schedule.recipes.contraction.space import ContractionPoint
from tilewright.schedule.recipes.contraction.tiling import (
    fetch_ahead,
    finish_tile,
    split_tile,
    unroll_walks,
)
from tilewright.schedule.recipes.elementwise import schedule_elementwise
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import Contraction, contraction
from tilewright.tensor.visit import free_vars

__all__ = ["steps_per_cut", "tile_with_cuts"]

_FINISHED = 4
"""Vectors of finished sums that one iteration of the epilogue takes."""


def steps_per_cut(context: Context, loops: Loops, point: ContractionPoint) -> int | None:
    """How far the outermost loop of the reduction goes in one cut; None if it is not cut."""
    first, *inner = [extent_of(context, loop) for loop in loops.reduce]
    if first is None or None in inner:
        return None
    wanted = point.reduce_per_block // math.prod(extent or 1 for extent in inner)
    dividing = [steps for steps in range(1, wanted + 1) if first % steps == 0]
    found = max(dividing, default=1) if inner else wanted
    return found if found < first else None


def tile_with_cuts(
    context: Context,
    block: str,
    loops: Loops,
    point: ContractionPoint,
    epilogue: str | None,
    operands: Operands,
) -> None:
    """The reduction in cuts: each adds a register tile of partial sums to the result.

    Loops: blocks of rows and spans of panels (fused, parallel), cuts, panels, tiles.
    """
    s = context.schedule
    steps, roles = steps_per_cut(context, loops, point), contraction(s.block(block))
    assert steps is not None
    assert roles is not None
    cuts, _ = s.split(loops.reduce[0], steps)
    partial = s.rfactor(cuts)
    s.set_scope(s.block(partial).writes[0].buffer.name, scope="register")
    folded = _loops_of_fold(context, block, roles)
    rows, columns = split_tile(context, folded, point)
    panels = extent_of(context, columns.outer) or 1
    spans, panel = s.split(columns.outer, math.ceil(panels / point.shares))
    around = [*folded.batch, *folded.outer_rows, *folded.outer_columns, *rows.blocks, spans]
    (cut,) = folded.reduce
    s.reorder(*around, cut, panel, *rows.tiles, *rows.inner, columns.inner)
    shared = s.fuse(*around) if len(around) > 1 else around[0]
    made = s.compute_at(partial, rows.tiles[-1] if rows.tiles else panel)
    ahead = operands.to_fetch(right_stays=False) if point.prefetch else ()
    _order_partial(context, partial, made, point, len(rows.inner), rows.tiles, ahead)
    finish_tile(context, block, len(rows.inner))
    if epilogue is not None:
        _finish_epilogue(context, block, epilogue, shared, point)
    share_loop(context, shared, parallel=bool(point.parallel))


def _loops_of_fold(context: Context, block: str, roles: Contraction) -> Loops:
    """Roles of the loops of the block that folds partial sums: as before, with the cuts.

    Lines of an image may stand between rows and columns.
    """
    node = context.schedule.block(block)
    *names, cut = [iter_loop(context, block, p) for p in range(len(node.iters))]
    row, column = names[roles.rows[-1]], names[vector_iterator(roles)]
    outer = tuple(name for name in names if name not in (row, column))
    return Loops((), outer, row, (), column, (cut,))


def _order_partial(
    context: Context,
    partial: str,
    made: object,
    point: ContractionPoint,
    rows: int,
    tiles: Sequence[str],
    ahead: Sequence[str],
) -> None:
    """The micro tile of one cut: the walk along the reduction outside, rows and columns inside."""
    s = context.schedule
    node = s.block(partial)
    fresh_loops = names_of(made)
    reduce = [
        name
        for name in fresh_loops
        for it, binding in zip(node.iters, node.bindings, strict=True)
        if it.kind is tir.IterKind.REDUCE and s.loop(name).var in free_vars(binding)
    ]
    spatial = [name for name in fresh_loops if name not in reduce]
    single = [name for name in spatial if extent_of(context, name) == 1]
    s.reorder(*single, *reduce, *(name for name in spatial if name not in single))
    walk = unroll_walks(context, reduce, point.unroll)
    fetch_ahead(context, walk[-1], tiles, ahead, point.prefetch)
    init = s.decompose_reduction(partial, walk[0])
    finish_tile(context, partial, rows)
    finish_tile(context, init, rows)


def _finish_epilogue(
    context: Context, block: str, epilogue: str, shared: str, point: ContractionPoint
) -> None:
    """The epilogue over each finished span of the result, or else over all of it at the end."""
    before = context.schedule.copy()
    try:
        loops = names_of(context.schedule.reverse_compute_at(epilogue, shared))
        found = column_loop(context, block, epilogue, loops)
        column, width = found or (loops[-1], 0)
        if width:
            _, column = context.schedule.split(column, width)
            context.schedule.vectorize(column)
        else:
            # What lies with the panels is read panel by panel.
            vectors = point.tile_vectors if point.bias_in_panels else _FINISHED
            vector_tail(context, column, point.lanes, vectors)
    except ScheduleError:  # spans or blocks of rows of two sizes: no simple region, no one extent
        context.schedule.restore(before)
        schedule_elementwise(context, epilogue)
