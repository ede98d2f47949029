"""Copies whose source is contiguous along another dimension than their result.

    for tile of rows, tile of columns:            (either order; threads share the first ones)
        for square tile beside another:           (in both directions, as far as a line reaches)
            columns of it = rows of it, turned    (registers: `side` vectors, shuffles)

The strided loads of a square tile become whole rows and shuffles. Lines on both sides are used up
while they are near; those that are a multiple of a page apart share few places in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from tilewright.schedule.recipes.access_order import across_lines, joined_loops
from tilewright.schedule.recipes.context import Context, extent_of, lanes_of
from tilewright.schedule.recipes.group import Group
from tilewright.schedule.recipes.sharing import nest_of, share_several, ways_to_share
from tilewright.schedule.recipes.table import Costs, Table
from tilewright.schedule.recipes.transpose_cycles import transpose_cycles
from tilewright.schedule.recipes.transpose_shape import TransposePoint, TransposeShape
from tilewright.schedule.recipes.work import extent_or_assumed, work_in
from tilewright.target import MachineModel, Target
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import loads_of
from tilewright.tensor.visit import free_vars

__all__ = ["TRANSPOSE"]

_BESIDE = (1, 2, 4)
"""Square tiles side by side. Each is unrolled: eight would be thousands of instructions."""

_SHARED = 2
"""Loops at most that threads share as one: more digits are left in every address."""


class _Transpose:
    name = "transpose"
    point = TransposePoint

    def match(self, context: Context, group: Group) -> TransposeShape | None:
        (block,) = group.blocks
        s = context.schedule
        node = s.block(block)
        across = across_lines(node) if s.loops(block) else None
        if across is None or across >= len(s.loops(block)) - 1:
            return None
        last = len(s.loops(block)) - 1
        row_loops, column_loops = (_joined(context, block, n) for n in (across, last))
        loops, rows, columns = _parts(s.loops(block), across, row_loops, column_loops)
        work = work_in(node, node.iters[-1].var, context.target)
        size = node.writes[0].buffer.dtype.size_bytes
        known = None not in (extent_of(context, loop) for loop in (*rows, *columns))
        return TransposeShape(
            around=nest_of(context, loops),
            across=across,
            rows=prod(extent_or_assumed(s.loop(loop).extent) for loop in rows),
            columns=prod(extent_or_assumed(s.loop(loop).extent) for loop in columns),
            is_known=known,
            lanes=lanes_of(context, block),
            element_bytes=size,
            source_step=_source_step(node),
            result_step=_result_step(node, across),
            operations=work.arithmetic.operations,
            threads=context.threads,
            row_loops=row_loops,
            column_loops=column_loops,
        )

    def space(self, shape: TransposeShape, target: Target) -> Table[TransposePoint]:
        del target
        sides = [n for n in (shape.lanes, shape.lanes // 2, shape.lanes // 4) if n >= 2]
        beside = _BESIDE if shape.is_known else (1,)
        several = sum(extent != 1 for extent in shape.around.extents)
        table = Table.combined(
            TransposePoint,
            {"side": sides or [1]},
            {"rows_beside": beside},
            {"columns_beside": beside},
            {"source_first": [0, 1]},
            {"along_source": [0, 1]},
            ways_to_share(min(_SHARED, several + 2), shape.threads),
        )
        side = table["side"]
        row_tiles, column_tiles = shape.tiles(table)
        is_own = (table["rows_beside"] == 1) | ((table["rows_beside"] - 1) * side < shape.rows)
        is_own &= (table["columns_beside"] == 1) | (
            (table["columns_beside"] - 1) * side < shape.columns
        )
        one = (table["rows_beside"] == 1) | (table["columns_beside"] == 1)
        is_own &= ~one | (table["source_first"] == 0)  # one order inside of the tiles
        open_loops = several + (row_tiles > 1) + (column_tiles > 1)
        return table.where(is_own & (table["shared"] <= open_loops))

    def cycles(
        self, shape: TransposeShape, machine: MachineModel, table: Table[TransposePoint]
    ) -> Costs:
        return transpose_cycles(shape, machine, table)

    def apply(
        self, context: Context, group: Group, shape: TransposeShape, point: TransposePoint
    ) -> None:
        s, (block,) = context.schedule, group.blocks
        own = shape.across, shape.row_loops, shape.column_loops
        loops, rows, columns = _parts(s.loops(block), *own)
        row_tiles, row = _square(context, _fused(context, rows), point.side)
        column_tiles, column = _square(context, _fused(context, columns), point.side)
        inside: list[str] = []
        if point.rows_beside > 1:
            row_tiles, row_beside = map(str, s.split(row_tiles, point.rows_beside))
            inside.append(row_beside)
        if point.columns_beside > 1:
            column_tiles, column_beside = map(str, s.split(column_tiles, point.columns_beside))
            inside.append(column_beside)
        if point.source_first:
            inside.reverse()
        tiles = [row_tiles, column_tiles]
        if point.along_source:
            tiles.reverse()
        around = [*loops, *tiles]
        s.reorder(*around, *inside, row, column)
        s.vectorize(column)
        s.unroll(row)
        share_several(context, around, point.shared, parallel=bool(point.parallel))


def _joined(context: Context, block: str, last: int) -> int:
    """How many loops up to this one are walked as one; just this one if it fills whole tiles."""
    s = context.schedule
    count = joined_loops(s.block(block), last)
    sizes = [extent_of(context, loop) for loop in s.loops(block)[last + 1 - count : last + 1]]
    own = sizes[-1]
    return 1 if None in sizes or own is None or own % lanes_of(context, block) == 0 else count


def _parts(
    loops: Sequence[str], across: int, row_loops: int, column_loops: int
) -> tuple[list[str], list[str], list[str]]:
    """Loops around, those over rows, and those over columns."""
    rows = list(loops[across + 1 - row_loops : across + 1])
    columns = list(loops[len(loops) - column_loops :])
    return [loop for loop in loops if loop not in (*rows, *columns)], rows, columns


def _fused(context: Context, loops: Sequence[str]) -> str:
    return str(context.schedule.fuse(*loops)) if len(loops) > 1 else loops[0]


def _square(context: Context, loop: str, side: int) -> tuple[str, str]:
    """Tiles of one side; what a symbolic extent leaves over goes by a quarter of it, then one."""
    s = context.schedule
    sizes = (
        side if extent_of(context, loop) is not None else sorted({side, side // 4 or 1, 1})[::-1]
    )
    outer, inner = s.split(loop, sizes)
    return str(outer), str(inner)


def _source_step(block: tir.Block) -> int:
    """Bytes from one element of a line of the result to the next one in the source; 0: unknown."""
    inner = block.iters[-1].var
    steps = [0]
    for load in loads_of(block):
        sizes = [tir.int_value(size) for size in load.buffer.shape]
        moved = [d for d, index in enumerate(load.indices) if inner in free_vars(index)]
        if moved and None not in sizes:
            inside = prod(size or 1 for size in sizes[moved[-1] + 1 :])
            steps.append(inside * load.buffer.dtype.size_bytes)
    return max(steps)


def _result_step(block: tir.Block, across: int) -> int:
    """Bytes from one line of the result to the next one of a tile; 0: unknown."""
    store = block.body
    assert isinstance(store, tir.Store)
    row, sizes = block.iters[across].var, [tir.int_value(d) for d in store.buffer.shape]
    moved = [d for d, index in enumerate(store.indices) if row in free_vars(index)]
    if not moved or None in sizes:
        return 0
    return prod(size or 1 for size in sizes[moved[-1] + 1 :]) * store.buffer.dtype.size_bytes


TRANSPOSE: Final = _Transpose()
