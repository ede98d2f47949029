"""Which of the best candidates are measured together: good ones that differ, and a few by chance.

Points that a model likes best are much alike, and measuring all of them teaches little. So a batch
is chosen out of more candidates than it needs, one by one, by score and by how many values of
digits nobody in the batch has yet (AutoTVM, equation 3). A small share of random points keeps the
model honest where it would never look.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilewright.tuning.search.numbering import sound
from tilewright.tuning.search.ranked import scores_of
from tilewright.tuning.search.strategy import Digits, Score, SearchSpace, Strategy
from tilewright.tuning.search.unseen import Unseen

__all__ = ["BatchedSearch", "Batching", "chosen"]


@dataclass(frozen=True)
class Batching:
    """How batches are chosen.

    `factor` is how many candidates there are for each place. `diversity` weighs a row all of whose
    values are new against the best score over the worst one; 0 takes the best. `epsilon` is the
    share of random points; 0 takes none.
    """

    factor: int = 2
    diversity: float = 0.25
    epsilon: float = 0.05


class BatchedSearch:
    """A strategy whose candidates are chosen by score and diversity. Seeds are always first."""

    def __init__(
        self,
        strategy: Strategy,
        space: SearchSpace,
        rng: np.random.Generator,
        seeds: Digits | None = None,
        batching: Batching = Batching(),
    ) -> None:
        self.strategy, self.space, self.rng = strategy, space, rng
        self.seeds, self.batching = sound(space, seeds), batching

    def propose(self, count: int, score: Score, seen: AbstractSet[bytes]) -> Digits:
        """Unseen seeds, chosen candidates, random points; in this order."""
        unseen = Unseen(self.space, seen)
        seeds = unseen.only(self.seeds)[:count]
        free = count - len(seeds)
        # The fraction of a point is a chance, so that small batches have their share as well.
        random = min(free, int(self.batching.epsilon * free + self.rng.random()))
        factor = self.batching.factor if self.batching.diversity > 0 else 1
        wanted = free - random
        candidates = seeds[:0]
        if wanted:
            asked = len(seeds) + factor * wanted
            candidates = unseen.only(
                np.concatenate([seeds, self.strategy.propose(asked, score, seen)])
            )[len(seeds) :]
        scores = scores_of(score, candidates)
        picked = chosen(candidates, scores, wanted, self.batching.diversity)
        return unseen.first(count, self.rng, seeds, candidates[picked])

    def learn(self, digits: Digits, costs: NDArray[np.float64]) -> None:
        """The strategy learns."""
        self.strategy.learn(digits, costs)


def chosen(
    rows: Digits, scores: NDArray[np.float64], count: int, diversity: float
) -> NDArray[np.intp]:
    """Places of so many rows, greedily by score and new values of digits; O(count × rows)."""
    count = min(count, len(rows))
    order = np.argsort(-scores, kind="stable")
    if diversity <= 0 or count == len(rows):
        return order[:count]
    spread = float(scores.max() - scores.min()) or 1.0
    worth = (scores - scores.min()) / spread
    axes = max(1, int((rows != rows[0]).any(axis=0).sum()))
    is_new = np.ones(rows.shape, np.bool_)
    picked: list[int] = []
    for _ in range(count):
        gains = worth + diversity * is_new.sum(axis=1) / axes
        gains[picked] = -np.inf
        best = int(np.argmax(gains))
        picked.append(best)
        is_new &= rows != rows[best]
    return np.array(picked, np.intp)
