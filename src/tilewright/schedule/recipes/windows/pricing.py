"""What both recipes for windows price alike: tiles of sums, streams, and what threads share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.schedule.recipes.table import Column, Costs
from tilewright.target import MachineModel

__all__ = ["Stream", "Tile", "busiest", "code_cycles", "tile_cycles", "together"]


@dataclass(frozen=True)
class Tile:
    """Instructions of a tile of sums, each a column; loads and stores are of full vectors."""

    sums: Costs
    taps: int
    loads: Costs
    broadcasts: Costs | float
    """Loads of single elements."""
    stores: Costs
    turns: Costs
    """Iterations of loops over the window."""


def tile_cycles(machine: MachineModel, tile: Tile) -> Costs:
    """What arithmetic, loads, latency and stores need, and the loops around.

    A core works on many instructions at a time: chains of additions of neighbouring tiles run side
    by side, and stores beside the sums of the next tile, as far as both are in its sight.
    """
    costs = machine.windows
    arithmetic = tile.sums * tile.taps / machine.fma_per_cycle
    loads = tile.loads / machine.vector_loads + tile.broadcasts / machine.element_loads
    stores = tile.stores / machine.vector_stores
    instructions = tile.sums * (tile.taps + 1) + tile.loads + tile.broadcasts
    in_sight = costs.reorder_entries / instructions
    chain = tile.taps * machine.fma_latency / np.maximum(1.0, in_sight)
    busy = np.maximum(np.maximum(arithmetic, loads), chain)
    busy = busy + costs.load_share * np.minimum(arithmetic, loads)
    apart = np.minimum(1.0, 1.0 / in_sight) * np.minimum(busy, stores)
    loops = tile.turns * costs.turn_cycles + costs.tile_cycles
    return np.asarray(np.maximum(busy, stores) + apart + loops)


@dataclass(frozen=True)
class Stream:
    """Cycles of moving data between levels of memory, and those that arithmetic does not hide."""

    cycles: Costs
    exposed: Costs

    def __add__(self, other: Stream) -> Stream:
        return Stream(self.cycles + other.cycles, self.exposed + other.exposed)

    @classmethod
    def of(cls, machine: MachineModel, moved: Costs, home_bytes: float) -> Stream:
        """So many bytes, from where so many have their home; the first cache is what loads cost."""
        home = machine.home_of(home_bytes)
        if home is machine.levels[0]:
            return cls(0.0 * moved, 0.0 * moved)
        cycles = moved / home.read
        return cls(cycles, cycles * home.exposed)


def together(machine: MachineModel, compute: Costs, stream: Stream) -> Costs:
    """Arithmetic, and what it does not hide of a stream that runs beside it."""
    waiting = np.maximum(stream.cycles - compute, stream.exposed)
    return compute * (1 + machine.spare_share) + waiting


def busiest(shares: Column, threads: int) -> Costs:
    """The part of all work that the busiest thread has."""
    return np.ceil(shares / threads) / shares


def code_cycles(machine: MachineModel, instructions: Costs | Column) -> Costs:
    """Fetching code that runs for the first time."""
    far = machine.levels[min(2, len(machine.levels) - 1)]
    return np.asarray(instructions * machine.windows.instruction_bytes / far.read, np.float64)
