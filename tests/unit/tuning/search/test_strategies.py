"""Strategies on spaces whose best point is known: what they find, and what callers rely on."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tests.expect import raises_code
from tests.unit.tuning.search.spaces import Grid, Valley, keys_of, tuned
from tilewright.tuning.search import (
    BASELINES,
    GUIDED,
    AnnealingSearch,
    Batching,
    EvolutionSearch,
    GridSearch,
    RandomSearch,
    strategy_named,
)

NAMES = [*GUIDED, *BASELINES]
SPACE = Grid((8, 12, 6, 5, 16, 4, 10, 3, 20, 7), every=2, most=60)
QUICK = {"annealing": {"steps": 40, "chains": 64}, "evolution": {"population": 128}}


def _search(name: str, space: Grid = SPACE, seed: int = 0, seeds=None, **options):
    rng = np.random.default_rng(seed)
    return strategy_named(name, space, rng, seeds, **QUICK.get(name, {}), **options)


def _flat(rows):
    return np.zeros(len(rows))


def _mean_best(name: str, trials: int, noise: float = 0.5) -> float:
    """The logarithm of the best cost, over several searches; 0 is the best of all."""
    valleys = [Valley(SPACE, seed, noise) for seed in range(5)]
    bests = [tuned(_search(name, seed=k), v, trials)[1].min() for k, v in enumerate(valleys)]
    return float(np.log(bests).mean())


@pytest.fixture(scope="module")
def random_best() -> float:
    return _mean_best("random", 96)


@pytest.mark.parametrize("name", GUIDED)
def test_guided_search_finds_better_points_than_random(name, random_best):
    """In a third of the trials, too."""
    assert _mean_best(name, 96) < 0.4 * random_best
    assert _mean_best(name, 32) < 0.6 * random_best


def test_genetic_search_finds_better_points_than_random(random_best):
    assert _mean_best("genetic", 96) < 0.8 * random_best


@pytest.mark.parametrize("name", NAMES)
def test_proposals_are_followed_unseen_and_different(name):
    rows, _ = tuned(_search(name), Valley(SPACE, 1), 80)
    assert len(keys_of(rows)) == 80
    assert SPACE.followed(rows).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_small_space_is_searched_to_its_end(name):
    space = Grid((3, 4, 2, 3), every=2)
    rows, _ = tuned(_search(name, space), Valley(space, 0), 1000, batch=7)
    assert keys_of(rows) == keys_of(space.everything())
    assert len(rows) == len(space.everything()) == 36


@pytest.mark.parametrize("name", NAMES)
def test_a_rare_point_is_found_in_the_end(name):
    """Sampling hardly meets it, walking does."""
    space = Grid((30, 30, 30), most=2)
    found = _search(name, space).propose(8, _flat, set())
    assert keys_of(found) == keys_of(space.everything())
    assert not len(_search(name, space).propose(8, _flat, keys_of(found)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("lengths", [(), (1,), (1, 1, 1), (2,)])
def test_spaces_with_hardly_a_choice(name, lengths):
    space = Grid(lengths)
    assert len(_search(name, space).propose(4, _flat, set())) == space.size


@pytest.mark.parametrize("name", NAMES)
def test_a_space_without_points_has_no_proposals(name):
    assert not len(_search(name, Grid((3, 3), most=0)).propose(4, _flat, set()))
    assert not len(_search(name).propose(0, _flat, set()))


@pytest.mark.parametrize("name", NAMES)
def test_a_space_beyond_64_bits(name):
    space = Grid((50,) * 14, every=3)
    rows, _ = tuned(_search(name, space), Valley(space, 0), 32)
    assert len(keys_of(rows)) == 32
    assert space.followed(rows).all()


@pytest.mark.parametrize("name", NAMES)
def test_seeds_are_proposed_first_and_once(name):
    seeds = SPACE.sample(np.random.default_rng(5), 3)
    wrong = seeds[:1].copy()
    wrong[0, 0] += 1 - 2 * (wrong[0, 0] > 0)  # an odd sum
    search = _search(name, seeds=np.concatenate([wrong, seeds, seeds[:1]]))
    first = search.propose(6, Valley(SPACE, 0).score, set())
    assert np.array_equal(first[:3], seeds)
    second = search.propose(6, Valley(SPACE, 0).score, keys_of(first))
    assert not keys_of(first) & keys_of(second)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_proposes_the_same(name):
    rows, again = (tuned(_search(name, seed=3), Valley(SPACE, 2), 48)[0] for _ in range(2))
    assert np.array_equal(rows, again)
    others, _ = tuned(_search(name, seed=4), Valley(SPACE, 2), 48)
    assert not np.array_equal(rows, others)


@pytest.mark.parametrize("name", GUIDED)
def test_scores_that_are_no_numbers_are_the_worst(name):
    def score(rows):
        scores = Valley(SPACE, 0).score(rows)
        scores[rows[:, 0] % 2 == 0] = np.nan
        scores[rows[:, 0] == 1] = -np.inf
        return scores

    batching = Batching(diversity=0, epsilon=0)
    found = _search(name, batching=batching).propose(16, score, set())
    assert (found[:, 0] % 2 == 1).all()
    assert (found[:, 0] != 1).all()


@pytest.mark.parametrize("name", GUIDED)
def test_failures_do_not_attract_a_search(name):
    search = _search(name)
    rows = SPACE.sample(np.random.default_rng(0), 8)
    search.learn(rows, np.array([np.inf, np.nan] * 4))
    assert not len(search.strategy._measured.best(8))
    search.learn(rows[:1], np.array([2.0]))
    assert np.array_equal(search.strategy._measured.best(8), rows[:1])


@pytest.mark.parametrize("name", GUIDED)
def test_the_best_by_score_come_first(name):
    valley = Valley(SPACE, 0)
    found = _search(name).strategy.propose(20, valley.score, set())
    scores = valley.score(found)
    assert all(a >= b for a, b in pairwise(scores))
    assert scores.min() > np.quantile(
        valley.score(SPACE.sample(np.random.default_rng(0), 500)), 0.99
    )


def _first_search(name: str, strategy, rows):
    """The best score of what a search proposes that has learned rows, and little time."""
    valley = Valley(SPACE, 0, noise=0)
    options = {"steps": 5, "chains": 64} if name == "annealing" else {"generations": 1}
    search = strategy(SPACE, np.random.default_rng(0), **options)
    search.learn(rows, valley.costs(rows))
    return valley.score(search.propose(16, valley.score, keys_of(rows))).max()


@pytest.mark.parametrize(("name", "strategy"), GUIDED.items())
def test_measured_points_are_where_a_search_goes_on(name, strategy):
    close = np.abs(Valley(SPACE, 0).best - [0, 2, 0, 0, 0, 0, 0, 0, 0, 0])[None]
    assert SPACE.followed(close).all()
    assert _first_search(name, strategy, close) > _first_search(name, strategy, close[:0])


def test_annealing_goes_on_with_its_chains():
    valley = Valley(SPACE, 0)
    search = AnnealingSearch(SPACE, np.random.default_rng(0), steps=60)
    search.propose(8, valley.score, set())
    chains = search.chains.copy()
    search.steps = 0
    search.propose(8, valley.score, set())
    assert np.array_equal(search.chains, chains)
    random = SPACE.sample(np.random.default_rng(1), 128)
    assert valley.score(chains).mean() > np.quantile(valley.score(random), 0.95)


def test_annealing_ends_when_its_points_stay_the_same():
    calls = []

    def score(rows):
        calls.append(len(rows))
        return rows.sum(axis=1).astype(float)

    space = Grid((4, 4))
    AnnealingSearch(space, np.random.default_rng(0), patience=5).propose(4, score, set())
    assert len(calls) < 40
    assert set(calls) <= {128, 16}


def test_annealing_does_not_depend_on_the_scale_of_scores():
    valley = Valley(SPACE, 0)
    found, scaled = (
        AnnealingSearch(SPACE, np.random.default_rng(0), steps=40).propose(8, score, set())
        for score in (valley.score, lambda rows: 1024 * valley.score(rows))
    )
    assert np.array_equal(found, scaled)


def test_a_strategy_asks_for_many_scores_at_once():
    """Calls are what costs, rows hardly anything."""
    calls = []

    def score(rows):
        calls.append(len(rows))
        return Valley(SPACE, 0).score(rows)

    EvolutionSearch(SPACE, np.random.default_rng(0)).propose(16, score, set())
    assert len(calls) == 5
    assert min(calls) > 400


def test_grid_covers_each_axis_evenly():
    space = Grid((10,) * 12)
    rows = GridSearch(space, np.random.default_rng(0)).propose(200, _flat, set())
    counts = [np.bincount(column, minlength=10) for column in rows.T]
    assert np.min(counts) >= 5
    assert np.max(counts) <= 40
    first = np.bincount(rows[:, 0] * 10 + rows[:, 1], minlength=100)
    assert first.min() >= 1  # twice each, if it were quite even
    assert first.max() <= 3


def test_grid_meets_no_number_twice():
    space = Grid((6, 7, 5))
    search = GridSearch(space, np.random.default_rng(0))
    rows = np.concatenate([search.propose(14, _flat, set()) for _ in range(15)])
    assert len(keys_of(rows)) == len(rows) == space.size


def test_random_search_is_even():
    space = Grid((4, 5))
    found = [
        RandomSearch(space, np.random.default_rng(seed)).propose(1, _flat, set())[0].tolist()
        for seed in range(400)
    ]
    counts = np.unique(np.array(found) @ [5, 1], return_counts=True)[1]
    assert len(counts) == 20
    assert counts.max() < 45


def test_an_unknown_name_is_refused():
    with raises_code("U040") as error:
        strategy_named("beam", SPACE, np.random.default_rng(0))
    assert "evolution, annealing, random, grid, genetic" in str(error.value)
