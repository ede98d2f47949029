"""Reductions across vectors (column sums, pooling, windows): sums stay in registers.

for tile of columns:                                  (threads share the first loops)
    sums = 0                                          (registers: `vectors`)
    for element of the column or window:              (the innermost loops unrolled)
        sums += input[…, columns]
    out = epilogue(sums)
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np

from tilewright.schedule.primitives.split import is_multiple
from tilewright.schedule.recipes.context import (
    Context,
    extent_of,
    iter_loop,
    lanes_of,
    split_for_vectors,
)
from tilewright.schedule.recipes.group import Group
from tilewright.schedule.recipes.sharing import (
    Nest,
    leading_iterations,
    nest_of,
    share_several,
    shared_cycles,
    ways_to_share,
)
from tilewright.schedule.recipes.streams import code_cycles, moved, vector_cycles
from tilewright.schedule.recipes.table import Column, Costs, Table
from tilewright.schedule.recipes.work import Work, work_in
from tilewright.target import MachineModel, Target
from tilewright.tensor import ir as tir

__all__ = ["ACROSS", "AcrossPoint", "AcrossShape"]

_VECTORS = (1, 2, 3, 4, 6, 8, 12, 16)

_MOST_UNROLLED = 1024
"""Statements at most: compiling takes as long as the code is."""


@dataclass(frozen=True)
class AcrossShape:
    """Loops around, columns, the loops of the column or window, and the work of a step."""

    around: Nest
    columns: int
    columns_known: bool
    walks: tuple[int, ...]
    walks_known: tuple[bool, ...]
    work: Work
    element_bytes: int
    threads: int

    @property
    def step_bytes(self) -> int:
        """From one element of a column to the next; 0 if not known."""
        return self.columns * self.element_bytes if self.columns_known else 0

    def unrolled(self, count: int) -> int:
        """Steps of the innermost loops of a walk."""
        return prod(self.walks[len(self.walks) - count :])


@dataclass(frozen=True)
class AcrossPoint:
    """Vectors of sums, innermost loops that are unrolled, leading loops that threads share."""

    vectors: int
    unrolled: int
    shared: int
    parallel: int


class _Across:
    name = "across"
    point = AcrossPoint

    def match(self, context: Context, group: Group) -> AcrossShape | None:
        (block,) = group.blocks
        s = context.schedule
        outer, walks = _loops(context, block)
        if not outer or not walks:
            return None
        node = s.block(block)
        inner = [it.var for it in node.iters if it.kind is tir.IterKind.SPATIAL][-1]
        columns, walked = nest_of(context, outer[-1:]), nest_of(context, walks)
        work = work_in(node, inner, context.target)
        return AcrossShape(
            around=nest_of(context, outer[:-1]),
            columns=columns.extents[0],
            columns_known=columns.known[0],
            walks=walked.extents,
            walks_known=walked.known,
            work=work,
            element_bytes=node.writes[0].buffer.dtype.size_bytes,
            threads=context.threads,
        )

    def space(self, shape: AcrossShape, target: Target) -> Table[AcrossPoint]:
        lanes, registers = shape.work.lanes, target.vector_registers
        widest = max(1, -(-shape.columns // lanes))
        numbers = [n for n in _VECTORS if n <= min(widest, registers - 2)] or [1]
        known = 0  # innermost loops whose extents are numbers
        while known < len(shape.walks) and shape.walks_known[-known - 1]:
            known += 1
        several = sum(extent != 1 for extent in shape.around.extents)
        table = Table.combined(
            AcrossPoint,
            {"vectors": numbers},
            {"unrolled": range(known + 1)},
            ways_to_share(several + 1, shape.threads),
        )
        statements = _steps(shape, table) * table["vectors"]
        tiles = _tiles(shape, table)
        keep = (table["unrolled"] == 0) | (statements <= _MOST_UNROLLED)
        return table.where(keep & (table["shared"] <= several + (tiles > 1)))

    def cycles(self, shape: AcrossShape, machine: MachineModel, table: Table[AcrossPoint]) -> Costs:
        work, vectors, parallel = shape.work, table["vectors"], table["parallel"]
        lanes, length = work.lanes, prod(shape.walks)
        whole, rest = np.divmod(-(-shape.columns // lanes), vectors)
        total = np.zeros(len(table))
        for width, times in ((vectors, whole), (rest, rest > 0)):
            steps = np.maximum(1, width) * vector_cycles(work, machine, np.ones(len(table)))
            chain = machine.fma_latency  # every sum waits for itself
            each = length * np.maximum(steps, chain) + width / machine.vector_stores
            total = total + times * (each + machine.tile_cycles)
        if not shape.columns_known:  # half a tile is left over, which single vectors do
            alone = np.maximum(vector_cycles(work, machine, np.ones(1)), machine.fma_latency)
            total = total + vectors / 2 * (length * alone + machine.tile_cycles)
        loops = length / np.maximum(1, _steps(shape, table)) * machine.loops.iteration_cycles
        total = total + _tiles(shape, table) * (loops + _lines(shape, machine, table))
        cycles = shape.around.iterations * total
        cycles = cycles + code_cycles(work, machine, vectors * _steps(shape, table))
        cycles = moved(machine, cycles, work.read_bytes + work.written_bytes, parallel)
        tiles = _tiles(shape, table)
        iterations = leading_iterations([*shape.around.extents, tiles], table["shared"])
        return shared_cycles(machine, cycles, iterations, table["shared"], shape.threads, parallel)

    def apply(self, context: Context, group: Group, shape: AcrossShape, point: AcrossPoint) -> None:
        del shape
        s, (block,) = context.schedule, group.blocks
        node = s.block(block)
        outer, walks = _loops(context, block)
        if group.epilogue is None:
            copy = s.cache_write(block, scope="register")
        else:
            copy = group.epilogue
            s.set_scope(node.writes[0].buffer.name, scope="register")
        lanes = lanes_of(context, block)
        tiles, lane = _column_tiles(context, outer[-1], lanes, point.vectors)
        around = [*outer[:-1], tiles]
        s.reorder(*around, *walks, lane)
        made = s.reverse_compute_at(copy, tiles)
        init = s.decompose_reduction(block, walks[0])
        for name in (block, init):
            s.vectorize(s.loops(name)[-1])
        copied = made if isinstance(made, tuple) else (made,)
        s.vectorize(copied[-1])
        for loop in reversed(walks[len(walks) - point.unrolled :]):
            s.unroll(loop)
        share_several(context, around, point.shared, parallel=bool(point.parallel))


def _loops(context: Context, block: str) -> tuple[list[str], list[str]]:
    """The loops over results, and those of the reduction."""
    found: dict[tir.IterKind, list[str]] = {tir.IterKind.SPATIAL: [], tir.IterKind.REDUCE: []}
    for position, it in enumerate(context.schedule.block(block).iters):
        found[it.kind].append(iter_loop(context, block, position))
    return found[tir.IterKind.SPATIAL], found[tir.IterKind.REDUCE]


def _column_tiles(context: Context, loop: str, lanes: int, vectors: int) -> tuple[str, str]:
    """Tiles of columns; what a symbolic number leaves over goes by ever narrower vectors.

    Each of them walks the column once more, single columns would do so for each of them.
    """
    s = context.schedule
    if extent_of(context, loop) is not None or is_multiple(s.loop(loop).extent, lanes):
        return split_for_vectors(context, loop, lanes, vectors)
    narrower = {1 << bit for bit in range(lanes.bit_length())}
    outer, inner = s.split(loop, sorted({lanes * vectors, *narrower}, reverse=True))
    return str(outer), str(inner)


def _tiles(shape: AcrossShape, table: Table[AcrossPoint]) -> Column:
    """Iterations of the loop over columns of sums."""
    return np.asarray(-(-shape.columns // (table["vectors"] * shape.work.lanes)))


def _steps(shape: AcrossShape, table: Table[AcrossPoint]) -> Column:
    """Steps of a walk that stand side by side in the code."""
    counts = [shape.unrolled(n) for n in range(len(shape.walks) + 1)]
    return np.asarray(np.array(counts, np.int64)[table["unrolled"]])


def _lines(shape: AcrossShape, machine: MachineModel, table: Table[AcrossPoint]) -> Costs:
    """What a tile waits for lines: those that it uses in part come again, and pages are far."""
    first, length = machine.levels[0], prod(shape.walks)
    width = table["vectors"] * shape.work.lanes * shape.element_bytes
    again = np.maximum(0.0, first.line_bytes / width - 1) * width * length
    stays = length * first.line_bytes <= first.size_bytes / 2
    waits = np.where(stays, 0.0, again / machine.level(2).read)
    pages = length * min(1.0, shape.step_bytes / machine.page_bytes)
    far = pages if pages > machine.loops.near_pages else 0.0
    return np.asarray(waits + far * machine.loops.page_cycles / 2)


ACROSS: Final = _Across()
