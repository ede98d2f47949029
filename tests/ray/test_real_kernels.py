"""Kernels of a model, built and measured on a node by the runner that measures locally."""

from __future__ import annotations

from tests.unit.tuning.measure.jobs import (
    convolution_model,
    faulty_runner,
    job_of,
    product_model,
    trial,
)
from tilewright.tuning.measure.ray_runner import RayRunner
from tilewright.tuning.measure.trial import CRASH, OK, TIMEOUT, WRONG


def _outcomes(runner: RayRunner, asked):
    try:
        answers = list(runner.run(asked))
    finally:
        runner.close()
    assert sorted(t.tag for t, _ in answers) == sorted(t.tag for t in asked)
    return {t.tag: outcome for t, outcome in answers}


def test_kernels_are_built_and_measured_on_a_node(add_node):
    add_node()
    product, convolution = job_of(product_model()), job_of(convolution_model(), sizes={"n": 1})
    asked = [trial(product, tag="0"), trial(convolution, tag="1"), trial(product, tag="2")]
    for outcome in _outcomes(RayRunner(), asked).values():
        assert outcome.status == OK, outcome
        assert outcome.time_ns > 0
        assert outcome.reference_ns > 0
        assert outcome.build_s > 0


def test_faults_of_candidates_are_outcomes_and_cost_no_worker(add_node):
    add_node()
    job = job_of(product_model())
    faults = [None, "trap", "stray", "silent", "hang", None]
    asked = [trial(job, fault, str(number)) for number, fault in enumerate(faults)]
    runner = RayRunner(make_runner=faulty_runner, repeats=0)  # a lost worker would show as crashes
    found = _outcomes(runner, asked)
    assert [found[str(k)].status for k in range(6)] == [OK, CRASH, CRASH, WRONG, TIMEOUT, OK]
    assert "SIGILL" in found["1"].detail or "SIGTRAP" in found["1"].detail
    assert not any("worker was lost" in outcome.detail for outcome in found.values())
