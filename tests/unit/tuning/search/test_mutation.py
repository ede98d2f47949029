"""Mutation and crossover: what changes, how far, and that schedules can follow it."""

from __future__ import annotations

import numpy as np

from tests.unit.tuning.search.spaces import Grid
from tilewright.tuning.search.mutation import crossed, mutated


def test_mutation_changes_one_digit_and_sometimes_more(rng):
    space = Grid((9, 5, 7, 2, 12))
    rows = space.sample(rng, 1000)
    changes = (mutated(space, rng, rows) != rows).sum(axis=1)
    assert np.bincount(changes, minlength=4)[1] > 600
    assert 0 < (changes == 2).sum() > (changes == 3).sum() > 0
    assert changes.max() == 3
    assert (changes == 0).mean() < 0.05  # a digit that changed back


def test_mutation_reaches_every_value_and_prefers_near_ones(rng):
    space = Grid((16,))
    rows = np.full((4000, 1), 8)
    counts = np.bincount(mutated(space, rng, rows)[:, 0], minlength=16)
    near, far = counts[[6, 7, 9, 10]], counts[[0, 2, 4, 12, 14, 15]]
    assert far.min() > 0
    assert near.min() > 2 * far.max()


def test_mutation_stays_in_the_space_and_is_followed(rng):
    space = Grid((2, 1, 40, 3), every=3, most=30)
    rows = space.sample(rng, 500)
    found = mutated(space, rng, rows)
    assert space.followed(found).all()
    assert ((found >= 0) & (found < space.lengths)).all()
    assert (found != rows).any(axis=1).mean() > 0.3


def test_mutation_leaves_a_point_without_neighbours_as_it_is(rng):
    space = Grid((5, 5), most=1)  # nothing but zeros
    rows = np.zeros((3, 2), np.int64)
    assert np.array_equal(mutated(space, rng, rows), rows)
    assert sum(space.asked) <= 8 * len(rows)


def test_mutation_of_a_space_without_choices(rng):
    assert mutated(Grid((1, 1)), rng, np.zeros((2, 2), np.int64)).tolist() == [[0, 0], [0, 0]]


def test_crossed_rows_have_digits_of_both(rng):
    space = Grid((10,) * 6)
    first, second = np.full((200, 6), 2), np.full((200, 6), 7)
    found = crossed(space, rng, first, second)
    assert set(np.unique(found)) == {2, 7}
    assert 0.4 < (found == 7).mean() < 0.6


def test_rows_crossed_at_one_place_begin_like_the_first(rng):
    space = Grid((10,) * 6)
    found = crossed(space, rng, np.full((200, 6), 2), np.full((200, 6), 7), at_one_place=True)
    assert (np.diff(found, axis=1) >= 0).all()
    assert (found[:, 0] == 2).all()
    assert (found[:, -1] == 7).all()


def test_crossed_rows_are_followed(rng):
    space = Grid((6, 6, 6), every=4)
    first, second = space.sample(rng, 40)[:20], space.sample(rng, 40)[-20:]
    assert space.followed(crossed(space, rng, first, second[: len(first)])).all()
