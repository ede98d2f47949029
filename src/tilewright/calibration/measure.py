"""Turns of probes: each has many short ones, in rounds, and its best one counts.

Neighbours on a shared machine make some turns longer, never shorter. A round gives every probe one
turn, so that a disturbance of some milliseconds meets one turn of each probe at most.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["Probe", "best_seconds"]

TURN_SECONDS: Final = 0.001
ROUNDS: Final = 16


@dataclass(frozen=True)
class Probe:
    """`run(turns)` does `units` units of work in each of its turns."""

    run: Callable[[int], object]
    units: float


def best_seconds(
    probes: Mapping[str, Probe], clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Seconds of one unit of each probe's work."""
    turns = {name: _turns(probe, clock) for name, probe in probes.items()}
    best = dict.fromkeys(probes, float("inf"))
    for _ in range(ROUNDS):
        for name, probe in probes.items():
            seconds = _seconds(probe, turns[name], clock)
            best[name] = min(best[name], seconds / (turns[name] * probe.units))
    return best


def _turns(probe: Probe, clock: Callable[[], float]) -> int:
    """How many turns take about as long as a turn is to be."""
    count = 1
    while (elapsed := _seconds(probe, count, clock)) < TURN_SECONDS / 2:
        count = max(count + 1, int(count * min(16.0, TURN_SECONDS / max(elapsed, 1e-9))))
    return count


def _seconds(probe: Probe, turns: int, clock: Callable[[], float]) -> float:
    start = clock()
    probe.run(turns)
    return clock() - start
