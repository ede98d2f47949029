"""Copies that ask where they are: loops stay apart, so that lowering cuts them at the border."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Final

from tilewright.schedule.recipes.access_order import has_border
from tilewright.schedule.recipes.context import Context, vector_tail
from tilewright.schedule.recipes.group import Group
from tilewright.schedule.recipes.sharing import (
    Nest,
    leading_iterations,
    nest_of,
    share_several,
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
from tilewright.schedule.recipes.table import Costs, Table
from tilewright.schedule.recipes.work import Work, work_in
from tilewright.target import MachineModel, Target

__all__ = ["BORDER", "BorderPoint", "BorderShape"]


@dataclass(frozen=True)
class BorderShape:
    """The loops of a copy, and its work."""

    nest: Nest
    work: Work
    threads: int


@dataclass(frozen=True)
class BorderPoint:
    """Vectors per statement, and how many of the loops that run more than once threads share."""

    vectors: int
    shared: int
    parallel: int


class _Border:
    name = "border"
    point = BorderPoint

    def match(self, context: Context, group: Group) -> BorderShape | None:
        (block,) = group.blocks
        node, loops = context.schedule.block(block), context.schedule.loops(block)
        if not loops or not has_border(node):
            return None
        work = work_in(node, node.iters[-1].var, context.target)
        return BorderShape(nest_of(context, loops), work, context.threads)

    def space(self, shape: BorderShape, target: Target) -> Table[BorderPoint]:
        del target
        # Three digits and more of one number leave conditions that lowering does not cut at.
        most = min(2, sum(extent != 1 for extent in shape.nest.extents[:-1]))
        return Table.combined(
            BorderPoint,
            {"vectors": vector_numbers(shape.work, shape.nest.extents[-1])},
            ways_to_share(most, shape.threads),
        )

    def cycles(self, shape: BorderShape, machine: MachineModel, table: Table[BorderPoint]) -> Costs:
        *outer, length = shape.nest.extents
        work, vectors, parallel = shape.work, table["vectors"], table["parallel"]
        each = line_cycles(work, machine, length, vectors, is_known=shape.nest.known[-1])
        cycles = prod(outer) * (each + machine.loops.iteration_cycles) + code_cycles(
            work, machine, line_statements(work, length, vectors)
        )
        cycles = moved(machine, cycles, work.read_bytes + work.written_bytes, parallel)
        iterations = leading_iterations(outer, table["shared"])
        return shared_cycles(machine, cycles, iterations, table["shared"], shape.threads, parallel)

    def apply(self, context: Context, group: Group, shape: BorderShape, point: BorderPoint) -> None:
        *around, inner = context.schedule.loops(group.blocks[0])
        vector_tail(context, inner, shape.work.lanes, point.vectors)
        share_several(context, around, point.shared, parallel=bool(point.parallel))


BORDER: Final = _Border()
