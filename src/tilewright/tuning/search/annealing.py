"""Simulated annealing, guided by scores: many chains of small changes that cool down together.

As in AutoTVM, chains go on from where they are when the model behind the scores has learned more,
and the best points that any of them has come by are proposed. Scores have no unit, and models no
common scale, so temperatures are in what a change of a random point changes in its score.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tilewright.tuning.search.mutation import mutated
from tilewright.tuning.search.numbering import sound
from tilewright.tuning.search.ranked import LIMIT, Best, Measured, scores_of
from tilewright.tuning.search.strategy import Digits, Score, SearchSpace
from tilewright.tuning.search.unseen import Unseen

__all__ = ["AnnealingSearch"]

COLDEST: Final = 1e-5
"""The temperature at the end, where nothing worse is accepted."""
RESTARTED: Final = 8
"""One chain in so many, the worst ones, goes on from the best that was measured."""


class AnnealingSearch:
    """The parameters are AutoTVM's: temperatures fall from 1 to 0 within `steps`.

    A proposal ends early when its points have stayed the same for `patience` steps.
    """

    def __init__(
        self,
        space: SearchSpace,
        rng: np.random.Generator,
        seeds: Digits | None = None,
        *,
        members: Digits | None = None,
        chains: int = 128,
        steps: int = 500,
        patience: int = 50,
    ) -> None:
        self.space, self.rng, self.seeds = space, rng, sound(space, seeds)
        self.members = sound(space, members)
        self.steps, self.patience = steps, patience
        self._count = chains
        self._measured = Measured(len(space.lengths))
        self.chains = np.zeros((0, len(space.lengths)), np.int64)

    def propose(self, count: int, score: Score, seen: AbstractSet[bytes]) -> Digits:
        """Unseen seeds, then the best points on the way of the chains."""
        unseen = Unseen(self.space, seen)
        best = Best(unseen, count)
        sample = self.space.sample(self.rng, self._count)
        if not len(self.chains):
            self.chains = self._begin(sample)
        if len(self.chains):
            self._anneal(score, best, sample)
        return unseen.first(count, self.rng, self.seeds, best.rows)

    def learn(self, digits: Digits, costs: NDArray[np.float64]) -> None:
        """The best that was measured is where some chains go on."""
        self._measured.add(digits, costs)

    def _begin(self, sample: Digits) -> Digits:
        """Seeds, members and random points; several chains from each where there are not so many.

        Half of the chains begin at random, however many members there are.
        """
        given = np.concatenate([self.seeds, self.members])[: self._count // 2]
        rows = np.concatenate([given, sample])[: self._count]
        return rows[np.arange(self._count) % len(rows)] if len(rows) else rows

    def _anneal(self, score: Score, best: Best, sample: Digits) -> None:
        chains, scores = self._restarted(score)
        best.add(chains, scores)
        unit, idle = self._usual_change(score, best, sample), 0
        for temperature in np.linspace(1.0, 0.0, self.steps):
            moved = mutated(self.space, self.rng, chains)
            met = scores_of(score, moved)
            idle = 0 if best.add(moved, met) else idle + 1
            if idle >= self.patience:
                break
            gains = (met - scores) / (unit * (temperature + COLDEST))
            taken = self.rng.random(len(chains)) < np.exp(np.minimum(gains, 0.0))
            chains = np.where(taken[:, None], moved, chains)
            scores = np.where(taken, met, scores)
        self.chains = chains

    def _restarted(self, score: Score) -> tuple[Digits, NDArray[np.float64]]:
        """The chains with today's scores, the worst of them at the best measured points."""
        chains, scores = self.chains.copy(), scores_of(score, self.chains)
        known = self._measured.best(len(chains) // RESTARTED)
        worst = np.argsort(scores, kind="stable")[: len(known)]
        chains[worst], scores[worst] = known, scores_of(score, known)
        return chains, scores

    def _usual_change(self, score: Score, best: Best, sample: Digits) -> float:
        """By how much scores of random points change with them; 1 where they do not."""
        moved = mutated(self.space, self.rng, sample)
        before, behind = scores_of(score, sample), scores_of(score, moved)
        best.add(sample, before)
        best.add(moved, behind)
        changes = np.abs(behind - before)
        changes = changes[(changes > 0) & (changes < LIMIT / 2)]
        return float(np.median(changes)) if len(changes) else 1.0
