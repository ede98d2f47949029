"""The scheduler: who is next, by what is expected of it."""

from __future__ import annotations

from collections import Counter
from math import inf, nan

import numpy as np
import pytest

from tilewright.tuning.scheduler import Scheduler, TaskWeight


def _scheduler(*tasks: TaskWeight, seed: int = 0, **options) -> Scheduler:
    return Scheduler(tasks, np.random.default_rng(seed), **{"epsilon": 0.0} | options)


def _play(scheduler: Scheduler, rounds: int, curves, seconds=None) -> Counter[int]:
    """Who got rounds of 16 trials, where a curve says what a task's best is behind trials."""
    trials: Counter[int] = Counter()
    for _ in range(rounds):
        if (task := scheduler.next()) is None:
            break
        trials[task] += 16
        took = seconds[task] * 16 if seconds else 0.0
        scheduler.tell(task, curves[task](trials[task]), 16, took)
    return Counter({task: count // 16 for task, count in trials.items()})


def _flat(time_ns):
    return lambda _: time_ns


def _falling(time_ns, floor_ns, pace):
    return lambda trials: floor_ns + (time_ns - floor_ns) * np.exp(-trials / pace)


def test_every_task_has_a_warm_up_the_heaviest_first():
    tasks = [TaskWeight(1, 10.0), TaskWeight(5, 10.0), TaskWeight(1, 30.0)]
    scheduler = _scheduler(*tasks, warm_up=2)
    assert [scheduler.next() for _ in range(6)] == [1, 2, 0, 1, 2, 0]


def test_a_task_that_falls_gets_more_than_one_that_does_not():
    scheduler = _scheduler(TaskWeight(1, 100.0), TaskWeight(1, 100.0))
    rounds = _play(scheduler, 20, [_flat(100.0), _falling(100.0, 20.0, 400)])
    assert rounds[1] > rounds[0] >= 2


@pytest.mark.parametrize("heavy", [TaskWeight(50, 100.0), TaskWeight(1, 5000.0)])
def test_a_heavier_task_gets_more(heavy):
    scheduler = _scheduler(TaskWeight(1, 100.0), heavy)
    rounds = _play(scheduler, 40, [_flat(100.0), _flat(heavy.drafted_ns)])
    assert rounds[1] > 5 * rounds[0]
    assert rounds[0] >= 1


def test_a_task_at_its_floor_gets_less():
    near, far = TaskWeight(1, 100.0, floor_ns=98.0), TaskWeight(1, 100.0, floor_ns=30.0)
    rounds = _play(_scheduler(near, far), 40, [_flat(100.0), _flat(100.0)])
    assert rounds[1] > 5 * rounds[0]


def test_a_floor_that_is_wrong_does_not_end_a_task():
    wrong = TaskWeight(1, 100.0, floor_ns=500.0)
    rounds = _play(_scheduler(wrong, wrong), 10, [_flat(100.0), _flat(100.0)])
    assert rounds[0] == rounds[1] == 5


def test_a_task_behind_its_relatives_is_expected_to_reach_them():
    """Two with the same gap: the kind of one has shown that floors are far away."""
    tasks = [TaskWeight(1, 100.0, 10.0, "product"), TaskWeight(1, 100.0, 10.0, "window")]
    others = [TaskWeight(1, 100.0, 90.0, "product"), TaskWeight(1, 100.0, 12.0, "window")]
    scheduler = _scheduler(*tasks, *others)
    for task in range(4):
        scheduler.tell(task, 100.0, 16)
    assert scheduler.gain(0) > scheduler.gain(1) > 0


def test_recent_gains_count():
    scheduler = _scheduler(TaskWeight(1, 200.0), TaskWeight(1, 200.0), window=2)
    for early, late in [(100.0, 200.0), (100.0, 200.0), (100.0, 150.0), (100.0, 100.0)]:
        scheduler.tell(0, early, 16)
        scheduler.tell(1, late, 16)
    assert scheduler.best_ns(0) == scheduler.best_ns(1)
    assert scheduler.gain(1) > scheduler.gain(0)


def test_slow_trials_are_worth_less():
    tasks = TaskWeight(1, 100.0), TaskWeight(1, 100.0)
    curves = [_flat(100.0), _flat(100.0)]
    assert _play(_scheduler(*tasks), 22, curves) == {0: 11, 1: 11}
    rounds = _play(_scheduler(*tasks), 22, curves, seconds=[1.0, 0.1])
    assert rounds[1] > 2 * rounds[0]


def test_seconds_that_only_some_tell_do_not_count():
    scheduler = _scheduler(TaskWeight(1, 100.0), TaskWeight(1, 100.0))
    scheduler.tell(0, 100.0, 16, seconds=1e-3)
    scheduler.tell(1, 100.0, 16)
    assert scheduler.gain(0) == scheduler.gain(1)


def test_stopped_tasks_are_left_out():
    scheduler = _scheduler(TaskWeight(1, 100.0), TaskWeight(9, 100.0))
    scheduler.stop(1)
    assert [scheduler.next() for _ in range(3)] == [0, 0, 0]
    scheduler.stop(0)
    assert scheduler.next() is None
    assert _scheduler().next() is None


def test_failures_leave_the_best_where_it_was():
    scheduler = _scheduler(TaskWeight(1, 100.0))
    for best in (inf, nan, 0.0, 200.0):
        scheduler.tell(0, best, 16)
        assert scheduler.best_ns(0) == 100.0
    scheduler.tell(0, 80.0, 16)
    assert scheduler.best_ns(0) == 80.0
    assert np.isfinite(scheduler.gain(0))


def test_chance_gives_rounds_to_light_tasks():
    tasks = TaskWeight(1, 1.0), TaskWeight(1000, 1000.0)
    curves = [_flat(1.0), _flat(1000.0)]
    assert _play(_scheduler(*tasks), 50, curves)[0] == 1
    assert 5 <= _play(_scheduler(*tasks, epsilon=0.5), 50, curves)[0] <= 20


def test_the_same_seed_chooses_the_same():
    tasks = [TaskWeight(1, 100.0)] * 4
    plays = [
        [scheduler.next() for _ in range(40)]
        for scheduler in (_scheduler(*tasks, seed=seed, epsilon=0.3) for seed in (1, 1, 2))
    ]
    assert plays[0] == plays[1] != plays[2]


def test_expected_gain_beats_turns():
    """Tasks that fall by different paces: what the model takes in the end."""
    tasks = [TaskWeight(runs, 100.0, 20.0) for runs in (1, 1, 1, 1, 20, 30)]
    curves = [_falling(100.0, 80.0, 20)] * 4 + [_falling(100.0, 20.0, 300)] * 2
    scheduler = _scheduler(*tasks)
    _play(scheduler, 60, curves)
    reached = sum(task.runs * scheduler.best_ns(k) for k, task in enumerate(tasks))
    by_turns = sum(task.runs * curve(160) for task, curve in zip(tasks, curves, strict=True))
    assert reached < 0.75 * by_turns
