"""Pairs of blocks that choose among values by the number of an iterator: small transforms.

    R[t, p, j, c] = p == 0 ? … : p == 1 ? … : …       six sums of six elements each
    V[p, q, t, c] = q == 0 ? … : q == 1 ? … : …       of R[t, p, 0…5, c]

The iterators that choose are unrolled, which leaves one value of each choice. Both blocks run for
one vector of the innermost dimension at a time: what the first one makes stays in registers and in
the first cache, and what neighbouring choices share is computed once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Final

import numpy as np

from tilewright.schedule.recipes.context import Context, extent_of, iter_loop, lanes_of
from tilewright.schedule.recipes.contraction.roles import names_of
from tilewright.schedule.recipes.group import Group
from tilewright.schedule.recipes.recipe import follow
from tilewright.schedule.recipes.sharing import (
    Nest,
    leading_iterations,
    share_several,
    shared_cycles,
    ways_to_share,
)
from tilewright.schedule.recipes.streams import code_cycles, moved, vector_cycles
from tilewright.schedule.recipes.table import Costs, Table
from tilewright.schedule.recipes.work import ASSUMED_EXTENT, Work, work_in
from tilewright.target import MachineModel, Target
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import Kind, kind_of, loads_of
from tilewright.tensor.visit import find, free_vars

__all__ = ["CHOICES", "ChoicesPoint", "ChoicesShape", "choices_of", "schedule_choices"]

# An iterator that chooses has at most this many values.
_MOST = 8


def choices_of(block: tir.Block) -> dict[tir.Var, int]:
    """The iterators that choose a value, and how many values they choose among.

    `v == 3` or `v % 4 == 3` for all numbers in question; nothing else may choose.
    """
    if kind_of(block) is not Kind.ELEMENTWISE:
        return {}
    extents = {it.var: tir.int_value(it.extent) or _MOST + 1 for it in block.iters}
    found: dict[tir.Var, int] = {}
    for part in find(block.body, tir.Select):
        if not free_vars(part.cond) & extents.keys():
            continue  # for example a choice by the sign of a value
        period = _period(part.cond, extents)
        if period is None:
            return {}
        found[period[0]] = period[1]
    return found if all(count <= _MOST for count in found.values()) else {}


def _period(cond: tir.Expr, extents: dict[tir.Var, int]) -> tuple[tir.Var, int] | None:
    if not isinstance(cond, tir.Eq):
        return None
    if isinstance(cond.a, tir.Var) and cond.a in extents:
        return cond.a, extents[cond.a]
    if isinstance(cond.a, tir.FloorMod) and isinstance(cond.a.a, tir.Var):
        size = tir.int_value(cond.a.b)
        return None if size is None else (cond.a.a, size)
    return None


@dataclass(frozen=True)
class ChoicesShape:
    """The loops around, the length of a line, the work of one vector and how many are unrolled."""

    around: Nest
    length: int
    is_known: bool
    stages: tuple[tuple[int, Work], ...]
    """For each block the vectors that are unrolled, and the work of one."""
    threads: int

    @property
    def is_single(self) -> bool:
        """One block, whose tiles threads may share as well."""
        return len(self.stages) == 1


@dataclass(frozen=True)
class ChoicesPoint:
    """Vectors of each choice side by side, and leading loops that threads share."""

    vectors: int
    shared: int
    parallel: int


class _Choices:
    """One block whose outer iterators choose, or a pair of which the second reads the first."""

    name = "choices"
    point = ChoicesPoint

    def match(self, context: Context, group: Group) -> ChoicesShape | None:
        s = context.schedule
        last = group.blocks[-1]
        node = s.block(last)
        if not s.loops(last):
            return None
        if len(group.blocks) == 1 and not _chooses_outside(node):
            return None
        unrolled = _unrolled(context, group)
        loops = [iter_loop(context, last, p) for p in range(len(node.iters))]
        around, known = list[int](), list[bool]()
        for loop, it in zip(loops[:-1], node.iters, strict=False):
            count = unrolled.get(it.var, 1)
            extent = extent_of(context, loop)
            around.append(-(-(extent or ASSUMED_EXTENT) // count))
            known.append(extent is not None)
        length = extent_of(context, loops[-1])
        return ChoicesShape(
            Nest(tuple(around), tuple(known)),
            length or ASSUMED_EXTENT,
            length is not None,
            tuple(_stage(context, name, unrolled) for name in group.blocks),
            context.threads,
        )

    def space(self, shape: ChoicesShape, target: Target) -> Table[ChoicesPoint]:
        del target
        lanes = min(work.lanes for _, work in shape.stages)
        numbers = [n for n in (1, 2, 4) if n == 1 or (n - 1) * lanes < shape.length]
        several = sum(extent != 1 for extent in shape.around.extents)
        ways = ways_to_share(min(2, several + shape.is_single), shape.threads)
        table = Table.combined(ChoicesPoint, {"vectors": numbers}, ways)
        has_tiles = shape.is_single & (lanes * table["vectors"] < shape.length)
        return table.where(table["shared"] <= several + has_tiles)

    def cycles(
        self, shape: ChoicesShape, machine: MachineModel, table: Table[ChoicesPoint]
    ) -> Costs:
        vectors, parallel = table["vectors"], table["parallel"]
        cycles, size = np.zeros(len(table)), 0.0
        for unrolled, work in shape.stages:
            # All choices of a vector share what they load: their values are in registers together.
            lines = -(-shape.length // (work.lanes * vectors))
            held = np.maximum(0.0, vectors * unrolled - work.registers)
            spills = held * (1 / machine.vector_stores + 1 / machine.vector_loads)
            each = vectors * unrolled * vector_cycles(work, machine, np.ones(len(table)))
            cycles += lines * (each + spills + machine.loops.iteration_cycles)
            size += work.read_bytes + work.written_bytes
        cycles = shape.around.iterations * (cycles + machine.tile_cycles)
        for unrolled, work in shape.stages:
            cycles = cycles + code_cycles(work, machine, vectors * unrolled)
        cycles = moved(machine, cycles, size, parallel)
        tiles = -(-shape.length // (shape.stages[-1][1].lanes * vectors))
        iterations = leading_iterations((*shape.around.extents, tiles), table["shared"])
        return shared_cycles(machine, cycles, iterations, table["shared"], shape.threads, parallel)

    def apply(
        self, context: Context, group: Group, shape: ChoicesShape, point: ChoicesPoint
    ) -> None:
        s, last = context.schedule, group.blocks[-1]
        unrolled = _unrolled(context, group)
        around, vectors, inside = _unrolled_inside(context, last, unrolled, point.vectors)
        if len(group.blocks) == 2:
            (first, _) = group.blocks
            made = names_of(s.compute_at(first, vectors))
            _finish(context, made, [loop for loop in made if _binds(context, first, loop)])
        if group.epilogue is not None:
            s.vectorize(names_of(s.reverse_compute_at(group.epilogue, vectors))[-1])
        _finish(context, inside, [])
        around = [*around, vectors] if shape.is_single else around
        # Inside of the blocks of another recipe there is one thread, whatever the point says.
        is_shared = bool(point.parallel) and context.threads > 1
        share_several(context, around, point.shared, parallel=is_shared)


CHOICES: Final = _Choices()


def schedule_choices(
    context: Context, first: str, second: str, epilogue: str | None = None
) -> None:
    """Run both blocks of a pair for one vector at a time, with every choice unrolled.

    What follows them element by element runs in loops: it may be long.
    """
    follow(CHOICES, context, Group(Kind.ELEMENTWISE, (first, second), epilogue))


def _chooses_outside(block: tir.Block) -> bool:
    """Whether iterators other than the innermost choose among values: a small transform."""
    chosen = choices_of(block)
    return bool(chosen) and block.iters[-1].var not in chosen


def _unrolled(context: Context, group: Group) -> dict[tir.Var, int]:
    """The iterators of the last block that are unrolled, and how far."""
    node = context.schedule.block(group.blocks[-1])
    if len(group.blocks) == 1:
        return choices_of(node)
    return {**_indexing(node, context.schedule.block(group.blocks[0])), **choices_of(node)}


def _stage(context: Context, name: str, unrolled: Mapping[tir.Var, int]) -> tuple[int, Work]:
    """Vectors of a block that are unrolled, and the work of one of them."""
    node = context.schedule.block(name)
    own = {**{v: n for v, n in unrolled.items() if v in {it.var for it in node.iters}}}
    own |= choices_of(node)
    among = prod(choices_of(node).values())
    return prod(own.values()), work_in(node, node.iters[-1].var, context.target, among)


def _unrolled_inside(
    context: Context, block: str, unrolled: Mapping[tir.Var, int], vectors: int
) -> tuple[list[str], str, list[str]]:
    """Loops around, the one over vectors, and inside of it those to unroll and that over lanes."""
    s = context.schedule
    node = s.block(block)
    *loops, last = (iter_loop(context, block, p) for p in range(len(node.iters)))
    around: list[str] = []
    inside: list[str] = []
    for loop, it in zip(loops, node.iters, strict=False):
        count = unrolled.get(it.var)
        if count is None:
            around.append(loop)
        elif tir.int_value(it.extent) == count:
            inside.append(loop)
        else:
            outer, inner = s.split(loop, count)
            around.append(str(outer))
            inside.append(str(inner))
    tiles, lane = map(str, s.split(last, lanes_of(context, block) * vectors))
    s.reorder(*around, tiles, *inside, lane)
    return around, tiles, [*inside, lane]


def _indexing(node: tir.Block, maker: tir.Block) -> dict[tir.Var, int]:
    """The iterators by which a block reads what its maker has chosen, with their periods."""
    chosen, found = choices_of(maker), dict[tir.Var, int]()
    store = maker.body
    assert isinstance(store, tir.Store)
    for load in loads_of(node):
        if load.buffer is not store.buffer:
            continue
        for index, place in zip(load.indices, store.indices, strict=True):
            if place not in chosen:
                continue
            for var in free_vars(index):
                found[var] = chosen[place]  # type: ignore[index]
    return found


def _binds(context: Context, block: str, loop: str) -> bool:
    """Whether a loop drives an iterator that chooses."""
    s = context.schedule
    node, var = s.block(block), s.loop(loop).var
    chosen = choices_of(node)
    return any(
        it.var in chosen and var in free_vars(at)
        for it, at in zip(node.iters, node.bindings, strict=True)
    )


def _finish(context: Context, loops: list[str], last: list[str]) -> None:
    """Unroll loops, those that choose innermost, and vectorise the innermost one."""
    s = context.schedule
    *others, lane = loops
    order = [*(loop for loop in others if loop not in last), *last]
    if len(order) > 1 and order != others:
        s.reorder(*order)
    for loop in order:
        s.unroll(loop)
    s.vectorize(lane)
