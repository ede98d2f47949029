"""Turns of probes: each has many short ones, in rounds, and its best one counts.

Neighbours on a shared machine make some turns longer, never shorter. A round gives every probe a
few turns, so that a disturbance of some milliseconds meets few turns of each probe; the first of
them brings its data back into the caches. Rounds end when they have had their time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["TURNS", "Probe", "best_seconds"]

TURN_SECONDS: Final = 0.0002
TURNS: Final = 4
ROUNDS: Final = 20
LEAST_ROUNDS: Final = 8
"""However long they take."""
SECONDS: Final = 1.5
"""For all rounds."""


@dataclass(frozen=True)
class Probe:
    """`run(times)` does `units` units of work so many times.

    It may return the seconds that it took by a clock of its own.
    """

    run: Callable[[int], float | None]
    units: float
    turn_seconds: float = TURN_SECONDS
    turns: int = TURNS
    """In each round."""


def best_seconds(
    probes: Mapping[str, Probe], clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Seconds of one unit of each probe's work."""
    times = {name: _times(probe, clock) for name, probe in probes.items()}
    best = dict.fromkeys(probes, float("inf"))
    end = clock() + SECONDS
    for number in range(ROUNDS):
        if number >= LEAST_ROUNDS and clock() > end:
            break
        for name, probe in probes.items():
            turn = min(_seconds(probe, times[name], clock) for _ in range(probe.turns))
            best[name] = min(best[name], turn / (times[name] * probe.units))
    return best


def _times(probe: Probe, clock: Callable[[], float]) -> int:
    """How many times take about as long as a turn is to be.

    A disturbed attempt must not end the search too early: the better one of two counts.
    """
    count, wanted = 1, probe.turn_seconds
    while (elapsed := min(_seconds(probe, count, clock) for _ in range(2))) < wanted / 2:
        count = max(count + 1, int(count * min(16.0, wanted / max(elapsed, 1e-9))))
    return count


def _seconds(probe: Probe, times: int, clock: Callable[[], float]) -> float:
    start = clock()
    own = probe.run(times)
    return clock() - start if own is None else own
