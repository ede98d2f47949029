"""From seconds to a machine model: what the best times of probes say about the machine.

Cycles come from a chain of additions, so that a frequency that nobody announces (boost, a virtual
machine) is the one that code really runs at.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from tilewright.calibration.grid import on_grid
from tilewright.calibration.probes import LONG, SHORT, TILE, conflict_rows
from tilewright.target import Level, MachineModel, Target
from tilewright.target.machine import CALIBRATED, nominal

__all__ = ["model_of"]

_PORTS: Final = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
"""Instructions of a kind that a core may start per cycle: whole ports, or halves of them."""


def model_of(target: Target, seconds: Mapping[str, float]) -> MachineModel:
    """The calibrated model, from the seconds of one unit of each probe."""
    base = nominal(target)
    cycle = seconds["addition chain"]

    def per_cycle(name: str) -> float:
        return cycle / seconds[name]

    stores = _ports(per_cycle("vector stores"))
    levels = tuple(_level(level, target, seconds, cycle) for level in base.levels)
    first = min(levels[0].read, target.vector_bytes * 4.0) / target.vector_bytes
    return replace(
        base,
        source=CALIBRATED,
        ghz=on_grid(1e-9 / cycle, base.ghz),
        fma_per_cycle=_ports(per_cycle("multiply-adds")),
        fma_latency=float(max(1, round(seconds["multiply-add chain"] / cycle))),
        element_loads=_ports(per_cycle("element loads")),
        vector_loads=_ports(first),
        vector_stores=stores,
        levels=levels,
        conflict_cycles=_conflicts(target, seconds, cycle, base),
        tile_cycles=_overhead(seconds, cycle, math.prod(TILE) / stores),
    )


def _ports(rate: float) -> float:
    return min(_PORTS, key=lambda ports: abs(ports - rate) / ports)


def _level(level: Level, target: Target, seconds: Mapping[str, float], cycle: float) -> Level:
    """Bytes per cycle of a level, for one core and for each of all."""
    alone = cycle / seconds[f"{level.name} one"]
    together = cycle / seconds[f"{level.name} all"] / target.cores
    return replace(
        level,
        read=on_grid(alone, level.read),
        read_all=on_grid(min(alone, together), level.read_all),
    )


def _conflicts(
    target: Target, seconds: Mapping[str, float], cycle: float, base: MachineModel
) -> float:
    """What lines beyond the ways of a set cost; the nominal figure if there were too few."""
    first = target.cache(1)
    beyond = conflict_rows(target) - first.ways
    if beyond < 4:
        return base.conflict_cycles
    steps = first.size_bytes // first.ways // 4
    more = (seconds["shared sets"] - seconds["own sets"]) / cycle / steps
    return on_grid(max(0.01, more / beyond**2), base.conflict_cycles)


def _overhead(seconds: Mapping[str, float], cycle: float, stores: float) -> float:
    """Cycles of a register tile beside its steps and its stores, as a power of two.

    Never less than 16: the probe has neither an epilogue nor the first misses of a tile. With the 2
    cycles that it takes on Zen 4 tiles became small, and MobileNet 6 % slower.
    """
    short, long = (seconds[name] / cycle for name in ("short tiles", "long tiles"))
    per_step = (long - short) / (LONG - SHORT)
    rest = short - SHORT * per_step - stores
    return float(2 ** round(math.log2(max(16.0, rest))))
