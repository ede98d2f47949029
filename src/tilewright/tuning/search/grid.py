"""Grid search: a walk through the numbers of a space that covers it evenly at any length.

Each step adds the golden section of the space's size, modulo the size: the walk is spread over the
whole space from its beginning, and since both numbers have no common factor, it comes to every
number once. Nothing but the place on the walk is remembered, so a space may have any size.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from math import gcd
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tilewright.tuning.search.numbering import digits_of, sound
from tilewright.tuning.search.strategy import Digits, Score, SearchSpace
from tilewright.tuning.search.unseen import Unseen

__all__ = ["GridSearch"]

GOLDEN: Final = 1_618_033_988_749_894_848, 10**18
"""The golden ratio, as a fraction of integers: sizes do not fit into floats."""
AT_ONCE: Final = 1 << 10
LONGEST: Final = 1 << 18
"""Numbers that one proposal looks at before it takes random points instead."""


class GridSearch:
    """Seeds, then the points of the walk, which begins at a random number."""

    def __init__(
        self, space: SearchSpace, rng: np.random.Generator, seeds: Digits | None = None
    ) -> None:
        self.space, self.rng, self.seeds = space, rng, sound(space, seeds)
        self._step = _stride(space.size)
        self._at, self._walked = int(rng.integers(max(1, min(space.size, 1 << 62)))), 0

    def propose(self, count: int, score: Score, seen: AbstractSet[bytes]) -> Digits:
        """The next points of the walk; scores do not matter."""
        del score
        unseen = Unseen(self.space, seen)
        found = unseen.only(self.seeds)
        end = min(self.space.size, self._walked + LONGEST)
        while len(found) < count and self._walked < end:
            found = unseen.only(np.concatenate([found, self._next(count - len(found), end)]))
        return unseen.first(count, self.rng, found)

    def learn(self, digits: Digits, costs: NDArray[np.float64]) -> None:
        """There is nothing to learn."""

    def _next(self, count: int, end: int) -> Digits:
        """At most so many followed points; the walk stops behind the last of them."""
        steps = min(AT_ONCE, end - self._walked)
        numbers = (np.arange(steps).astype(object) * self._step + self._at) % self.space.size
        rows = digits_of(numbers, self.space.lengths)
        places = np.flatnonzero(self.space.followed(rows))[:count]
        walked = int(places[-1]) + 1 if len(places) == count else steps
        self._walked += walked
        self._at = (self._at + walked * self._step) % self.space.size
        return rows[places]


def _stride(size: int) -> int:
    """A number near the golden section of the size, without a common factor."""
    step = max(1, size * GOLDEN[1] // GOLDEN[0])
    while gcd(step, size) > 1:
        step += 1
    return step
