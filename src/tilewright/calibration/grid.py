"""Measured figures on coarse grids, so that two calibrations of one machine agree.

A measured figure differs from run to run by some percent, and no decision of the compiler is worth
that much. So a figure that is near the nominal one is the nominal one, and any other is the nearest
of a few values. What lies between two of these may still fall on either side: where a model is
already kept, a figure stays what it was unless it has moved by more than a step (`steady`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from tilewright.target import MachineModel

__all__ = ["rounded", "steady"]


class Grid(Protocol):
    """The values that a figure may have."""

    def value(self, measured: float, nominal: float) -> float:
        """The figure to use for a measured one."""
        ...

    def same(self, one: float, other: float) -> bool:
        """Whether two figures are at most one step apart."""
        ...


@dataclass(frozen=True)
class Halves:
    """Powers of two and what lies halfway between them, whatever is nominal."""

    def value(self, measured: float, nominal: float) -> float:
        del nominal
        power = 2.0 ** math.floor(math.log2(measured))
        return min((power, 1.5 * power, 2 * power), key=lambda v: abs(math.log(v / measured)))

    def same(self, one: float, other: float) -> bool:
        return 1 / 1.55 <= one / other <= 1.55


@dataclass(frozen=True)
class Multiples:
    """The nominal figure times a power of `step`."""

    step: float

    def value(self, measured: float, nominal: float) -> float:
        return nominal * self.step ** round(math.log(measured / nominal, self.step))

    def same(self, one: float, other: float) -> bool:
        return 1 / self.step <= 1.01 * one / other <= 1.02 * self.step


@dataclass(frozen=True)
class Ports:
    """What a core may start per cycle: whole ports, parts and multiples of them."""

    values: tuple[float, ...] = (1 / 16, 1 / 8, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)

    def value(self, measured: float, nominal: float) -> float:
        del nominal
        return min(self.values, key=lambda ports: abs(ports - measured) / ports)

    def same(self, one: float, other: float) -> bool:
        return one == other


@dataclass(frozen=True)
class Cycles:
    """Whole cycles, at least one."""

    def value(self, measured: float, nominal: float) -> float:
        del nominal
        return float(max(1, round(measured)))

    def same(self, one: float, other: float) -> bool:
        return one == other


@dataclass(frozen=True)
class Shares:
    """Parts of a whole, in quarters and never nothing; the nominal part if that is near."""

    near: float = 0.25

    def value(self, measured: float, nominal: float) -> float:
        if abs(measured - nominal) <= self.near:
            return nominal
        return min(1.0, max(0.05, round(4 * measured) / 4))

    def same(self, one: float, other: float) -> bool:
        return abs(one - other) <= 0.25


_GRIDS: Final[dict[str, Grid]] = {
    "ghz": Halves(),
    "read": Multiples(1.5),
    "read_all": Multiples(1.5),
    "fma_latency": Cycles(),
    "latency": Cycles(),
    "exposed": Shares(),
    "fetched_exposed": Shares(),
    "refill_exposed": Shares(),
    "kept_share": Shares(),
    # Overheads and whole kernels: what a probe leaves out is as much as what it sees.
    "conflict_cycles": Multiples(2.0),
    "tile_cycles": Multiples(1.5),
    "barrier_cycles": Multiples(8.0),
    "step_cycles": Multiples(4.0),
    "scattered": Multiples(4.0),
    "serial": Multiples(1.6),
}
_PORTS: Final = Ports()


def _grid_of(name: str) -> Grid:
    return _GRIDS.get(name.rpartition(".")[2], _PORTS)


def rounded(values: Mapping[str, float], nominal: MachineModel) -> dict[str, float]:
    """Every figure on its grid."""
    return {n: _grid_of(n).value(v, nominal.figure(n)) for n, v in values.items()}


def steady(new: MachineModel, kept: MachineModel) -> MachineModel:
    """The new model; where a figure has moved by a step at most, with the one that was kept."""
    values = {n: new.figure(n) for n in new.measured}
    for name in set(kept.measured) & values.keys():
        if _grid_of(name).same(values[name], before := kept.figure(name)):
            values[name] = before
    return new.with_figures(values, new.source)
