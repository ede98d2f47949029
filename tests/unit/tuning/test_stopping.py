"""Early stopping: patience looks back over trials, and small gains add up."""

from __future__ import annotations

from math import inf, nan

import pytest

from tilewright.tuning.stopping import Patience, Stopping


def _done_behind(costs, patience: Patience, start: float = inf) -> int | None:
    """How many trials it took to be done."""
    stopping = Stopping(patience, start)
    for trial, cost in enumerate(costs, 1):
        stopping.tell(cost)
        if stopping.is_done:
            return trial
    return None


def test_a_task_ends_behind_trials_without_a_gain():
    assert _done_behind([10.0, 9.0, *[9.5] * 10], Patience(4, 0.01)) == 6


def test_a_gain_that_is_too_small_does_not_count():
    assert _done_behind([10.0, 9.99, *[9.99] * 10], Patience(4, 0.01)) == 5
    assert _done_behind([10.0, 9.8, *[9.8] * 10], Patience(4, 0.01)) == 6


def test_small_gains_add_up():
    costs = [10.0 * 0.996**k for k in range(60)]
    assert _done_behind(costs, Patience(4, 0.01)) is None
    assert _done_behind(costs, Patience(4, 0.02)) == 5


def test_a_task_that_always_fails_ends():
    assert _done_behind([inf, nan, inf, inf], Patience(3, 0.01)) == 3


def test_a_start_is_what_there_is_to_gain_on():
    assert _done_behind([10.0, 9.0, 8.0, 8.0], Patience(3, 0.01), start=7.0) == 3
    assert _done_behind([6.0, 6.0, 6.0, 6.0], Patience(3, 0.01), start=7.0) == 4


def test_without_patience_there_is_no_end():
    stopping = Stopping(None)
    stopping.tell(*[5.0] * 1000, nan)
    assert not stopping.is_done
    assert stopping.best == 5.0


@pytest.mark.parametrize(("trials", "gain"), [(0, 0.1), (5, 1.0), (5, -0.1)])
def test_patience_rejects_what_is_none(trials, gain):
    with pytest.raises(ValueError, match="no patience"):
        Patience(trials, gain)
