"""A runner on this machine: outcomes of all kinds, and nothing left behind."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.expect import raises_code
from tests.unit.tuning.measure.jobs import (
    FAULT,
    HOST,
    HereBuilder,
    biased_model,
    convolution_model,
    drafted_points,
    elementwise_model,
    faulty_runner,
    job_of,
    product_model,
    tasks_of,
    trial,
)
from tilewright.schedule.draft import draft
from tilewright.schedule.source import DRAFT
from tilewright.target import Target
from tilewright.tuning.measure.local import LocalRunner
from tilewright.tuning.measure.trial import BUILD, CRASH, MEMORY, OK, TIMEOUT, WRONG, Job, Trial

ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def product() -> Job:
    return job_of(product_model())


@pytest.fixture(scope="module")
def runner():
    with faulty_runner() as made:
        yield made


def outcome_of(runner, asked):
    ((same, outcome),) = runner.run([asked])
    assert same is asked
    return outcome


def test_a_drafted_product_is_measured(runner, product):
    outcome = outcome_of(runner, trial(product))
    assert outcome.status == OK, outcome.detail
    assert outcome.time_ns > 0
    assert outcome.reference_ns > 0
    assert outcome.ratio == outcome.time_ns / outcome.reference_ns
    assert outcome.spread >= 0
    assert outcome.measure_s > 0


@pytest.mark.parametrize("threads", [1, 2])
def test_a_convolution_with_an_open_size_is_measured(runner, threads):
    for task in tasks_of(convolution_model()):
        outcome = outcome_of(runner, trial(Job(task, HOST, threads, {"n": 2})))
        assert outcome.status == OK, outcome.detail
        assert min(outcome.time_ns, outcome.reference_ns) > 0


def test_cold_constants_are_measured(runner, product):
    cold = Job(product.task, HOST, 1, cold_bytes=200_000)
    outcome = outcome_of(runner, trial(cold))
    assert outcome.status == OK, outcome.detail


def test_other_points_than_the_drafts_give_the_same_results(runner, product):
    """Points of the recipe's whole space, not of the draft's choice; all of them compute right."""
    workload = product.task.workload(HOST)
    (decision,) = draft(workload.program, HOST, 1, workload.constants).decisions
    table = decision.recipe.space(decision.shape, HOST)
    points = [table.point(row) for row in random.Random(3).sample(range(len(table)), 4)]
    block = decision.blocks[-1]
    asked = [Trial(product, {block: point}) for point in points if point != decision.point]
    found = [outcome for _, outcome in runner.run(asked)]
    assert len(found) >= 3
    assert [outcome.status for outcome in found] == [OK] * len(found), found


def test_candidates_with_the_bias_in_their_panels_are_measured(runner):
    """They are compared with kernels that have one parameter more."""
    biased = job_of(biased_model())
    (decision,) = DRAFT.schedule(biased.task.workload(HOST)).decisions
    point = replace(decision.point, bias_in_panels=1)
    outcome = outcome_of(runner, Trial(biased, {decision.block: point}))
    assert outcome.status == OK, outcome.detail


FAULTS = {
    "trap": (CRASH, "SIG"),
    "stray": (CRASH, "SIGSEGV"),
    "hang": (TIMEOUT, "no answer for 1.5 s"),
    "refuse": (CRASH, "C013"),
    "silent": (WRONG, "elements differ"),
    "hungry": (MEMORY, "C026"),
    "unbuilt": (BUILD, "on purpose"),
}


def test_each_fault_costs_one_trial_and_says_what_it_was(runner, product):
    """Good candidates between them are measured as if nothing had happened."""
    asked = [trial(product)]
    for fault in FAULTS:
        asked += [trial(product, fault, tag=fault), trial(product)]
    for done, outcome in runner.run(asked):
        status, words = FAULTS.get(done.tag, (OK, ""))
        assert outcome.status == status, (done.tag, outcome)
        assert words in outcome.detail, (done.tag, outcome)
        assert outcome.is_ok or outcome.ratio == float("inf")


def test_wrong_values_are_found(runner):
    """A kernel that runs well and subtracts instead of adding."""
    added, subtracted = job_of(elementwise_model("Add")), job_of(elementwise_model("Sub"))
    good, bad = [o for _, o in runner.run([trial(added), trial(added, subtracted.task)])]
    assert good.status == OK, good.detail
    assert bad.status == WRONG
    assert "64 of 64 elements differ" in bad.detail


def test_a_reference_that_dies_fails_all_trials_of_its_job(runner, monkeypatch):
    (task,) = tasks_of(elementwise_model())
    job = Job(task.with_points({FAULT: "trap"}), HOST)
    found = [outcome for _, outcome in runner.run([trial(job), trial(job), trial(job)])]
    monkeypatch.setattr(runner, "_measured", None)  # a job that failed is not begun again
    again = outcome_of(runner, trial(job))
    assert {o.status for o in (*found, again)} == {CRASH}
    assert all("the drafted kernel" in o.detail for o in (*found, again))


def test_trials_are_answered_in_order_and_few_are_asked_for_ahead(runner, product):
    pulled = []

    def asked():
        for number in range(9):
            pulled.append(number)
            yield trial(product, "unbuilt", tag=number)

    answered = []
    for done, _ in runner.run(asked()):
        answered.append(done.tag)
        assert len(pulled) <= len(answered) + 2, "one is answered, two are ahead"
    assert answered == list(range(9))


def test_no_trials_are_no_work(runner):
    assert list(runner.run([])) == []


def test_equal_jobs_are_set_up_once(runner, product):
    built = runner._gate.builder.built
    built.clear()
    equal = [Job(product.task, HOST, 1, {}, cold_bytes=777) for _ in range(3)]
    assert all(outcome.is_ok for _, outcome in runner.run(map(trial, equal)))
    assert built == [(product.task.key, "draft")]


def test_the_draft_is_the_reference_and_points_are_built(runner, product):
    job, builder = Job(product.task, HOST, 1, {}, cold_bytes=778), runner._gate.builder
    builder.built.clear()
    written = Trial(job, drafted_points(job))
    outcomes = [outcome for _, outcome in runner.run([trial(job), written])]
    assert all(outcome.is_ok for outcome in outcomes), outcomes
    assert sorted(schedule for _, schedule in builder.built) == ["draft", "draft", "none"]
    assert outcomes[0].build_s == 0 < outcomes[1].build_s
    tasks = product.task, product.task.with_points(written.points)
    made = {str(DRAFT.schedule(task.workload(HOST)).func) for task in tasks}
    assert len(made) == 1, "the draft's points, written down, are the draft"


class Differing(HereBuilder):
    """Programs as they are written add, and their drafts subtract."""

    def build(self, task, target, schedule="draft"):
        (added,) = tasks_of(elementwise_model("Add"))
        return super().build(added if schedule == "none" else task, target, schedule)


def test_candidates_of_a_wrong_draft_fail():
    """The draft alone is what the compiler makes anyway: no candidate is believed beside it."""
    job = job_of(elementwise_model("Sub"))
    with LocalRunner(1, builder=Differing()) as runner:
        alone, other = (
            outcome_of(runner, Trial(job, points)) for points in ({}, drafted_points(job))
        )
        later = outcome_of(runner, trial(job))
    assert alone.status == OK, alone.detail
    assert {other.status, later.status} == {WRONG}
    assert "the drafted kernel" in other.detail


def test_real_builders_build_and_refuse(product):
    """A point that no schedule can follow is refused by the compiler, in its process."""
    (decision,) = draft(product.task.program, HOST, 1, product.task.constants).decisions
    good = Trial(product, {decision.blocks[-1]: decision.point})
    bad = Trial(product, {decision.blocks[-1]: replace(decision.point, tile_rows=0)})
    with LocalRunner(1) as runner:
        found = [outcome for _, outcome in runner.run([good, bad])]
        pids = [runner._worker._process.pid, *builder_pids(runner)]
        assert len(pids) == 2
        assert all(map(_exists, pids))
    assert found[0].status == OK, found[0]
    assert found[1].status == BUILD, found[1]
    assert "scheduled" in found[1].detail
    assert not any(map(_exists, pids))


def builder_pids(runner):
    return [process._process.pid for process in list(runner._gate.builder._idle.queue)]


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


ORPHANS = """
import sys
sys.path.insert(0, {root!r})
from tests.unit.tuning.measure.jobs import *
runner = faulty_runner(run_s=100)
job = job_of(product_model())
next(runner.run([trial(job)]))
print(runner._worker._process.pid, flush=True)
list(runner.run([trial(job, "hang")]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere an alarm ends it, later")
def test_a_hung_process_does_not_outlive_a_killed_parent():
    program = ORPHANS.format(root=str(ROOT))
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        pid = int(parent.stdout.readline())
        time.sleep(0.3)  # until the candidate hangs
        assert _exists(pid)
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        parent.stdout.close()
    deadline = time.monotonic() + 30
    while _exists(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _exists(pid)


def test_an_interrupt_is_for_the_parent(runner, product):
    assert outcome_of(runner, trial(product)).is_ok
    worker = runner._worker
    os.kill(worker._process.pid, signal.SIGINT)
    assert outcome_of(runner, trial(product)).is_ok
    assert runner._worker is worker


def test_a_process_that_was_killed_between_trials_is_replaced(runner, product):
    assert outcome_of(runner, trial(product)).is_ok
    killed = runner._worker._process
    killed.kill()
    killed.wait()
    assert outcome_of(runner, trial(product)).is_ok
    assert runner._worker._process is not killed


def test_an_interrupt_of_the_parent_leaves_a_runner_that_works(runner, product, monkeypatch):
    """Whoever was asked is ended: its answer would be taken for that of the next question."""
    assert outcome_of(runner, trial(product)).is_ok
    asked = runner._worker

    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(asked, "_answer", interrupted)
    with pytest.raises(KeyboardInterrupt):
        outcome_of(runner, trial(product))
    assert not _exists(asked._process.pid)
    assert outcome_of(runner, trial(product)).is_ok


def test_code_for_other_machines_is_refused(runner, product):
    other = "aarch64" if HOST.arch == "x86_64" else "x86-64-v3"
    with raises_code("T004"):
        list(runner.run([trial(Job(product.task, Target.named(other)))]))


def test_a_process_that_cannot_be_started_is_an_error(product, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no python"))
    with LocalRunner(1, builder=HereBuilder()) as runner, raises_code("U030"):
        list(runner.run([trial(product)]))


def test_integers_are_compared_exactly(runner):
    added, subtracted = (job_of(elementwise_model(op, kind=3)) for op in ("Add", "Sub"))  # int8
    assert outcome_of(runner, trial(added)).is_ok
    assert outcome_of(runner, trial(added, subtracted.task)).status == WRONG
