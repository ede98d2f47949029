"""A candidate and its reference by turns: drift of the machine and neighbours meet both alike.

Neighbours make turns longer, never shorter: the quarter of turns that was least disturbed says what
a kernel takes. How many turns there are depends on what is at stake: a candidate that is far slower
than the reference is known well enough after three, and one that may be better is measured until
the ratio is good to about a percent, or its time is over.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

__all__ = ["Times", "take_turns"]

Turn = Callable[[], float]
"""Runs something, and returns nanoseconds of one run."""

FAR: Final = 3.0
"""This much slower than the reference, a few turns are enough."""
FAR_TURNS: Final = 3
SLOWER: Final = ((4, 1.3), (8, 1.08))
"""After so many pairs, one that is so much slower is no longer of interest."""
ENOUGH: Final = 8
"""Pairs from which on their spread says how good the ratio is."""
GOOD: Final = 0.004
MOST_PAIRS: Final = 40
LEAST_PAIRS: Final = 6
"""However long they take."""
SECONDS: Final = 0.04
UNDISTURBED: Final = 0.25


@dataclass(frozen=True)
class Times:
    """Nanoseconds of a run of both; `spread` is that of the candidate's turns, by their median."""

    time_ns: float
    reference_ns: float
    spread: float
    pairs: int


def take_turns(
    candidate: Turn,
    reference: Turn,
    usual_ns: float,
    clock: Callable[[], float] = time.perf_counter,
) -> Times:
    """Times of both; `usual_ns` is what the reference took before."""
    end = clock() + SECONDS
    ours, theirs = [candidate()], [reference()]
    far = FAR * max(usual_ns, theirs[0])
    while ours[-1] > far and len(ours) < FAR_TURNS:  # one or two turns may have been disturbed
        ours.append(candidate())
    if min(ours) > far:
        return _times(ours, theirs)
    theirs += [reference() for _ in ours[1:]]
    while len(ours) < MOST_PAIRS and not _is_known(ours, theirs):
        if len(ours) >= LEAST_PAIRS and clock() > end:
            break
        # Who comes first may find the caches in a better state: both do, half of the time.
        if len(ours) % 2:
            theirs.append(reference())
            ours.append(candidate())
        else:
            ours.append(candidate())
            theirs.append(reference())
    return _times(ours, theirs)


def _is_known(ours: list[float], theirs: list[float]) -> bool:
    ratio = _undisturbed(ours) / _undisturbed(theirs)
    if any(len(ours) >= pairs and ratio > slower for pairs, slower in SLOWER):
        return True
    return len(ours) >= ENOUGH and _error(ours, theirs) < GOOD


def _error(ours: list[float], theirs: list[float]) -> float:
    """About how far the ratio is off, by the spread of the pairs."""
    ratios = np.array(ours) / np.array(theirs)
    low, high = np.quantile(ratios, (0.25, 0.75))
    return float((high - low) / np.median(ratios) / np.sqrt(len(ratios)))


def _times(ours: list[float], theirs: list[float]) -> Times:
    low, middle, high = np.quantile(ours, (0.25, 0.5, 0.75))
    spread = float((high - low) / 2 / middle) if middle else 0.0
    return Times(_undisturbed(ours), _undisturbed(theirs), spread, len(ours))


def _undisturbed(turns: list[float]) -> float:
    return max(1e-3, float(np.quantile(turns, UNDISTURBED)))
