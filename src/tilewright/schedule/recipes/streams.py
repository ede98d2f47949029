"""Cycles of lines of vectors, and of what they move: the costs that rows and maps share.

A vector costs what its ports need: arithmetic, loads or stores. A chain of instructions that wait
for each other is hidden by other vectors, as many as stand side by side in the code or as the core
finds ahead of time. What registers do not hold goes through memory and comes back.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.schedule.recipes.table import Column, Costs
from tilewright.schedule.recipes.work import Work
from tilewright.target import MachineModel

__all__ = [
    "INTERLEAVED",
    "code_cycles",
    "line_cycles",
    "line_statements",
    "moved",
    "vector_cycles",
    "vector_numbers",
]

INTERLEAVED = 4
"""Vectors of a function at most that lowering computes side by side."""

_NUMBERS = (1, 2, 3, 4, 6, 8, 12, 16)


def vector_numbers(work: Work, extent: int) -> Sequence[int]:
    """Numbers of vectors that one statement may have, along so many elements.

    Those of a function are no more than lowering computes side by side, or all that there are.
    """
    whole = -(-extent // work.lanes)  # all of them at once, if there are few
    numbers = {n for n in (*_NUMBERS, whole) if n <= min(_NUMBERS[-1], whole)}
    if work.has_functions:
        numbers = {n for n in numbers if n <= INTERLEAVED or n == whole}
    return sorted(numbers)


def vector_cycles(
    work: Work, machine: MachineModel, together: Column | Costs, more_loads: Costs | float = 0.0
) -> Costs:
    """Cycles of one vector where so many are computed side by side."""
    one, costs = work.arithmetic, machine.arithmetic
    lanes = machine.loops.element_cycles * work.lanes
    arithmetic = one.operations / (machine.fma_per_cycle * costs.simple)
    arithmetic += lanes * (work.gathered + work.scattered)
    divider = one.divisions * costs.divide_cycles + one.roots * costs.root_cycles
    loads = work.loads + work.lanes * work.gathered * machine.vector_loads / machine.element_loads
    loading = (loads + more_loads) / machine.vector_loads
    storing = (work.stores + work.lanes * work.scattered) / machine.vector_stores
    simple = one.depth - one.divisions - one.roots
    chain = max(0, simple) * machine.fma_latency
    chain += one.divisions * costs.divide_latency + one.roots * costs.root_latency
    most = INTERLEAVED if work.has_functions else np.inf
    side_by_side = np.minimum(np.asarray(together, np.float64), most)
    ahead = np.maximum(side_by_side, costs.window / max(1, work.instructions))
    needed = side_by_side * one.live + work.fixed
    spilled = np.maximum(0.0, np.minimum(needed - work.registers, needed)) / side_by_side
    spills = spilled * (1 / machine.vector_stores + 1 / machine.vector_loads)
    busy = np.maximum(max(arithmetic, divider, storing), loading)
    return np.asarray(np.maximum(busy, chain / ahead) + spills)


def line_cycles(
    work: Work,
    machine: MachineModel,
    extent: int,
    vectors: Column,
    *,
    is_known: bool,
    folds: bool = False,
    more_loads: Costs | float = 0.0,
) -> Costs:
    """A line of so many elements, in tiles of so many vectors.

    What the tiles leave over of a known size has code of its own; of a symbolic one half a tile
    is left over, which single vectors do.
    """
    width = vectors * work.lanes
    full = extent // width
    left = extent - full * width
    whole, part = left // work.lanes, left % work.lanes
    rest = whole + (part > 0 if work.masks else _powers(part, work.lanes))
    each = vector_cycles(work, machine, vectors, more_loads)
    behind = vector_cycles(work, machine, np.maximum(1, np.minimum(rest, vectors)), more_loads)
    cycles = full * vectors * each + rest * behind
    if folds:  # what is joined waits for itself once in each tile, and as a tree at the end
        tree = np.log2(np.minimum(vectors, np.maximum(1, extent // work.lanes)))
        cycles = np.maximum(cycles, (full + tree) * machine.fma_latency)
        cycles = cycles + np.log2(work.lanes) * machine.arithmetic.fold_cycles
    loop = full * machine.loops.iteration_cycles + machine.loops.entering_cycles
    cycles = cycles + np.where((full > 1) | ((full > 0) & (rest > 0)), loop, 0.0)
    if not is_known:
        alone = vector_cycles(work, machine, np.ones_like(vectors), more_loads)
        cycles = cycles + vectors / 2 * alone + machine.tile_cycles
    return np.asarray(cycles)


def _powers(count: Column, lanes: int) -> Column:
    """Vectors of half the lanes, a quarter and so on that have so many lanes together."""
    bits = [(count >> bit) & 1 for bit in range(lanes.bit_length())]
    return np.asarray(sum(bits), np.int64)


def line_statements(work: Work, extent: int, vectors: Column) -> Column:
    """Vectors of a line in the code: those of a tile, and of what tiles leave over."""
    return np.asarray(vectors + extent % (vectors * work.lanes) // work.lanes)


def code_cycles(work: Work, machine: MachineModel, statements: Column | Costs) -> Costs:
    """Reading the instructions of so many vectors once."""
    size = machine.arithmetic.code_bytes * work.instructions
    return np.asarray(statements * size / machine.level(2).read)


def moved(
    machine: MachineModel,
    compute: Costs,
    size_bytes: float | Costs,
    parallel: Column,
    fetched: Column | int = 0,
    holds_bytes: float | None = None,
) -> Costs:
    """Cycles of one core with what it waits for memory; all of them do so at once if parallel.

    The data live where `holds_bytes` of them fit, or as many as are moved.
    """
    home = machine.home_of(float(np.max(size_bytes)) if holds_bytes is None else holds_bytes)
    stream = size_bytes / np.where(parallel != 0, home.read_all, home.read)
    hidden = min(home.exposed, machine.fetched_exposed)
    exposed = np.where(np.asarray(fetched) != 0, hidden, home.exposed)
    waiting = np.maximum(stream - compute, stream * exposed)
    return np.asarray(compute * (1 + machine.spare_share) + waiting)
