"""Stores where data says: they run in order, by vectors where they leave the last place alone."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np

from tilewright.schedule.recipes.access_order import is_scattered
from tilewright.schedule.recipes.context import Context, vector_tail
from tilewright.schedule.recipes.group import Group
from tilewright.schedule.recipes.sharing import Nest, nest_of
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
from tilewright.tensor import ir as tir

__all__ = ["SCATTERED", "ScatteredPoint", "ScatteredShape"]


@dataclass(frozen=True)
class ScatteredShape:
    """The loops of a block, its work, and whether its last loop may be vectors."""

    nest: Nest
    work: Work
    has_vectors: bool


@dataclass(frozen=True)
class ScatteredPoint:
    """Vectors per statement; 0 for elements one by one."""

    vectors: int


class _Scattered:
    name = "scattered"
    point = ScatteredPoint

    def match(self, context: Context, group: Group) -> ScatteredShape | None:
        (block,) = group.blocks
        node, loops = context.schedule.block(block), context.schedule.loops(block)
        store = node.body
        if not loops or not is_scattered(node) or not isinstance(store, tir.Store):
            return None
        inner = node.iters[-1].var
        work = work_in(node, inner, context.target)
        return ScatteredShape(nest_of(context, loops), work, store.indices[-1] is inner)

    def space(self, shape: ScatteredShape, target: Target) -> Table[ScatteredPoint]:
        del target
        numbers = vector_numbers(shape.work, shape.nest.extents[-1]) if shape.has_vectors else [0]
        return Table.combined(ScatteredPoint, {"vectors": numbers})

    def cycles(
        self, shape: ScatteredShape, machine: MachineModel, table: Table[ScatteredPoint]
    ) -> Costs:
        work, vectors = shape.work, table["vectors"]
        if not shape.has_vectors:
            one = machine.loops.element_cycles * work.instructions + machine.loops.iteration_cycles
            return np.full(len(table), one * shape.nest.iterations)
        *outer, length = shape.nest.extents
        known = shape.nest.known[-1]
        each = line_cycles(work, machine, length, vectors, is_known=known)
        cycles = prod(outer) * (each + machine.loops.iteration_cycles) + code_cycles(
            work, machine, line_statements(work, length, vectors)
        )
        return moved(machine, cycles, work.read_bytes + work.written_bytes, vectors * 0)

    def apply(
        self, context: Context, group: Group, shape: ScatteredShape, point: ScatteredPoint
    ) -> None:
        if point.vectors:
            inner = context.schedule.loops(group.blocks[0])[-1]
            vector_tail(context, inner, shape.work.lanes, point.vectors)


SCATTERED: Final = _Scattered()
