"""Budgets: how they are written, and what is left of them."""

from __future__ import annotations

import pytest

from tests.expect import raises_code
from tilewright.tuning.budget import MOST_RESERVED, Amount, Budget, parse_budget


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("10m", 600),
        ("1h", 3600),
        ("1h30m", 5400),
        ("1h5s", 3605),
        ("2h3m4s", 7384),
        ("1.5h", 5400),
        ("0.5", 0.5),
        (" 10M ", 600),
    ],
)
def test_times_are_read(text, seconds):
    assert parse_budget(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        *("", "h", "m", "0", "0s", "0h0m", "-5", "10 m", "30m1h", "1h30", "10d", "1e3", "nan"),
        *("inf", "1m1m", "١s", "9" * 400, "10m\n5s", "1..5s"),
    ],
)
def test_other_texts_are_refused(text):
    with raises_code("U041"):
        parse_budget(text)


def test_trials_are_spent():
    budget = Budget(trials=10, clock=Clock())
    assert budget.at_most(16) == 10
    budget.spend(8)
    assert budget.spent == Amount(8, 0.0)
    assert budget.left == Amount(2, None)
    assert budget.at_most(16) == 2
    assert not budget.is_spent
    budget.spend(3)
    assert budget.left.trials == 0
    assert budget.is_spent


def test_seconds_run_from_when_it_is_made():
    clock = Clock()
    budget = Budget(seconds=60.0, clock=clock)
    clock.now += 45
    assert budget.spent == Amount(0, 45.0)
    assert budget.left == Amount(None, 15.0)
    assert budget.at_most(16) == 16
    clock.now += 45
    assert budget.left.seconds == 0
    assert budget.is_spent


def test_a_budget_of_neither_is_never_spent():
    clock = Clock()
    budget = Budget(clock=clock)
    clock.now += 1e9
    budget.spend(10**9)
    assert budget.left == Amount(None, None)
    assert not budget.is_spent


@pytest.mark.parametrize("limits", [{"trials": -1}, {"seconds": -1.0}, {"seconds": float("nan")}])
def test_a_budget_below_nothing_is_refused(limits):
    with pytest.raises(ValueError, match="a budget of"):
        Budget(**limits)


def test_what_is_reserved_is_not_spent():
    budget = Budget(seconds=100.0, clock=lambda: 0.0)
    budget.reserve(10.0)
    assert budget.left.seconds == 90.0
    budget.reserve(1000.0)
    assert budget.left.seconds == pytest.approx(90.0 * (1 - MOST_RESERVED))
    unlimited = Budget(trials=7)
    unlimited.reserve(10.0)
    assert unlimited.left == Amount(7, None)
