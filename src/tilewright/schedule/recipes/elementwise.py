"""Elementwise blocks: one pass over memory, full vectors, threads over what lies outside.

`ELEMENTWISE` is for blocks that read along the lines of what they write; `schedule_elementwise`
knows the recipes of all others, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np

from tilewright.schedule.recipes.access_order import across_lines, dense_loops, has_border
from tilewright.schedule.recipes.border import BORDER
from tilewright.schedule.recipes.choices import CHOICES
from tilewright.schedule.recipes.context import Context, vector_tail
from tilewright.schedule.recipes.group import Group
from tilewright.schedule.recipes.recipe import follow
from tilewright.schedule.recipes.scattered import SCATTERED
from tilewright.schedule.recipes.sharing import (
    Nest,
    nest_of,
    share_nest,
    shared_cycles,
    ways_to_share,
)
from tilewright.schedule.recipes.streams import (
    code_cycles,
    line_cycles,
    line_statements,
    moved,
    vector_numbers,
)
from tilewright.schedule.recipes.table import Column, Costs, Table
from tilewright.schedule.recipes.transpose import TRANSPOSE
from tilewright.schedule.recipes.work import Work, work_in
from tilewright.target import MachineModel, Target
from tilewright.tensor.analysis.structure import Kind

__all__ = [
    "ELEMENTWISE",
    "ElementwisePoint",
    "ElementwiseShape",
    "across_lines",
    "has_border",
    "schedule_elementwise",
]


@dataclass(frozen=True)
class ElementwiseShape:
    """The loops of a block, how many of the innermost ones are one run of memory, its work."""

    nest: Nest
    dense: int
    work: Work
    threads: int

    def length(self, fused: int) -> int:
        """Elements of a line, if the innermost loops are one."""
        return prod(self.nest.extents[-fused:])

    def is_known(self, fused: int) -> bool:
        """Whether that is a number."""
        return all(self.nest.known[-fused:])


@dataclass(frozen=True)
class ElementwisePoint:
    """Innermost loops that are one, vectors per statement, leading loops that threads share."""

    fused: int
    vectors: int
    shared: int
    parallel: int


class _Elementwise:
    name = "elementwise"
    point = ElementwisePoint

    def match(self, context: Context, group: Group) -> ElementwiseShape | None:
        (block,) = group.blocks
        node, loops = context.schedule.block(block), context.schedule.loops(block)
        if not loops:
            return None
        work = work_in(node, node.iters[-1].var, context.target)
        dense = min(dense_loops(node), len(loops))
        return ElementwiseShape(nest_of(context, loops), dense, work, context.threads)

    def space(self, shape: ElementwiseShape, target: Target) -> Table[ElementwisePoint]:
        del target
        count = len(shape.nest.extents)
        tables = [
            Table.combined(
                ElementwisePoint,
                {"fused": [fused]},
                {"vectors": vector_numbers(shape.work, shape.length(fused))},
                ways_to_share(count - fused + 1, shape.threads),
            )
            for fused in range(1, shape.dense + 1)
        ]
        table = Table.joined(tables)
        outer, tiles = count - table["fused"], _tiles(shape, table)
        # To tell a row and a tile from one number that is not known costs more than threads gain.
        is_known = (outer == 0) | all(shape.nest.known)
        has_tiles = (tiles != 1) & is_known
        return table.where(table["shared"] <= outer + has_tiles)

    def cycles(
        self, shape: ElementwiseShape, machine: MachineModel, table: Table[ElementwisePoint]
    ) -> Costs:
        work, extents = shape.work, shape.nest.extents
        tiles, outer = _tiles(shape, table), len(extents) - table["fused"]
        lines, each, code = np.ones((3, len(table)))
        leading = np.cumprod([1.0, *extents], dtype=np.float64)
        for fused in range(1, shape.dense + 1):
            at = table["fused"] == fused
            length, known = shape.length(fused), shape.is_known(fused)
            lines[at] = prod(extents[:-fused])
            each[at] = line_cycles(work, machine, length, table["vectors"][at], is_known=known)
            code[at] = line_statements(work, length, table["vectors"][at])
        cycles = lines * (each + machine.loops.iteration_cycles)
        cycles = cycles + code_cycles(work, machine, code)
        cycles = moved(machine, cycles, work.read_bytes + work.written_bytes, table["parallel"])
        shared = np.minimum(table["shared"], outer)
        iterations = leading[shared] * np.where(table["shared"] > outer, tiles, 1)
        return shared_cycles(
            machine, cycles, iterations, table["shared"], shape.threads, table["parallel"]
        )

    def apply(
        self, context: Context, group: Group, shape: ElementwiseShape, point: ElementwisePoint
    ) -> None:
        s, (block,) = context.schedule, group.blocks
        *outer, inner = s.loops(block)
        if point.fused > 1:
            inner = str(s.fuse(*outer[1 - point.fused :], inner))
            outer = outer[: 1 - point.fused]
        tiles, _ = vector_tail(context, inner, shape.work.lanes, point.vectors)
        around = [*outer, *([tiles] if tiles is not None else [])]
        share_nest(context, around, point.shared, parallel=bool(point.parallel))


def _tiles(shape: ElementwiseShape, table: Table[ElementwisePoint]) -> Column:
    """Iterations of the loop over tiles; one means that there is none."""
    lengths = np.array([1, *(shape.length(n) for n in range(1, shape.dense + 1))], np.float64)
    known = np.array([True, *(shape.is_known(n) for n in range(1, shape.dense + 1))])
    width = table["vectors"] * shape.work.lanes
    tiles = np.ceil(lengths[table["fused"]] / width)
    return np.asarray(np.where(known[table["fused"]], tiles, np.maximum(2.0, tiles)))


ELEMENTWISE: Final = _Elementwise()


def schedule_elementwise(context: Context, block: str) -> None:
    """Schedule a block without reductions by the first recipe that fits it."""
    group = Group(Kind.ELEMENTWISE, (block,))
    follow(SCATTERED, context, group) or follow(TRANSPOSE, context, group) or follow(
        CHOICES, context, group
    ) or follow(BORDER, context, group) or follow(ELEMENTWISE, context, group)
