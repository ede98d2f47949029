"""Trials over a cluster that breaks: each is answered once, whatever is lost on the way."""

from __future__ import annotations

from collections import Counter
from itertools import count, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.expect import raises_code
from tests.unit.tuning.measure.clusters import HERE, Simulated, job, outcome_of, trials
from tilewright.target import Target
from tilewright.tuning.measure.cluster import Node
from tilewright.tuning.measure.dispatch import Dispatcher
from tilewright.tuning.measure.trial import CRASH, Trial

TWO = [Node("a", "a", HERE, 8), Node("b", "b", HERE, 8)]


@pytest.fixture(autouse=True)
def _looks_at_once(monkeypatch):
    monkeypatch.setattr("tilewright.tuning.measure.fleet.LOOK_S", 0.0)


def _answers(cluster: Simulated, asked: list[Trial], **about: float) -> dict[object, object]:
    answers = list(Dispatcher(cluster, **about).run(asked))  # type: ignore[arg-type]
    assert Counter(trial.tag for trial, _ in answers) == Counter(trial.tag for trial in asked)
    return {trial.points["p1"]: outcome for trial, outcome in answers}


def _expected(count: int) -> dict[object, object]:
    return {number: outcome_of({"p1": number}) for number in range(count)}


def test_all_nodes_measure():
    cluster = Simulated(list(TWO))
    assert _answers(cluster, trials(40)) == _expected(40)
    assert {worker for worker, _ in cluster.submitted} == {0, 1}


def test_candidates_that_crash_are_not_repeated():
    cluster = Simulated()
    answers = _answers(cluster, trials(20))
    assert Counter(outcome.status for outcome in answers.values())[CRASH] == 3
    assert sorted(number for _, number in cluster.submitted) == list(range(20))


@given(st.sets(st.integers(0, 60), max_size=12), st.integers(1, 3), st.integers(1, 8))
def test_every_trial_is_answered_once_whatever_is_lost(steps, nodes, ahead):
    clock = count()
    places = [Node(str(k), str(k), HERE, 8) for k in range(nodes)]
    cluster = Simulated(places, breaks=lambda _worker, _number: next(clock) in steps)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tilewright.tuning.measure.fleet.LOOK_S", 0.0)
        patch.setattr("tilewright.tuning.measure.fleet.MOST_LOSSES", 100)
        answers = _answers(cluster, trials(30), ahead=ahead, repeats=100)
    assert answers == _expected(30)


def test_the_trials_of_a_lost_worker_are_repeated_alone_and_elsewhere():
    cluster = Simulated(list(TWO), breaks=lambda worker, _number: worker == 0)
    answers = _answers(cluster, trials(12), ahead=4)
    assert answers == _expected(12)
    assert cluster.together[0] == 4
    of_first = {number for worker, number in cluster.submitted if worker == 0}
    again = Counter(number for _, number in cluster.submitted)
    assert {number for number, times in again.items() if times == 2} == of_first


def test_a_trial_that_costs_workers_has_crashed_and_nothing_else_has():
    cluster = Simulated(breaks=lambda _worker, number: number in {5, 6, 30})
    answers = _answers(cluster, trials(40), repeats=2)
    assert [answers.pop(number).status for number in (5, 6, 30)] == [CRASH] * 3
    expected = _expected(40)
    assert answers == {number: expected[number] for number in answers}
    assert [Counter(n for _, n in cluster.submitted)[number] for number in (5, 30)] == [3, 3]


def test_what_a_runner_raises_is_raised_after_other_nodes_were_tried():
    cluster = Simulated(list(TWO), breaks=lambda _worker, number: number == 2 and OSError("full"))
    answers = Dispatcher(cluster, repeats=1).run(trials(20))
    with pytest.raises(OSError, match="full"):
        list(answers)
    assert Counter(number for _, number in cluster.submitted)[2] == 2


def test_trials_are_asked_for_as_there_is_room():
    drawn = count()
    shared = job()
    endless = (Trial(shared, {"p1": number}) for number in drawn)
    cluster = Simulated()
    runner = Dispatcher(cluster, ahead=4)
    answers = runner.run(endless)
    assert len(list(islice(answers, 10))) == 10
    assert next(drawn) <= 10 + 4 + 2
    answers.close()  # type: ignore[attr-defined]
    assert cluster.forgotten == 1
    assert len(list(runner.run(trials(5)))) == 5


def test_a_worker_that_says_nothing_is_given_up():
    cluster = Simulated(list(TWO))
    deaf = cluster.news

    def news(timeout_s: float):
        silent, cluster.rows[0] = cluster.rows[0], []
        events = deaf(timeout_s)
        cluster.rows[0] = silent
        return events

    cluster.news = news  # type: ignore[method-assign]
    assert _answers(cluster, trials(10), silence_s=0.05) == _expected(10)


def test_a_node_with_another_processor_measures_nothing():
    cluster = Simulated([Node("a", "a", "another-0000", 8), Node("b", "b", HERE, 8)])
    assert _answers(cluster, trials(10)) == _expected(10)
    assert {place.id for place in cluster.places.values()} == {"b"}


@pytest.mark.parametrize(
    "node",
    [
        Node("a", "a", "another-0000", 8),
        Node("a", "a", HERE, 1),
        Node("a", "a", HERE, 8, "it has tilewright 9"),
    ],
    ids=["processor", "threads", "version"],
)
def test_without_a_node_that_fits_there_is_an_error(node):
    with raises_code("U052"):
        list(Dispatcher(Simulated([node])).run(trials(3, job(threads=2))))


def test_a_job_for_another_target_is_refused():
    other = next(t for t in map(Target.named, ("x86-64-v2", "neoverse-n1")) if t != Target.host())
    with raises_code("U052"):
        list(Dispatcher(Simulated()).run(trials(3, job(target=other))))


def test_a_node_that_others_have_is_waited_for():
    with raises_code("U053"):
        list(Dispatcher(Simulated(refuses=True), wait_s=0.02).run(trials(3)))


def test_a_node_where_workers_are_lost_in_a_row_is_left_alone():
    cluster = Simulated(breaks=lambda _worker, _number: True)
    with raises_code("U054"):
        list(Dispatcher(cluster, wait_s=0.02, repeats=9).run(trials(3)))
    assert len(cluster.rows) == 3


def test_a_node_that_joins_takes_the_place_of_a_lost_one():
    cluster = Simulated()

    def breaks(worker: int, number: int) -> bool:
        if worker == 0 and number == 4:
            cluster.found = [Node("late", "late", HERE, 8)]
            return True
        return False

    cluster.breaks = breaks
    assert _answers(cluster, trials(10)) == _expected(10)
    assert [place.id for place in cluster.places.values()] == ["late"]


def test_close_gives_nodes_back():
    cluster = Simulated()
    runner = Dispatcher(cluster)
    assert len(list(runner.run(trials(3)))) == 3
    runner.close()
    assert not cluster.places
