"""What is measured: loops of single instructions, streams over each level of memory, products.

Units are those in which a figure is wanted: instructions, bytes, register tiles.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tilewright.build import build
from tilewright.calibration.measure import Probe
from tilewright.llvm.calibrate import FmaPeak, MemoryStream, Team, touched_bytes
from tilewright.llvm.instruction_loops import compile_loops
from tilewright.llvm.probes import STREAMS, Probes, compile_probes
from tilewright.schedule.draft import draft
from tilewright.schedule.recipes.contraction.space import ContractionPoint
from tilewright.target import Target
from tilewright.tensor.library.contraction import matmul

__all__ = ["CONFLICT_FREE", "LONG", "SHORT", "TILE", "conflict_rows", "probes_of"]

TILE: Final = (4, 2)
SHORT, LONG = 16, 64
"""Steps of the reduction of two products, which differ in nothing else: the rest is overhead."""

CONFLICT_FREE: Final = 64
"""Bytes that put the rows of a product into other sets of the first cache."""

_FEW, _MANY = 8, 512
"""Register tiles of a product: as few as stay near, and as many as make a call cheap."""
_SCRATCH_BYTES: Final = 4096


@contextmanager
def probes_of(target: Target) -> Iterator[dict[str, Probe]]:
    """All probes, ready to run on this machine."""
    probes = compile_probes(target)
    with Team(1) as one, Team(target.cores) as every:
        yield {
            **dict(_instructions(target, probes, one)),
            **dict(_streams(target, probes, {"one": one, "all": every})),
            **dict(_products(target)),
        }


def _instructions(target: Target, probes: Probes, team: Team) -> Iterator[tuple[str, Probe]]:
    room = np.ones(2 * _SCRATCH_BYTES, "u1")
    address = room.ctypes.data + -room.ctypes.data % _SCRATCH_BYTES
    for name, loop in compile_loops(target).items():
        yield name, Probe(partial(_looped, loop.run, address, room), loop.per_turn)
    vectors = probes.fma_flops // (2 * target.lanes(4))
    yield "multiply-adds", Probe(FmaPeak(target, probes, team).spin, vectors)


def _looped(run: object, address: int, room: NDArray[np.uint8], turns: int) -> None:
    """A loop over memory that lives as long as the probe."""
    assert room.size
    run(turns, address)  # type: ignore[operator]


def _streams(target: Target, probes: Probes, teams: dict[str, Team]) -> Iterator[tuple[str, Probe]]:
    """Reading from each level, on one core and on all."""
    memory = touched_bytes(target, [team.threads for team in teams.values()])
    read = next(stream for stream in STREAMS if stream.name == "read")
    for cache in (*target.caches, None):
        level = f"L{cache.level}" if cache else "DRAM"
        for who, team in teams.items():
            stream = MemoryStream(target, probes, team, read, cache, memory)
            yield f"{level} {who}", Probe(stream.walk, stream.bytes_per_walk)


def conflict_rows(target: Target) -> int:
    """Rows of the product whose rows share a set: well beyond the ways, as registers allow."""
    return min(target.vector_registers - 2, 2 * target.cache(1).ways + 4)


def _products(target: Target) -> Iterator[tuple[str, Probe]]:
    """Register tiles with rows that share a set of the first cache, and short and long ones."""
    first = target.cache(1)
    way = first.size_bytes // first.ways
    rows = conflict_rows(target)
    for name, pitch in (("shared sets", way), ("own sets", way + CONFLICT_FREE)):
        yield name, _product(target, (rows, 1), pitch // 4, _FEW)
    for name, steps in (("short tiles", SHORT), ("long tiles", LONG)):
        yield name, _product(target, TILE, steps, _MANY)


def _product(target: Target, tile: tuple[int, int], reduce: int, tiles: int) -> Probe:
    """A product of some register tiles, in two panels; a unit is one of them."""
    (rows, vectors), lanes = tile, target.lanes(4)
    shape = tiles * rows, 2 * vectors * lanes, reduce
    program = matmul(*shape)
    point = ContractionPoint(rows, vectors, lanes, tiles, reduce, parallel=0)
    trace = draft(program, target, 1, ["B"], point).trace
    right = np.zeros((reduce, shape[1]), np.float32)
    kernel = build(program, target, 1, trace, {"B": right})
    left, result = np.ones((shape[0], reduce), np.float32), np.empty(shape[:2], np.float32)

    def run(turns: int) -> None:
        for _ in range(turns):
            kernel(left, result)

    return Probe(run, 2 * tiles)
