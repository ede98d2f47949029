"""Kernels are built on nodes that are there to build, and measured on others."""

from __future__ import annotations

from functools import partial

from tests.expect import raises_code
from tests.ray.runners import elsewhere_only, elsewhere_or_here, lines
from tests.unit.tuning.measure.clusters import FakeRunner, trials
from tests.unit.tuning.measure.jobs import job_of, product_model, trial
from tilewright.tuning.measure.ray_runner import RayRunner
from tilewright.tuning.measure.trial import OK

BUILDS = {"tilewright": "builds"}


def _statuses(runner, asked):
    try:
        return [outcome.status for _, outcome in runner.run(asked)]
    finally:
        runner.close()


def test_a_node_with_the_label_builds_and_another_measures(add_node, tmp_path):
    add_node()
    add_node(labels=BUILDS)
    job, log = job_of(product_model()), tmp_path / "log"
    runner = RayRunner(make_runner=partial(elsewhere_only, str(log)), repeats=0)
    assert _statuses(runner, [trial(job) for _ in range(8)]) == [OK] * 8
    assert lines(log) == []  # nothing was built where it was measured


def test_builds_of_a_node_that_is_killed_are_made_where_they_are_measured(
    cluster, add_node, tmp_path
):
    add_node()
    builder = add_node(labels=BUILDS)
    job, log = job_of(product_model()), tmp_path / "log"
    runner = RayRunner(make_runner=partial(elsewhere_or_here, str(log)), repeats=0)
    found = []
    try:
        for _, outcome in runner.run(trial(job) for _ in range(24)):
            found.append(outcome.status)
            if len(found) == 6:
                cluster.remove_node(builder, allow_graceful=False)
    finally:
        runner.close()
    assert found == [OK] * 24
    assert lines(log).count("draft") >= 1


def test_a_node_that_builds_measures_nothing(add_node):
    add_node(labels=BUILDS)
    with raises_code("U052", text="no node"):
        _statuses(RayRunner(make_runner=FakeRunner), trials(3))


def test_the_usual_runner_has_kernels_built_there(add_node):
    add_node()
    add_node(labels=BUILDS)
    job = job_of(product_model())
    assert _statuses(RayRunner(repeats=0), [trial(job) for _ in range(4)]) == [OK] * 4
