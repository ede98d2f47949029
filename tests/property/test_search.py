"""Searches of random spaces: every proposal is followed, new and different, and spaces end."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tuning.search.spaces import Grid, Valley, keys_of
from tilewright.tuning.search import BASELINES, GUIDED, Batching, key_of, strategy_named
from tilewright.tuning.search.mutation import crossed, mutated
from tilewright.tuning.search.ranked import Best
from tilewright.tuning.search.unseen import Unseen

NAMES = [*GUIDED, *BASELINES]
QUICK = {
    "annealing": {"steps": 10, "chains": 16},
    "evolution": {"population": 24, "generations": 2},
    "genetic": {"pool": 8},
}


@st.composite
def spaces(draw: st.DrawFn, most_axes: int = 6) -> Grid:
    lengths = draw(st.lists(st.integers(1, 7), max_size=most_axes))
    return Grid(tuple(lengths), draw(st.integers(1, 4)), draw(st.integers(0, 40)))


@given(spaces(), st.sampled_from(NAMES), st.integers(0, 99), st.integers(1, 20), st.booleans())
def test_proposals_are_new_points_until_there_are_no_more(space, name, seed, count, is_seeded):
    rng = np.random.default_rng(seed)
    seeds = space.sample(rng, 3) if is_seeded else None
    search = strategy_named(name, space, rng, seeds, **QUICK.get(name, {}))
    valley = Valley(space, 0) if len(space.everything()) else None
    left, seen = keys_of(space.everything()), set()
    for _ in range(5):
        rows = search.propose(count, valley.score if valley else len, seen)
        keys = keys_of(rows)
        assert len(keys) == len(rows) == min(count, len(left))
        assert keys <= left
        left, seen = left - keys, seen | keys
        if valley:
            search.learn(rows, np.where(rng.random(len(rows)) < 0.2, np.inf, valley.costs(rows)))


@given(
    spaces(),
    st.builds(Batching, st.integers(1, 5), st.floats(0, 2), st.floats(0, 1)),
    st.integers(1, 20),
)
def test_batches_are_full_whatever_their_settings(space, batching, count):
    rng = np.random.default_rng(0)
    search = strategy_named("evolution", space, rng, None, batching, population=16, generations=1)
    rows = search.propose(count, lambda rows: rows.sum(axis=1).astype(float), set())
    assert len(keys_of(rows)) == len(rows) == min(count, len(space.everything()))


@given(spaces(), st.integers(0, 99))
def test_new_rows_are_followed_where_old_ones_are(space, seed):
    rng = np.random.default_rng(seed)
    rows = space.sample(rng, 20)
    others = rng.permutation(rows)
    for found in (mutated(space, rng, rows), crossed(space, rng, rows, others)):
        assert found.shape == rows.shape
        assert ((found >= 0) & (found < np.array(space.lengths, np.int64))).all()
        assert space.followed(found).all()


@given(spaces(), st.integers(0, 99), st.integers(0, 12), st.integers(1, 6))
def test_the_best_are_those_of_a_sorted_list(space, seed, capacity, rounds):
    """Shown in parts, with repetitions, and without what was seen."""
    rng = np.random.default_rng(seed)
    everything = space.everything()
    scores = rng.permutation(len(everything)).astype(float)
    seen = everything[rng.random(len(everything)) < 0.3]
    best, shown = Best(Unseen(space, keys_of(seen)), capacity), np.zeros(len(everything), bool)
    for _ in range(rounds):
        part = rng.integers(len(everything), size=10) if len(everything) else np.zeros(0, int)
        before = keys_of(best.rows)
        has_changed = best.add(everything[part], scores[part])
        assert has_changed == (keys_of(best.rows) != before)
        shown[part] = True
    left = [
        k for k in np.argsort(-scores) if shown[k] and key_of(everything[k]) not in keys_of(seen)
    ]
    assert np.array_equal(best.rows, everything[left[:capacity]])
