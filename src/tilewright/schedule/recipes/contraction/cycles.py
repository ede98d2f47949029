"""Predicted cycles of the contraction recipe, for a whole table of points at once.

Everything is counted in cycles of one core. A micro tile keeps its sums in registers while it walks
the reduction; a step costs the greatest of what the multiply-add ports, their latency and the load
ports need. Around it, what a block uses again is still in the cache that feeds the tile, and what
streams from further away is hidden behind arithmetic, except for a part (Goto and van de Geijn,
"Anatomy of High-Performance Matrix Multiplication", 2008).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tilewright.schedule.recipes.contraction.space import (
    ContractionPoint,
    ContractionShape,
    contraction_space,
)
from tilewright.schedule.recipes.table import Column, Costs, Table
from tilewright.target import MachineModel, Target

__all__ = ["arithmetic_cycles", "contraction_cycles", "draft_contraction"]


@lru_cache(maxsize=4096)
def draft_contraction(shape: ContractionShape, target: Target) -> tuple[ContractionPoint, float]:
    """The point with the fewest predicted cycles, and these."""
    table = contraction_space(shape, target)
    cycles = contraction_cycles(shape, target.machine, table)
    best = int(np.argmin(cycles))
    return table.point(best), float(cycles[best])


def contraction_cycles(
    shape: ContractionShape, machine: MachineModel, table: Table[ContractionPoint]
) -> Costs:
    """Cycles until the last thread is done, for every row of a table."""
    machine = machine.shared_by(shape.threads)
    threads = np.where(table["parallel"] != 0, float(shape.threads), 1.0)
    compute = _arithmetic(shape, machine, table, threads)
    traffic = _traffic(shape, machine, table)
    total, exposed = traffic.cycles / threads, traffic.exposed / threads
    waiting = np.maximum(total - compute, exposed)
    partial = _partial_sums(shape, machine, table) / threads
    shared = np.where(threads > 1, machine.barrier_cycles, 0.0)
    return compute * (1 + machine.spare_share) + waiting + partial + shared


def arithmetic_cycles(
    shape: ContractionShape, machine: MachineModel, point: ContractionPoint
) -> float:
    """Of the busiest thread, for one point, whatever its memory takes."""
    table = Table.of([point])
    threads = np.array([float(shape.threads if point.parallel else 1)])
    return float(_arithmetic(shape, machine, table, threads)[0])


def _arithmetic(
    shape: ContractionShape, machine: MachineModel, table: Table[ContractionPoint], threads: Costs
) -> Costs:
    """Steps and stores of all tiles, of two heights and two widths, on the busiest thread."""
    rows, vectors = table["tile_rows"], table["tile_vectors"]
    tiles = -(-shape.rows // rows)
    small = shape.rows // tiles
    larger = shape.rows - small * tiles
    whole, rest = np.divmod(-(-shape.columns // table["lanes"]), vectors)
    visits = -(-shape.reduce // table["reduce_per_block"])
    conflicts = np.array(machine.conflicts(shape.pitch_bytes, int(rows.max()) + 1))
    total, count = np.zeros(len(table)), np.zeros(len(table))
    for height, many in ((small + 1, larger), (small, tiles - larger)):
        for width, times in ((vectors, whole), (rest, rest > 0)):
            step = _step(machine, height, width) + conflicts[np.minimum(height, rows.max())]
            store = height * width / machine.vector_stores
            each = shape.reduce * step + store + visits * machine.tile_cycles
            total += many * times * np.where(width > 0, each, 0.0)
            count += many * times
    shares = shape.batch * count
    busiest = np.ceil(shares / threads) / shares
    return np.asarray(shape.batch * total * busiest)


def _step(machine: MachineModel, rows: Column, vectors: Column) -> Costs:
    """Cycles of one step of the reduction in a micro tile."""
    arithmetic = rows * vectors / machine.fma_per_cycle
    loads = rows / machine.element_loads + vectors / machine.vector_loads
    return np.maximum(np.maximum(arithmetic, loads), machine.fma_latency)


@dataclass(frozen=True)
class _Traffic:
    """Cycles of streaming, and the part of them that arithmetic does not hide."""

    cycles: Costs
    exposed: Costs


def _traffic(
    shape: ContractionShape, machine: MachineModel, table: Table[ContractionPoint]
) -> _Traffic:
    """The streams of both operands from where they live, and again from the second cache."""
    size, rows = shape.element_bytes, table["tile_rows"]
    columns = table["tile_vectors"] * table["lanes"]
    cut, block = table["reduce_per_block"], table["row_tiles_per_block"]
    tiles, panels = -(-shape.rows // rows), -(-shape.columns // columns)
    right = float(shape.batch * shape.reduce * shape.columns * size)
    left = shape.batch * shape.rows * shape.reduce * size * shape.density
    right_home, left_home = machine.home_of(right), machine.home_of(left)
    panel, row_tile = cut * columns * size, rows * cut * size * shape.density
    # While one panel is in use, the next one arrives.
    room = machine.near_share * machine.level(2).size_bytes - 2 * panel
    left_stays = block * row_tile <= np.maximum(room, row_tile)
    fetched = (block > 1) & shape.right_is_constant  # the recipe asks for the next panel in time
    exposed = np.where(
        fetched, min(right_home.exposed, machine.fetched_exposed), right_home.exposed
    )
    from_right = -(-tiles // block) * right / right_home.read
    from_left = np.where(left_stays, 1, panels) * left / left_home.read
    # What every tile draws from the second level: its rows, and the panel if the first is small.
    is_large = (tiles > 1) & (panel > 0.75 * machine.level(1).size_bytes)
    refill = (panels * left + np.where(is_large, tiles * right, 0.0)) / machine.level(2).read
    return _Traffic(
        from_right + from_left + refill,
        from_right * exposed + from_left * left_home.exposed + refill * machine.refill_exposed,
    )


def _partial_sums(
    shape: ContractionShape, machine: MachineModel, table: Table[ContractionPoint]
) -> Costs:
    """What it costs to add partial sums to memory once for each further cut of the reduction."""
    rows, vectors = table["tile_rows"], table["tile_vectors"]
    visits = -(-shape.reduce // table["reduce_per_block"]) - 1
    result = shape.rows * shape.columns * shape.element_bytes
    per_visit = 2 * result * machine.scattered / machine.home_of(result).read
    tiles = -(-shape.rows // rows) * -(-shape.columns // (vectors * table["lanes"]))
    return np.asarray(shape.batch * visits * (per_visit + tiles * 2 * rows * vectors))
