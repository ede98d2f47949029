"""Batches: diversity, random points, and that both can be switched off."""

from __future__ import annotations

import numpy as np

from tests.unit.tuning.search.spaces import Grid, Valley, keys_of
from tilewright.tuning.search import BatchedSearch, Batching, EvolutionSearch
from tilewright.tuning.search.batches import chosen

SPACE = Grid((8, 12, 6, 5, 16, 4, 10))


def _covered(rows) -> int:
    return sum(len(np.unique(column)) for column in rows.T)


def _batch(batching: Batching, seed: int = 0, count: int = 16, seeds=None, seen=frozenset()):
    rng = np.random.default_rng(seed)
    inner = EvolutionSearch(SPACE, rng, seeds, population=128)
    search = BatchedSearch(inner, SPACE, rng, seeds, batching)
    return search.propose(count, Valley(SPACE, 0, noise=0).score, seen)


def test_the_best_are_chosen_without_diversity():
    rows = np.array([[0, 0], [1, 1], [2, 2], [3, 3]])
    assert chosen(rows, np.array([1.0, 9.0, 3.0, 9.0]), 3, diversity=0).tolist() == [1, 3, 2]


def test_a_row_with_new_digits_is_worth_more():
    rows = np.array([[0, 0], [0, 1], [0, 2], [5, 6]])
    scores = np.array([1.0, 0.9, 0.8, 0.5])
    assert chosen(rows, scores, 2, diversity=0.1).tolist() == [0, 1]
    assert chosen(rows, scores, 2, diversity=2.0).tolist() == [0, 3]


def test_every_candidate_is_chosen_where_all_are_needed():
    rows = np.array([[0], [1], [2]])
    assert chosen(rows, np.array([1.0, 3.0, 2.0]), 5, diversity=1.0).tolist() == [1, 2, 0]
    assert chosen(rows[:0], np.zeros(0), 5, diversity=1.0).tolist() == []
    assert chosen(rows, np.zeros(3), 0, diversity=1.0).tolist() == []


def test_equal_scores_are_chosen_by_diversity_alone():
    rows = np.array([[0, 0], [0, 0], [0, 1], [1, 1]])
    assert chosen(rows, np.zeros(4), 2, diversity=0.5).tolist() == [0, 3]


def test_diversity_covers_more_values():
    plain = [_batch(Batching(diversity=0, epsilon=0), seed) for seed in range(5)]
    mixed = [_batch(Batching(factor=4, diversity=1.0, epsilon=0), seed) for seed in range(5)]
    assert sum(map(_covered, mixed)) > 1.1 * sum(map(_covered, plain))


def test_without_both_a_batch_is_what_the_strategy_proposes():
    rng = np.random.default_rng(0)
    inner = EvolutionSearch(SPACE, rng, population=128)
    rng.random()  # the chance of a random point
    expected = inner.propose(16, Valley(SPACE, 0, noise=0).score, set())
    assert np.array_equal(_batch(Batching(diversity=0, epsilon=0)), expected)


def test_a_share_of_points_is_random():
    score = Valley(SPACE, 0, noise=0).score
    rows = _batch(Batching(diversity=0, epsilon=0.5), count=32)
    assert len(keys_of(rows)) == 32
    assert score(rows[:16]).min() > score(rows[16:]).mean()
    assert (np.diff(score(rows[:16])) <= 0).all()
    assert (np.diff(score(rows[16:])) > 0).any()


def test_small_batches_have_their_random_points_as_well():
    score = Valley(SPACE, 0, noise=0).score
    last = [score(_batch(Batching(diversity=0, epsilon=0.1), seed, 4))[-1] for seed in range(40)]
    is_random = np.array(last) < -2
    assert 5 <= is_random.sum() <= 30


def test_a_batch_of_random_points_asks_no_strategy():
    rows = _batch(Batching(epsilon=1.0))
    assert len(keys_of(rows)) == 16


def test_seeds_have_their_places_whatever_they_score():
    seeds = SPACE.sample(np.random.default_rng(9), 4)
    rows = _batch(Batching(), seeds=seeds)
    assert np.array_equal(rows[:4], seeds)
    assert len(keys_of(rows)) == 16
    later = _batch(Batching(), seeds=seeds, seen=keys_of(seeds[:3]))
    assert np.array_equal(later[:1], seeds[3:])
    assert np.array_equal(_batch(Batching(), count=2, seeds=seeds), seeds[:2])
