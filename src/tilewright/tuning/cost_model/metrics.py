"""How good an order is: scores against what was measured.

Scores are higher for what is expected to be faster; costs are times, or anything that grows with
them. A constant side has no order: correlations are NaN then, and a tie counts as half right.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["pairwise_accuracy", "peak_score", "spearman", "top_recall"]


def spearman(a: ArrayLike, b: ArrayLike) -> float:
    """Rank correlation; ties share the mean of their ranks. NaN where one side is constant."""
    ranks = [_ranks(np.asarray(side, float)) for side in (a, b)]
    if any(np.ptp(r) == 0 for r in ranks):
        return math.nan
    first, second = ranks
    return float(np.corrcoef(first, second)[0, 1])


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts - 1) / 2)[place])


def pairwise_accuracy(scores: ArrayLike, costs: ArrayLike) -> float:
    """The part of all pairs of different costs that scores put in the right order."""
    score, cost = np.asarray(scores, float), np.asarray(costs, float)
    first, second = np.triu_indices(len(cost), 1)
    apart = np.sign(cost[second] - cost[first])
    said = np.sign(score[first] - score[second])
    counted = apart != 0
    if not counted.any():
        return math.nan
    return float(np.mean((1 + said[counted] * apart[counted]) / 2))


def top_recall(scores: ArrayLike, costs: ArrayLike, count: int) -> float:
    """The part of the `count` fastest that is among the `count` highest scores."""
    order = np.argsort(np.asarray(costs, float), kind="stable")
    count = min(count, len(order))
    best = set(order[:count].tolist())
    said = set(_highest(scores, count).tolist())
    return len(best & said) / max(1, count)


def peak_score(scores: ArrayLike, costs: ArrayLike, count: int) -> float:
    """How fast the best of the `count` highest scores is beside the fastest of all, at most 1."""
    cost = np.asarray(costs, float)
    return float(cost.min() / cost[_highest(scores, count)].min())


def _highest(scores: ArrayLike, count: int) -> NDArray[np.intp]:
    order: NDArray[np.intp] = np.argsort(-np.asarray(scores, float), kind="stable")
    return order[:count]
