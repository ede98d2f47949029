"""How many turns a candidate gets, and what they are worth."""

from __future__ import annotations

import itertools
import random

import pytest

from tilewright.tuning.measure.turns import FAR, FAR_TURNS, LEAST_PAIRS, MOST_PAIRS, take_turns


def steady(value):
    return lambda: value


def still():
    """A clock that does not move."""
    return 0.0


def test_equal_kernels_have_equal_times():
    times = take_turns(steady(100.0), steady(100.0), 100.0, still)
    assert times.time_ns == times.reference_ns == 100.0
    assert times.spread == 0.0


def test_one_that_is_far_slower_gets_few_turns():
    times = take_turns(steady(FAR * 100.0 + 1), steady(100.0), 100.0, still)
    assert times.pairs == FAR_TURNS
    assert times.time_ns > 2 * times.reference_ns


def test_the_closer_the_more_turns():
    rng = random.Random(0)
    pairs = [
        take_turns(
            lambda factor=factor: factor * rng.uniform(95, 105),
            lambda: rng.uniform(95, 105),
            100.0,
            still,
        ).pairs
        for factor in (4.0, 1.6, 1.2, 1.0)
    ]
    assert pairs == sorted(pairs)
    assert pairs[0] == FAR_TURNS
    assert pairs[-1] > pairs[1]


@pytest.mark.parametrize("factor", [0.8, 0.97, 1.0, 1.04])
def test_neighbours_do_not_change_the_ratio_much(factor):
    """A third of all turns is disturbed, by up to three times its length."""
    rng = random.Random(7)

    def disturbed(value):
        return lambda: (
            value * rng.uniform(0.995, 1.005) * (rng.uniform(1, 3) if rng.random() < 0.33 else 1.0)
        )

    times = take_turns(disturbed(100.0 * factor), disturbed(100.0), 100.0, still)
    assert times.time_ns / times.reference_ns == pytest.approx(factor, rel=0.015)
    assert times.pairs <= MOST_PAIRS


def test_drift_meets_both():
    clock = itertools.count()
    drift = lambda: 100.0 * (1 + next(clock) / 100)  # noqa: E731
    times = take_turns(drift, drift, 100.0, still)
    assert times.time_ns / times.reference_ns == pytest.approx(1.0, rel=0.02)


def test_time_ends_even_where_more_would_be_known():
    rng, seconds = random.Random(1), itertools.count()
    noisy = lambda: rng.uniform(50, 150)  # noqa: E731
    times = take_turns(noisy, noisy, 100.0, lambda: float(next(seconds)))
    assert times.pairs == LEAST_PAIRS
    assert times.spread > 0


def test_disturbed_turns_do_not_condemn_a_candidate():
    turns = itertools.chain([900.0, 800.0], itertools.repeat(100.0))
    times = take_turns(lambda: next(turns), steady(100.0), 100.0, still)
    assert times.time_ns == times.reference_ns == 100.0
