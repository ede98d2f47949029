"""What all strategies share: a space of digits, a score for its points, and their interface.

A point is a row of digits, one for each axis of the space, as many at once as a matrix has rows. A
strategy never sees a program: it draws rows, changes digits and asks for scores.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Digits", "Score", "SearchSpace", "Strategy", "key_of"]

Digits = NDArray[np.int64]
"""Points as rows of digits."""

Score = Callable[[Digits], NDArray[np.float64]]
"""How promising points are, the higher the better."""


class SearchSpace(Protocol):
    """A numbered space: `lengths` says how many values each digit has."""

    @property
    def lengths(self) -> tuple[int, ...]: ...

    @property
    def size(self) -> int:
        """How many combinations of digits there are, followed or not."""

    def followed(self, digits: Digits) -> NDArray[np.bool_]:
        """Which rows are points that a schedule can follow."""

    def sample(self, rng: np.random.Generator, count: int) -> Digits:
        """So many different points at random, or fewer if there are not so many."""


class Strategy(Protocol):
    """Which points to measure next."""

    def propose(self, count: int, score: Score, seen: AbstractSet[bytes]) -> Digits:
        """So many points that are not `seen` (by `key_of`); fewer at the end of the space.

        Points to start from are first, then the best by what the strategy goes by.
        """

    def learn(self, digits: Digits, costs: NDArray[np.float64]) -> None:
        """What measured points cost, infinite for failures."""


def key_of(row: Digits) -> bytes:
    """A point as a member of sets."""
    return np.ascontiguousarray(row, np.int64).tobytes()
