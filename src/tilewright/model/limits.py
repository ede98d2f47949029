"""How fast a kernel could be at best: the time of its multiply-adds, or of its bytes.

Bytes are counted at the speed of the smallest cache that holds all of them: what a kernel reads was
most often written just before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from tilewright.runtime.profile import Profile
from tilewright.runtime.program import Call, Program
from tilewright.target import Rate, Target

__all__ = ["Limit", "Limits", "StepTime", "step_times"]


@dataclass(frozen=True, slots=True)
class Limit:
    """The least time, and what takes it: `FMA`, or a level of memory."""

    seconds: float
    what: str


@dataclass(frozen=True)
class Limits:
    """What a measured machine can do with so many threads."""

    target: Target
    threads: int

    def of(self, flops: int, moved_bytes: int, *, parallel: bool) -> Limit:
        """The limit of a kernel with this work."""
        measured = self.target.measured
        assert measured is not None, "limits need a measured machine"
        threads = min(self.threads, self.target.cores) if parallel else 1
        level = self._level(moved_bytes, threads)
        rate = self._rate(measured.level(level).read, threads)
        memory = Limit(moved_bytes / rate / 1e9, level)
        compute = Limit(flops / self._rate(measured.fma_gflops, threads) / 1e9, "FMA")
        return max(compute, memory, key=lambda limit: limit.seconds)

    def _level(self, moved_bytes: int, threads: int) -> str:
        for cache in self.target.caches:
            if moved_bytes <= cache.size_bytes * max(1, threads // cache.shared_by):
                return f"L{cache.level}"
        return "DRAM"

    def _rate(self, rate: Rate, threads: int) -> float:
        if threads >= self.target.cores:
            return rate.all
        return min(rate.one * threads, rate.all)


@dataclass(frozen=True, slots=True)
class StepTime:
    """What a step took in a run: the median over runs, all its iterations together."""

    step: int
    label: str
    kernel: str
    times: int
    seconds: float
    flops: int
    moved_bytes: int
    parallel: bool


def step_times(program: Program, profiles: Sequence[Profile]) -> list[StepTime]:
    """Steps in order; those that only steer (jumps, sizes) take no time worth a line."""
    by_step: dict[int, list[list[int]]] = {}
    for profile in profiles:
        found: dict[int, list[int]] = {}
        for event in profile.events:
            found.setdefault(event.step, []).append(event.time_ns)
        for step, spent in found.items():
            by_step.setdefault(step, []).append(spent)
    events = {event.step: event for profile in profiles for event in profile.events}
    return [
        StepTime(
            step,
            events[step].label,
            events[step].kernel,
            max(map(len, spent)),
            median(map(sum, spent)) / 1e9,
            (events[step].flops or 0) * max(map(len, spent)),
            (events[step].moved_bytes or 0) * max(map(len, spent)),
            _is_parallel(program, step),
        )
        for step, spent in sorted(by_step.items())
        if events[step].kernel not in {"jump", "enter", "assign"}
    ]


def _is_parallel(program: Program, step: int) -> bool:
    found = program.steps[step]
    return isinstance(found, Call) and program.kernels[found.kernel].parallel
