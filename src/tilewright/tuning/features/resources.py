"""What a statement asks of a machine: vector instructions, registers, traffic between caches.

These are estimates from the loops and the machine model, for features; prices of schedules are the
recipes' own business (`schedule/recipes/`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from tilewright.target import MachineModel, Target
from tilewright.tensor import ir as tir
from tilewright.tuning.features.footprints import Footprint
from tilewright.tuning.features.nests import Access, Statement

__all__ = ["Issued", "Registers", "Vectors", "cycles_of", "instruction_kind", "issued_by"]
__all__ += ["registers_of", "traffic_of", "vectors_of"]

VECTOR, UNROLLED = tir.LoopKind.VECTOR, tir.LoopKind.UNROLLED


@dataclass(frozen=True)
class Vectors:
    """How the innermost vector loop becomes instructions."""

    place: int | None
    """Of the loop; None if the statement is scalar."""
    lanes: int
    pieces: int
    """Instructions that one run of the loop takes for each operation."""
    filled: float
    """The part of their lanes that is used."""


def vectors_of(statement: Statement, target: Target) -> Vectors:
    """What is left over is one vector under a mask where that is free, else shorter ones."""
    element = statement.store.buffer.dtype.size_bytes
    lanes = target.lanes(element)
    places = statement.of_kind(VECTOR)
    if not places:
        width = max(a.run[1] for a in statement.accesses)
        return Vectors(None, lanes if width > 1 else 1, max(1, width // lanes), 1.0)
    extent = statement.loops[places[-1]].extent
    whole, rest = divmod(extent, lanes)
    masks = target.masks(element)
    is_free = masks is not None and masks.is_free
    pieces = whole + ((1 if is_free else rest.bit_count()) if rest else 0)
    return Vectors(places[-1], lanes, pieces, extent / (pieces * lanes))


@dataclass(frozen=True)
class Issued:
    """Vector instructions of all iterations."""

    arithmetic: float
    loads: float
    stores: float

    @property
    def total(self) -> float:
        return self.arithmetic + self.loads + self.stores


def issued_by(statement: Statement, vectors: Vectors) -> Issued:
    """What is computed, loaded and stored.

    Copies of an unrolled loop that load the same place share one load, and so do the vectors of a
    line. Elements that lie apart are moved one by one.
    """
    outside = [loop.extent for k, loop in enumerate(statement.loops) if k != vectors.place]
    computed = float(prod(outside) * vectors.pieces * statement.operations.total)
    moves = [_moves(a, statement, vectors) for a in statement.accesses if a.in_memory]
    stored = moves.pop() if statement.target.in_memory else 0.0
    return Issued(computed, sum(moves), stored)


def _moves(access: Access, statement: Statement, vectors: Vectors) -> float:
    found = 1.0
    for k, (slope, loop) in enumerate(zip(access.slopes, statement.loops, strict=True)):
        if k == vectors.place:
            found *= {0.0: 1, 1.0: vectors.pieces}.get(abs(slope), loop.extent)
        elif slope or loop.kind is not UNROLLED:
            found *= loop.extent
    return found


def cycles_of(
    issued: Issued, registers: Registers, traffic: Sequence[float], machine: MachineModel
) -> float:
    """About what a statement takes: ports or a chain of sums, and behind them the memory.

    It has no order of caches and knows nothing of what hides what: a feature, and no price.
    """
    at_once = machine.fma_per_cycle
    if registers.tile:
        at_once = min(at_once, registers.tile / machine.fma_latency)
    spilled = registers.spilled / max(1, registers.alive)
    again = issued.arithmetic * spilled * (1 / machine.vector_loads + 1 / machine.vector_stores)
    ports = max(
        issued.arithmetic / at_once,
        issued.loads / machine.vector_loads,
        issued.stores / machine.vector_stores,
    )
    behind = (machine.level(number) for number in (2, 3, 4))
    waiting = sum(size / level.read for size, level in zip(traffic, behind, strict=True))
    return ports + again + waiting


@dataclass(frozen=True)
class Registers:
    """Vectors of a register tile, all that are alive together, and those that do not fit."""

    tile: int
    alive: int
    spilled: int


def registers_of(statement: Statement, vectors: Vectors, target: Target) -> Registers:
    """A tile is what unrolled and vector loops step through in a buffer of registers.

    Beside it there is a vector for each that a row loads, and one for what is broadcast.
    """
    tile = 0
    for access in statement.accesses:
        if not access.in_memory:
            tile = max(tile, _in_tile(access, statement, vectors))
    beside = 0
    for access in statement.accesses[:-1]:
        if access.in_memory:
            moves = vectors.place is not None and access.slopes[vectors.place] != 0
            beside += vectors.pieces if moves and tile else 1
    alive = tile + beside
    return Registers(tile, alive, max(0, alive - target.vector_registers))


def _in_tile(access: Access, statement: Statement, vectors: Vectors) -> int:
    found = 1
    for k, (slope, loop) in enumerate(zip(access.slopes, statement.loops, strict=True)):
        if slope and loop.kind is UNROLLED:
            found *= loop.extent
        elif slope and k == vectors.place:
            found *= vectors.pieces
    return found


def traffic_of(
    statement: Statement, touched: Mapping[tir.Buffer, Sequence[Footprint]], machine: MachineModel
) -> list[float]:
    """Bytes that come into each of three caches from behind it.

    The loops whose data a cache holds bring them once, and each iteration of those outside brings
    them again; but not what the loops directly outside do not move, which stays.
    """
    depths = range(len(statement.loops) + 1)
    sizes = [sum(f[d].size_bytes for f in touched.values()) for d in depths]
    found = []
    for number in (1, 2, 3):
        room = machine.level(number).size_bytes or math.inf  # memory holds everything
        fits = next((d for d in depths if sizes[d] <= room), len(statement.loops))
        found.append(sum(_brought(statement, b, f, fits) for b, f in touched.items()))
    return found


def _brought(
    statement: Statement, buffer: tir.Buffer, touched: Sequence[Footprint], depth: int
) -> float:
    own = [a for a in statement.accesses if a.buffer is buffer]
    outside = depth
    while outside and not any(a.slopes[outside - 1] for a in own):
        outside -= 1
    return touched[depth].size_bytes * prod(loop.extent for loop in statement.loops[:outside])


def instruction_kind(statement: Statement, vectors: Vectors) -> str:
    """`scalar`, `vector`, `dot` (products of small numbers that are summed up) or `tile`."""
    names = statement.operations.instructions
    if any(word in name for name in names for word in ("amx", "tdp", "tile", "mmla")):
        return "tile"
    if any(word in name for name in names for word in ("dp", "dot", "madd")):
        return "dot"
    return "scalar" if vectors.lanes == 1 or vectors.place is None else "vector"
