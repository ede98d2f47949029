"""Trials on real Ray: two nodes, one of which is killed, candidates that crash, leases, tokens."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from tests.expect import raises_code
from tests.unit.tuning.measure.clusters import FakeRunner, job, outcome_of, trials
from tilewright.tuning.measure.ray_runner import RayRunner
from tilewright.tuning.measure.trial import CRASH, Outcome

Log = list[tuple[int, int]]


def _run(runner: RayRunner, count: int) -> dict[object, Outcome]:
    asked = trials(count)
    try:
        answers = list(runner.run(asked))
    finally:
        runner.close()
    assert Counter(trial.tag for trial, _ in answers) == Counter(trial.tag for trial in asked)
    return {trial.points["p1"]: outcome for trial, outcome in answers}


def _expected(count: int) -> dict[object, Outcome]:
    return {number: outcome_of({"p1": number}) for number in range(count)}


def _best(answers: dict[object, Outcome]) -> object:
    return min(answers, key=lambda point: answers[point].ratio)


def _log(path: Path) -> Log:
    rows = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
    return [(int(row[0]), int(row[1])) for row in rows]


def test_two_nodes_measure_everything_once(add_node, tmp_path):
    add_node()
    add_node()
    log = tmp_path / "log"
    answers = _run(RayRunner(make_runner=partial(FakeRunner, str(log), 0.01)), 60)
    assert answers == _expected(60)
    assert sorted(number for number, _ in _log(log)) == list(range(60))
    assert len({process for _, process in _log(log)}) == 2


def test_a_node_that_is_killed_loses_nothing(cluster, add_node, tmp_path):
    add_node()
    victim = add_node()
    log = tmp_path / "log"
    runner = RayRunner(make_runner=partial(FakeRunner, str(log), 0.05))
    asked, answers = trials(80), {}
    for trial, outcome in runner.run(asked):
        assert trial.tag not in answers
        answers[trial.tag] = trial.points["p1"], outcome
        if len(answers) == 20:
            cluster.remove_node(victim, allow_graceful=False)
    runner.close()
    found = dict(answers.values())
    assert found == _expected(80)
    assert _best(found) == _best(_expected(80))
    measured = Counter(number for number, _ in _log(log))
    assert set(measured) == set(range(80))
    assert 1 <= sum(times > 1 for times in measured.values()) <= 6  # what was in flight, no more


def test_a_node_that_joins_replaces_the_one_that_was_killed(cluster, add_node):
    only = add_node()
    runner = RayRunner(make_runner=partial(FakeRunner, pause_s=0.02))
    found, asked = {}, trials(40)
    for trial, outcome in runner.run(asked):
        found[trial.points["p1"]] = outcome
        if len(found) == 10:
            cluster.remove_node(only, allow_graceful=False)
            add_node()
    runner.close()
    assert found == _expected(40)


def test_a_candidate_that_ends_the_worker_itself_costs_one_trial(add_node, tmp_path):
    add_node()
    log = tmp_path / "log"
    deadly = FakeRunner(str(log), 0.0, frozenset({11}))
    answers = _run(RayRunner(make_runner=lambda: deadly), 30)
    assert answers.pop(11).status == CRASH
    expected = _expected(30)
    del expected[11]
    assert answers == expected
    assert Counter(number for number, _ in _log(log))[11] == 3


def test_a_crash_that_its_runner_tells_of_is_not_repeated(add_node, tmp_path):
    add_node()
    log = tmp_path / "log"
    answers = _run(RayRunner(make_runner=partial(FakeRunner, str(log))), 14)
    crashed = [number for number, outcome in answers.items() if outcome.status == CRASH]
    assert sorted(crashed) == [3, 10]  # type: ignore[type-var]
    assert Counter(number for number, _ in _log(log)).most_common(1)[0][1] == 1


def test_nodes_with_another_processor_measure_nothing(add_node, tmp_path):
    add_node(env_vars={"TILEWRIGHT_TARGET": "x86-64-v2"})
    with raises_code("U052", text="node"):
        _run(RayRunner(make_runner=FakeRunner), 3)
    add_node()
    log = tmp_path / "log"
    assert _run(RayRunner(make_runner=partial(FakeRunner, str(log), 0.01)), 20) == _expected(20)
    assert len({process for _, process in _log(log)}) == 1


def test_too_few_processors_are_refused(add_node):
    add_node()
    runner = RayRunner(make_runner=FakeRunner)
    with raises_code("U052"):
        list(runner.run(trials(3, job(threads=4096))))
    runner.close()


def test_a_node_is_leased_to_one_search_at_a_time(add_node):
    add_node()
    first = RayRunner(make_runner=FakeRunner)
    assert len(list(first.run(trials(3)))) == 3
    with raises_code("U053"):
        _run(RayRunner(make_runner=FakeRunner, wait_s=1.0), 3)
    first.close()
    assert _run(RayRunner(make_runner=FakeRunner), 3) == _expected(3)


def test_what_a_runner_raises_when_it_starts_is_told(add_node):
    add_node()

    def broken():
        raise OSError("no measuring process")

    with raises_code("U054", text="no measuring process"):
        _run(RayRunner(make_runner=broken, wait_s=6.0), 3)


@pytest.mark.usefixtures("cluster")
def test_without_a_node_there_is_an_error():
    with raises_code("U052", text="no node"):
        _run(RayRunner(make_runner=FakeRunner), 3)
