"""New points from known ones: digits that change, and rows that are crossed.

All rows at once. A result that no schedule can follow is drawn again, a bounded number of times;
then its row stays as it was, so that what goes out is always followed if what came in was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tilewright.tune.search.strategy import Digits, SearchSpace

__all__ = ["crossed", "mutated", "redrawn"]

TRIES: Final = 8
"""How often a row is drawn that cannot be followed; MetaSchedule has 10."""
CHANCES: Final = (1.0, 0.25, 0.05)
"""One digit changes, sometimes a second, rarely a third: digits may be good only together."""
NEAR: Final = 0.5
"""The share of changes to a value close by. Values of an axis are mostly in order, and its
neighbours are similar; the others are to any value."""
NEAREST: Final = 8
"""A value close by is within this part of the axis, or next to it."""


def mutated(space: SearchSpace, rng: np.random.Generator, rows: Digits) -> Digits:
    """Each row with one digit, or a few, changed."""
    lengths = np.array(space.lengths, np.int64)
    free = np.flatnonzero(lengths > 1)
    if not len(free):
        return rows.copy()

    def change(at: NDArray[np.intp]) -> Digits:
        changed = rows[at]
        for chance in CHANCES:
            which = np.flatnonzero(rng.random(len(at)) < chance)
            axes = free[rng.integers(len(free), size=len(which))]
            changed[which, axes] = _another(rng, changed[which, axes], lengths[axes])
        return changed

    return redrawn(space, rows, change)


def crossed(
    space: SearchSpace,
    rng: np.random.Generator,
    first: Digits,
    second: Digits,
    *,
    at_one_place: bool = False,
) -> Digits:
    """Digits of two rows mixed: each from either of them, or the second's behind one place."""
    width = first.shape[1]

    def mix(at: NDArray[np.intp]) -> Digits:
        if at_one_place:
            places = rng.integers(1, max(2, width), size=(len(at), 1))
            taken = np.arange(width) >= places
        else:
            taken = rng.random((len(at), width)) < 0.5
        return np.where(taken, second[at], first[at])

    return redrawn(space, first, mix)


def redrawn(space: SearchSpace, rows: Digits, draw: Callable[[NDArray[np.intp]], Digits]) -> Digits:
    """What `draw` makes of the rows at some places, again and again where it is not followed."""
    found = rows.copy()
    missing = np.arange(len(rows))
    for _ in range(TRIES):
        if not len(missing):
            break
        drawn = draw(missing)
        is_followed = space.followed(drawn)
        found[missing[is_followed]] = drawn[is_followed]
        missing = missing[~is_followed]
    return found


def _another(rng: np.random.Generator, digits: Digits, lengths: Digits) -> Digits:
    """Another value for each digit, close by or any."""
    steps = 1 + rng.integers(np.maximum(1, lengths // NEAREST))
    steps = np.where(rng.random(len(digits)) < 0.5, steps, -steps)
    # A step is at most half of an axis, so where one direction leaves it, the other does not.
    near = np.where(
        (digits + steps >= 0) & (digits + steps < lengths), digits + steps, digits - steps
    )
    anywhere = (digits + 1 + rng.integers(lengths - 1)) % lengths
    return np.where(rng.random(len(digits)) < NEAR, near, anywhere)
