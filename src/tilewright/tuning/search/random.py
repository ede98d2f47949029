"""Random search: the baseline that knows nothing."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import numpy as np
from numpy.typing import NDArray

from tilewright.tuning.search.numbering import sound
from tilewright.tuning.search.strategy import Digits, Score, SearchSpace
from tilewright.tuning.search.unseen import Unseen

__all__ = ["RandomSearch"]


class RandomSearch:
    """Seeds, then any points."""

    def __init__(
        self, space: SearchSpace, rng: np.random.Generator, seeds: Digits | None = None
    ) -> None:
        self.space, self.rng, self.seeds = space, rng, sound(space, seeds)

    def propose(self, count: int, score: Score, seen: AbstractSet[bytes]) -> Digits:
        """Points at random; scores do not matter."""
        del score
        return Unseen(self.space, seen).first(count, self.rng, self.seeds)

    def learn(self, digits: Digits, costs: NDArray[np.float64]) -> None:
        """There is nothing to learn."""
