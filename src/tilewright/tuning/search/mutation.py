"""New points from known ones: digits that change, and rows that are crossed.

All rows at once. A result that no schedule can follow is drawn again, a bounded number of times;
then its row stays as it was, so that what goes out is always followed if what came in was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tilewright.tuning.search.strategy import Digits, SearchSpace

__all__ = ["crossed", "mutated", "redrawn"]

TRIES: Final = 8
"""Draws of a row until one can be followed; MetaSchedule has 10."""
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
    """What `draw` makes of the rows at some places, the first draw of each that is followed."""
    found = rows.copy()
    missing = np.arange(len(rows))
    # Rows that miss at first have all other draws at once: a call has its price, rows hardly any.
    for draws in (1, TRIES - 1):
        if not len(missing):
            break
        drawn = draw(np.repeat(missing, draws))
        is_followed = space.followed(drawn).reshape(len(missing), draws)
        has_one, first = is_followed.any(axis=1), is_followed.argmax(axis=1)
        taken = np.arange(len(missing)) * draws + first
        found[missing[has_one]] = drawn[taken[has_one]]
        missing = missing[~has_one]
    return found


def _another(rng: np.random.Generator, digits: Digits, lengths: Digits) -> Digits:
    """Another value for each digit, close by or any."""
    chances = rng.random((4, len(digits)))
    steps = 1 + (chances[0] * np.maximum(1, lengths // NEAREST)).astype(np.int64)
    steps = np.where(chances[1] < 0.5, steps, -steps)
    # A step is at most half of an axis, so where one direction leaves it, the other does not.
    near = digits + steps
    near = np.where((near >= 0) & (near < lengths), near, digits - steps)
    anywhere = (digits + 1 + (chances[2] * (lengths - 1)).astype(np.int64)) % lengths
    return np.asarray(np.where(chances[3] < NEAR, near, anywhere), np.int64)
