"""From seconds to a machine model: what the best times of probes say about the machine.

Cycles come from a chain of additions, so that a frequency that nobody announces (boost, a virtual
machine) is the one that code really runs at. Figures are found one group after another, each from
the cycles of some probes; one whose probe is missing stays nominal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from tilewright.calibration.grid import rounded
from tilewright.calibration.kernels import STEP, TRANSFORMED, meeting_counts
from tilewright.calibration.products import (
    LONG,
    SHORT,
    TILE,
    conflict_rows,
    panel_tile,
    refilled,
    streamed,
    updated,
)
from tilewright.calibration.streams import EXCEEDED
from tilewright.llvm.vector_loops import CHAIN, SHUFFLES
from tilewright.schedule.recipes.tile_costs import transform_cycles
from tilewright.target import MachineModel, Target
from tilewright.target.costs import TransformCosts
from tilewright.target.machine import CALIBRATED, nominal

__all__ = ["model_of"]

Figure = tuple[str, float]

_LEAST_TILE: Final = 16.0
"""Cycles of a register tile beside its steps: the probe has neither an epilogue nor the first
misses of a tile. With the 2 cycles that it takes on Zen 4 tiles became small, and MobileNet 6 %
slower."""

_HINDERED: Final = 0.5
"""Of what one core reads alone from a cache: cores that read more each do not get in each other's
way. Between the two, neighbours on a shared machine make more of a difference."""


@dataclass(frozen=True)
class _Machine:
    """A target, its nominal model, and the cycles of one unit of each probe."""

    target: Target
    base: MachineModel
    cycles: Mapping[str, float]

    def has(self, *names: str) -> bool:
        return all(name in self.cycles for name in names)

    def read(self, level: str) -> float:
        """Bytes per cycle from a level, on one core."""
        return 1 / self.cycles[f"{level} one"]


def model_of(target: Target, seconds: Mapping[str, float]) -> MachineModel:
    """The calibrated model, from the seconds of one unit of each probe."""
    cycle = seconds["addition chain"]
    base = nominal(target)
    machine = _Machine(target, base, {name: s / cycle for name, s in seconds.items()})
    values = {"ghz": 1e-9 / cycle}
    for figures in _FIGURES:
        values |= dict(figures(machine))
    return base.with_figures(rounded(values, base), CALIBRATED)


def _arithmetic(m: _Machine) -> Iterator[Figure]:
    """Rates and latencies of what computes in registers."""
    names = [v.name for v in m.base.vectors] + [i.name for i in m.base.instructions]
    for name in names:
        if m.has(name, name + CHAIN):
            yield f"{name}.per_cycle", 1 / m.cycles[name]
            yield f"{name}.latency", m.cycles[name + CHAIN]
    full = f"f32x{m.target.lanes(4)}"
    if m.has(full, full + CHAIN):
        yield "fma_per_cycle", 1 / m.cycles[full]
        yield "fma_latency", m.cycles[full + CHAIN]
    if m.has(SHUFFLES):
        yield "shuffles", 1 / m.cycles[SHUFFLES]


def _ports(m: _Machine) -> Iterator[Figure]:
    """Loads and stores in the first cache."""
    vector = m.target.vector_bytes
    yield "element_loads", 1 / m.cycles["element loads"]
    yield "vector_stores", 1 / m.cycles["vector stores"]
    yield "vector_loads", min(m.read(m.base.levels[0].name), vector * 4.0) / vector


def _levels(m: _Machine) -> Iterator[Figure]:
    """Bytes per cycle of each level, for one core and for each of all."""
    threads = max(meeting_counts(m.target), default=1)
    for level in m.base.levels:
        alone = m.read(level.name)
        yield f"{level.name}.read", alone
        every = m.cycles.get(f"{level.name} all")
        each = alone if every is None else 1 / every / threads
        # Caches are made for all cores at once; memory is not, and one core may take most of it.
        hindered = each < alone if level is m.base.memory else each < _HINDERED * alone
        yield f"{level.name}.read_all", each if hindered else alone


def _kept(m: _Machine) -> Iterator[Figure]:
    """What the last cache holds of a stream as long as it is large."""
    *_, last, memory = m.base.levels
    near, far, mixed = (m.cycles.get(f"{name} one") for name in (last.name, memory.name, EXCEEDED))
    if near and far and mixed and far > 1.5 * near:
        yield "kept_share", _share(2 * (far - mixed) / (far - near))


def _hidden(m: _Machine) -> Iterator[Figure]:
    """What arithmetic does not hide of a stream from each level, and of refills.

    A stream that takes longer than the arithmetic beside it says nothing about that.
    """
    _, columns, steps = streamed(m.target)
    second = m.base.level(2).name
    pairs = [(second, "panel from L1", "panel from L2")]
    pairs += [(v.name, "panels from L2", f"panels from {v.name}") for v in m.base.levels[2:]]
    for level, near, far in pairs:
        stream = 4 * columns * steps / m.read(level)
        if m.has(near, far) and stream < m.cycles[near]:
            yield f"{level}.exposed", _share((m.cycles[far] - m.cycles[near]) / stream)
    rows, _, steps = refilled(m.target)
    refill = 4 * rows * steps / m.read(second)
    more = m.cycles["rows from L2"] - m.cycles["rows from L1"]
    yield "refill_exposed", _share(more / refill)
    home = m.base.level(3).name
    more = m.cycles["fetched far"] - m.cycles["fetched near"]
    yield "fetched_exposed", _share(more * m.read(home))


def _share(part: float) -> float:
    return min(1.0, max(0.0, part))


def _tiles(m: _Machine) -> Iterator[Figure]:
    """Starting a register tile, rows that share sets, and sums that go to memory and back."""
    short, long = (m.cycles[name] for name in ("short tiles", "long tiles"))
    stores = math.prod(TILE) * m.cycles["vector stores"]
    rest = short - SHORT * (long - short) / (LONG - SHORT) - stores
    yield "tile_cycles", max(_LEAST_TILE, rest)
    first = m.target.cache(1)
    beyond = conflict_rows(m.target) - first.ways
    if beyond >= 4:
        steps = first.size_bytes // first.ways // 4
        more = (m.cycles["shared sets"] - m.cycles["own sets"]) / steps
        yield "conflict_cycles", max(0.01, more / beyond**2)
    rows, columns, tiles = updated(m.target)
    size, home = 4 * rows * columns, m.base.level(3).name
    more = (
        m.cycles["sums twice"] - m.cycles["sums once"] - 2 * tiles * math.prod(panel_tile(m.target))
    )
    # Never less than nominal: a cut of the reduction also starts panels and prefetching anew, which
    # the probe does not see. With the 2 that it finds on Zen 4 a product of 2048×256×2048 was cut
    # in two and 3 % slower; no product that was tried became faster.
    yield "scattered", max(m.base.scattered, more / (2 * size / m.read(home)))


def _kernels(m: _Machine) -> Iterator[Figure]:
    """A step, a meeting, a transform."""
    yield "step_cycles", max(1.0, m.cycles[STEP])
    alone = m.cycles.get("meeting of 1", 0.0)
    for threads in meeting_counts(m.target)[1:]:
        if m.has(f"meeting of {threads}"):  # the last one is that of all
            over = m.cycles[f"meeting of {threads}"] - alone / threads
            yield "barrier_cycles", max(1.0, over * threads / (threads - 1))
    yield "transforms.serial", m.cycles["transform"] / _smooth_transform(m)


def _smooth_transform(m: _Machine) -> float:
    """Cycles of a vector of the transform that is measured, if all its ports were always busy."""
    ports = {name: value for name, value in (*_arithmetic(m), *_ports(m)) if "." not in name}
    machine = replace(m.base, transforms=TransformCosts(serial=1.0), **ports)  # type: ignore[arg-type]
    adds = sum(f.data_adds / f.tile for f in TRANSFORMED.filters)
    return transform_cycles(machine, len(TRANSFORMED.filters), adds)


_FIGURES: Final[tuple[Callable[[_Machine], Iterator[Figure]], ...]] = (
    _arithmetic,
    _ports,
    _levels,
    _kept,
    _hidden,
    _tiles,
    _kernels,
)
