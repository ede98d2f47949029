"""Evolutionary search, guided by scores, as in Ansor and MetaSchedule.

Each proposal begins with a new population: the best that was measured, seeds and members that were
given, and random points for the most part. Over some generations the better ones of it are crossed
and mutated; the best unseen points of all generations are proposed. Parents are drawn by rank,
since scores have no scale.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tilewright.tuning.search.mutation import crossed, mutated
from tilewright.tuning.search.numbering import codes_of, distinct, sound
from tilewright.tuning.search.ranked import Best, Measured, scores_of
from tilewright.tuning.search.strategy import Digits, Score, SearchSpace
from tilewright.tuning.search.unseen import Unseen

__all__ = ["EvolutionSearch"]

PRESSURE: Final = 4.0
"""The first of a population is this power of e as likely a parent as the last."""


class EvolutionSearch:
    """The parameters are MetaSchedule's, with a share of crossed children and an elite added."""

    def __init__(
        self,
        space: SearchSpace,
        rng: np.random.Generator,
        seeds: Digits | None = None,
        *,
        members: Digits | None = None,
        population: int = 512,
        generations: int = 4,
        mutation: float = 0.85,
        crossover: float = 0.3,
        measured: float = 0.2,
        elite: float = 0.1,
    ) -> None:
        self.space, self.rng, self.seeds = space, rng, sound(space, seeds)
        self.members = sound(space, members)
        self.population, self.generations = population, generations
        self.mutation, self.crossover = mutation, crossover
        self.measured, self.elite = measured, elite
        self._measured = Measured(len(space.lengths))

    def propose(self, count: int, score: Score, seen: AbstractSet[bytes]) -> Digits:
        """Unseen seeds, then the best points of all generations."""
        unseen = Unseen(self.space, seen)
        best = Best(unseen, count)
        rows = self._begin()
        scores = scores_of(score, rows)
        best.add(rows, scores)
        for _ in range(self.generations if len(rows) else 0):
            rows = self._bred(rows, scores)
            scores = scores_of(score, rows)
            best.add(rows, scores)
        return unseen.first(count, self.rng, self.seeds, best.rows)

    def learn(self, digits: Digits, costs: NDArray[np.float64]) -> None:
        """The best that was measured is in every first generation."""
        self._measured.add(digits, costs)

    def _begin(self) -> Digits:
        known = self._measured.best(int(self.measured * self.population))
        drawn = self.space.sample(self.rng, self.population)
        return self._distinct(np.concatenate([known, self.seeds, self.members, drawn]))

    def _bred(self, rows: Digits, scores: NDArray[np.float64]) -> Digits:
        """The next generation: the elite, children, and others where children are the same."""
        rows = rows[np.argsort(-scores, kind="stable")]
        chances = np.exp(-PRESSURE * np.arange(len(rows)) / len(rows))
        parents = self.rng.choice(len(rows), size=(2, self.population), p=chances / chances.sum())
        children, others = rows[parents]
        mixed = self.rng.random(len(children)) < self.crossover
        children[mixed] = crossed(self.space, self.rng, children[mixed], others[mixed])
        changed = self.rng.random(len(children)) < self.mutation
        children[changed] = mutated(self.space, self.rng, children[changed])
        kept = rows[: max(1, int(self.elite * self.population))]
        bred = self._distinct(np.concatenate([kept, children]))
        more = self.space.sample(self.rng, self.population - len(bred))
        return self._distinct(np.concatenate([bred, more]))

    def _distinct(self, rows: Digits) -> Digits:
        return rows[distinct(codes_of(rows, self.space.lengths))][: self.population]
