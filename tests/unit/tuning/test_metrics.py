"""Metrics of orders."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tilewright.tuning.cost_model.metrics import (
    pairwise_accuracy,
    peak_score,
    spearman,
    top_recall,
)

COSTS = np.array([1.0, 2.0, 3.0, 4.0])


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [([1, 2, 3], [10, 20, 30], 1.0), ([1, 2, 3], [3, 2, 1], -1.0), ([1, 1, 2], [5, 5, 9], 1.0)],
)
def test_correlation_of_ranks(a, b, expected):
    assert spearman(a, b) == pytest.approx(expected)


def test_a_constant_side_has_no_order():
    assert math.isnan(spearman([1, 1], [1, 2]))
    assert math.isnan(pairwise_accuracy([1, 2], [3, 3]))


@pytest.mark.parametrize(
    ("scores", "expected"),
    [([4, 3, 2, 1], 1.0), ([1, 2, 3, 4], 0.0), ([3, 4, 2, 1], 5 / 6), ([0, 0, 0, 0], 0.5)],
)
def test_pairs_in_the_right_order(scores, expected):
    assert pairwise_accuracy(scores, COSTS) == pytest.approx(expected)


def test_recall_of_the_fastest():
    assert top_recall([4, 1, 3, 2], COSTS, 2) == 0.5
    assert top_recall([4, 3, 2, 1], COSTS, 2) == 1.0
    assert top_recall([4, 3, 2, 1], COSTS, 99) == 1.0


def test_peak_is_the_fastest_of_a_few_beside_the_fastest():
    assert peak_score([1, 4, 3, 2], COSTS, 1) == 0.5
    assert peak_score([1, 4, 3, 2], COSTS, 4) == 1.0
