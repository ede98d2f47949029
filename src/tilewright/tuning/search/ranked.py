"""What a search remembers: the best points by score that it met, and all that were measured."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tilewright.tuning.search.numbering import codes_of, is_among
from tilewright.tuning.search.strategy import Digits, Score
from tilewright.tuning.search.unseen import Unseen

__all__ = ["Best", "Measured", "scores_of"]

Scores = NDArray[np.float64]

LIMIT: Final = 1e30
"""Scores are cut to this, so that their differences are numbers; what is no number is the worst."""


def scores_of(score: Score, rows: Digits) -> Scores:
    """Scores of rows, all of them finite."""
    if not len(rows):
        return np.zeros(0)
    scores = np.asarray(score(rows), np.float64)
    return np.clip(np.nan_to_num(scores, nan=-LIMIT), -LIMIT, LIMIT)


class Best:
    """The best so many unseen points of all that are shown to it, the best first."""

    def __init__(self, unseen: Unseen, capacity: int) -> None:
        self.capacity, self._unseen = capacity, unseen
        self.rows = np.zeros((0, len(unseen.space.lengths)), np.int64)
        self._scores, self._codes = np.zeros(0), np.zeros(0, np.uint64)

    def add(self, rows: Digits, scores: Scores) -> bool:
        """Whether one of the rows is among the best now, and was not before."""
        is_full = len(self.rows) >= self.capacity
        keep = scores > self._scores[-1] if is_full and self.capacity else scores >= -LIMIT
        rows, scores = rows[keep], scores[keep]
        codes = codes_of(rows, self._unseen.space.lengths)
        new = ~is_among(codes, self._unseen.seen)
        if not new.any():
            return False
        return self._merge(rows[new], scores[new], codes[new])

    def _merge(self, rows: Digits, scores: Scores, codes: NDArray[np.uint64]) -> bool:
        before = len(self.rows)
        scores = np.concatenate([self._scores, scores])
        codes = np.concatenate([self._codes, codes])
        first = np.unique(codes, return_index=True)[1]
        order = first[np.lexsort((first, -scores[first]))][: self.capacity]
        self.rows = np.concatenate([self.rows, rows])[order]
        self._scores, self._codes = scores[order], codes[order]
        return bool((order >= before).any())


class Measured:
    """Points with their costs in the order of measuring; infinite for failures."""

    def __init__(self, width: int) -> None:
        self.rows, self.costs = np.zeros((0, width), np.int64), np.zeros(0)

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, digits: Digits, costs: NDArray[np.float64]) -> None:
        """More of them; a cost that is no number is that of a failure."""
        costs = np.nan_to_num(np.asarray(costs, np.float64), nan=np.inf, posinf=np.inf)
        self.rows = np.concatenate([self.rows, np.asarray(digits, np.int64)])
        self.costs = np.concatenate([self.costs, costs])

    def best(self, count: int) -> Digits:
        """The so many of least cost, without failures."""
        return self.rows[self.best_places(count)]

    def best_places(self, count: int) -> NDArray[np.intp]:
        """Where these are."""
        order = np.argsort(self.costs, kind="stable")[:count]
        return order[np.isfinite(self.costs[order])]
