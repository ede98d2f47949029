"""Rows: blocks that share their leading dimensions, with vectors along the rest (softmax, norms).

A group runs row by row, each row staying in the first cache. A fold joins several vectors as a tree
before it combines their lanes, so that the lanes cost little and no chain of operations is long.
The first stage of a row only walks through it and would wait for memory; a stage that computes a
function has time to fetch the next row.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np

from tilewright.schedule.recipes.context import Context, extent_of, lanes_of, vector_tail
from tilewright.schedule.recipes.group import Group
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
    vector_cycles,
    vector_numbers,
)
from tilewright.schedule.recipes.table import Column, Costs, Table
from tilewright.schedule.recipes.work import ASSUMED_EXTENT, Work, extent_or_assumed, work_in
from tilewright.target import MachineModel, Target
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import loads_of
from tilewright.tensor.visit import free_vars

__all__ = ["ROWS", "RowStage", "RowsPoint", "RowsShape", "runs_along"]


@dataclass(frozen=True)
class RowStage:
    """One block of a row: lines of so many elements, or a single element."""

    work: Work
    lines: int
    length: int
    is_known: bool
    folds: bool


@dataclass(frozen=True)
class RowsShape:
    """The loops over rows, and what happens in each of them."""

    nest: Nest
    stages: tuple[RowStage, ...]
    fetched_bytes: float
    """What a stage that computes functions can fetch of the next row; 0 if none can."""
    moved_bytes: float
    """Of parameters that are read and written, each once."""
    threads: int


@dataclass(frozen=True)
class RowsPoint:
    """Decisions of the recipe."""

    vectors: int
    """Per statement of stages that neither fold nor compute functions."""
    computed: int
    """The same of those that compute functions."""
    folded: int
    """Vectors that are joined before their lanes are."""
    fetch: int
    """Whether the next row is asked for."""
    shared: int
    parallel: int


def runs_along(block: tir.Block) -> bool:
    """Whether the inputs that move with the reduction are contiguous along it, and none across."""
    reduce = {it.var for it in block.iters if it.kind is tir.IterKind.REDUCE}
    moving = [
        load.indices[-1]
        for load in loads_of(block)
        if any(free_vars(index) & reduce for index in load.indices)
    ]
    return bool(moving) and all(free_vars(last) <= reduce for last in moving)


class _Rows:
    name = "rows"
    point = RowsPoint

    def match(self, context: Context, group: Group) -> RowsShape | None:
        s = context.schedule
        stages = tuple(_stage(context, block, group.shared) for block in group.blocks)
        loops = s.loops(group.blocks[-1])[: group.shared]
        nodes = [s.block(block) for block in group.blocks]
        params = set(s.func.params)
        touched = {r.buffer for node in nodes for r in (*node.reads, *node.writes)} & params
        rows = prod(extent_or_assumed(s.loop(loop).extent) for loop in loops)
        own = [
            _next_row(context, block, group.shared)
            for block, stage in zip(group.blocks, stages, strict=True)
            if stage.work.has_functions and stage.length > 1
        ]
        fetched = {buffer for buffers in own for buffer in buffers}
        return RowsShape(
            nest_of(context, loops),
            stages,
            sum(_bytes(buffer) for buffer in fetched) / max(1, rows),
            sum(_bytes(buffer) for buffer in touched),
            context.threads,
        )

    def space(self, shape: RowsShape, target: Target) -> Table[RowsPoint]:
        del target
        plain, computed, folded = ([1], [1], [1])
        for stage in shape.stages:
            numbers = list(vector_numbers(stage.work, stage.length))
            if stage.folds:
                folded = max(folded, numbers, key=len)
            elif stage.work.has_functions:
                computed = max(computed, numbers, key=len)
            else:
                plain = max(plain, numbers, key=len)
        return Table.combined(
            RowsPoint,
            {"vectors": plain},
            {"computed": computed},
            {"folded": folded},
            {"fetch": [0, 1] if shape.fetched_bytes else [0]},
            ways_to_share(len(shape.nest.extents), shape.threads),
        )

    def cycles(self, shape: RowsShape, machine: MachineModel, table: Table[RowsPoint]) -> Costs:
        rows, parallel, fetch = shape.nest.iterations, table["parallel"], table["fetch"]
        each, code = np.zeros(len(table)), np.zeros(len(table))
        wishes = fetch * shape.fetched_bytes / machine.levels[0].line_bytes
        for stage in shape.stages:
            vectors = _vectors(stage, table)
            asked: Costs | float = 0.0
            if stage.work.has_functions and stage.length > 1:
                asked = wishes * stage.work.lanes / (stage.lines * stage.length)
            each += stage.lines * _stage_cycles(stage, machine, vectors, asked)
            statements = line_statements(stage.work, stage.length, vectors)
            code += code_cycles(stage.work, machine, statements)
        cycles = rows * (each + machine.loops.iteration_cycles) + code
        cycles = moved(machine, cycles, shape.moved_bytes, parallel, fetch)
        iterations = np.cumprod([1.0, *shape.nest.extents], dtype=np.float64)[table["shared"]]
        return shared_cycles(machine, cycles, iterations, table["shared"], shape.threads, parallel)

    def apply(self, context: Context, group: Group, shape: RowsShape, point: RowsPoint) -> None:
        s, blocks = context.schedule, group.blocks
        loops = list(s.loops(blocks[-1])[: group.shared])
        for block in reversed(blocks[:-1]):
            s.compute_at(block, loops[-1])
        for block, stage in zip(blocks, shape.stages, strict=True):
            vectors = _of_point(stage, point)
            tiles = _finish_row(context, block, loops[-1], vectors, point)
            if point.fetch and stage.work.has_functions and tiles is not None:
                read = _next_row(context, block, group.shared)
                if read:
                    s.annotate(tiles, "prefetch", tuple(buffer.name for buffer in read))
        share_nest(context, loops, point.shared, parallel=bool(point.parallel))


def _of_point(stage: RowStage, point: RowsPoint) -> int:
    if stage.folds:
        return point.folded
    return point.computed if stage.work.has_functions else point.vectors


def _vectors(stage: RowStage, table: Table[RowsPoint]) -> Column:
    if stage.folds:
        return table["folded"]
    return table["computed" if stage.work.has_functions else "vectors"]


def _stage(context: Context, block: str, shared: int) -> RowStage:
    node = context.schedule.block(block)
    inside = node.iters[shared:]
    longer = [it for it in inside if tir.int_value(it.extent) != 1]
    inner = longer[-1] if longer else node.iters[-1]
    work = work_in(node, inner.var, context.target)
    *outer, length = [extent_or_assumed(it.extent) for it in longer] or [1]
    is_known = not longer or tir.int_value(inner.extent) is not None
    return RowStage(work, prod(outer), length, is_known, node.init is not None)


def _stage_cycles(
    stage: RowStage, machine: MachineModel, vectors: Column, more_loads: Costs | float
) -> Costs:
    """One line of a stage."""
    work = stage.work
    if stage.length == 1:
        return vector_cycles(work, machine, np.ones(len(vectors)))
    return line_cycles(
        work,
        machine,
        stage.length,
        vectors,
        is_known=stage.is_known,
        folds=stage.folds,
        more_loads=more_loads,
    )


def _bytes(buffer: tir.Buffer) -> float:
    sizes = (tir.int_value(size) for size in buffer.shape)
    return float(prod(ASSUMED_EXTENT if n is None else n for n in sizes) * buffer.dtype.size_bytes)


def _next_row(context: Context, block: str, shared: int) -> list[tir.Buffer]:
    """The parameters of which a block reads the row that the first of the shared loops says."""
    node, params = context.schedule.block(block), set(context.schedule.func.params)
    rows = {it.var for it in node.iters[:shared]}
    read = {
        load.buffer: None
        for load in loads_of(node)
        if load.buffer in params and load.indices and free_vars(load.indices[0]) & rows
    }
    return list(read)


def _inside(context: Context, block: str, row: str) -> list[str]:
    """The loops of a block inside the row loop, without those of one iteration."""
    loops = context.schedule.loops(block)
    inside = loops[loops.index(row) + 1 :]
    return [loop for loop in inside if extent_of(context, loop) != 1]


def _finish_row(
    context: Context, block: str, row: str, vectors: int, point: RowsPoint
) -> str | None:
    """Vectorise one stage inside the row loop; the loop over vectors, if there is one."""
    s = context.schedule
    longer = _inside(context, block, row)
    if not longer:
        return None
    lanes = lanes_of(context, block)
    if s.block(block).init is not None:
        init = s.decompose_reduction(block, longer[0])
        _finish_row(context, init, row, point.vectors, point)
    tiles, _ = vector_tail(context, longer[-1], lanes, vectors)
    return tiles


ROWS: Final = _Rows()
