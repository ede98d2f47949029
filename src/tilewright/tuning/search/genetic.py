"""A genetic algorithm on measured costs, without any model: the baseline of AutoTVM.

Its pool is what was measured last and the elite of everything. Parents are drawn in proportion to
their speed, crossed at one place, and each digit of a child may become any other.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tilewright.tuning.search.mutation import crossed, redrawn
from tilewright.tuning.search.numbering import sound
from tilewright.tuning.search.ranked import Measured
from tilewright.tuning.search.strategy import Digits, Score, SearchSpace
from tilewright.tuning.search.unseen import Unseen

__all__ = ["GeneticSearch"]

ROUNDS: Final = 4
"""How often children are bred before random points take the places of those that were seen."""


class GeneticSearch:
    """AutoTVM has pools of 100; ours are smaller, as searches of 200 trials would learn little."""

    def __init__(
        self,
        space: SearchSpace,
        rng: np.random.Generator,
        seeds: Digits | None = None,
        *,
        pool: int = 32,
        elite: int = 3,
        mutation: float = 0.1,
    ) -> None:
        self.space, self.rng, self.seeds = space, rng, sound(space, seeds)
        self.pool, self.elite, self.mutation = pool, elite, mutation
        self._measured = Measured(len(space.lengths))

    def propose(self, count: int, score: Score, seen: AbstractSet[bytes]) -> Digits:
        """Children of the pool; random points until there is one. Scores do not matter."""
        del score
        unseen = Unseen(self.space, seen)
        found = unseen.only(self.seeds)
        rounds = ROUNDS if len(self._measured) >= self.pool else 0
        for _ in range(rounds):
            if len(found) >= count:
                break
            found = unseen.only(np.concatenate([found, self._children(2 * count)]))
        return unseen.first(count, self.rng, found)

    def learn(self, digits: Digits, costs: NDArray[np.float64]) -> None:
        """Measured points are the parents of others."""
        self._measured.add(digits, costs)

    def _children(self, count: int) -> Digits:
        last = np.arange(max(0, len(self._measured) - self.pool), len(self._measured))
        pool = np.union1d(last, self._measured.best_places(self.elite))
        rows, chances = self._measured.rows[pool], _chances(self._measured.costs[pool])
        first, second = rows[self.rng.choice(len(pool), size=(2, count), p=chances)]
        children = crossed(self.space, self.rng, first, second, at_one_place=True)

        def change(at: NDArray[np.intp]) -> Digits:
            values = self.rng.integers(self.space.lengths, size=(len(at), rows.shape[1]))
            return np.where(self.rng.random(values.shape) < self.mutation, values, children[at])

        return redrawn(self.space, children, change)


def _chances(costs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities in proportion to speed; equal ones if nothing could be measured."""
    speeds = np.where(np.isfinite(costs), 1.0 / np.maximum(costs, 1e-300), 0.0)
    if not speeds.any():
        return np.full(len(costs), 1.0 / len(costs))
    speeds = speeds / speeds.max()
    return np.asarray(speeds / speeds.sum())
