"""What a measuring process is told of a job, and what it finds in the caches."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from tests.unit.tuning.measure.jobs import (
    HOST,
    biased_model,
    convolution_model,
    elementwise_model,
    job_of,
    product_model,
    tasks_of,
)
from tilewright.model.kernels import compile_task
from tilewright.model.made_up import parameters_of
from tilewright.model.standalone import sizes_of, standalone
from tilewright.schedule.source import DRAFT
from tilewright.tuning.measure.caches import cold_bytes_of, constant_bytes
from tilewright.tuning.measure.setup import Setup, iterations_of, setup_of, wants_plain
from tilewright.tuning.measure.subject import Room, Subject
from tilewright.tuning.measure.trial import Job

CACHE = max(cache.share_bytes for cache in HOST.caches)


def jobs():
    tasks = [*tasks_of(product_model()), *tasks_of(convolution_model())]
    return [Job(task, HOST, 1, {"n": 3}) for task in tasks]


@pytest.mark.parametrize("job", jobs(), ids=lambda job: str(len(job.task.program.params)))
def test_a_setup_arrives_as_it_was(job):
    setup = setup_of(job)
    assert Setup.from_data(json.loads(json.dumps(setup.to_data()))) == setup


@pytest.mark.parametrize("job", jobs(), ids=lambda job: str(len(job.task.program.params)))
def test_arrays_are_those_of_a_kernel_alone(job):
    kernel = standalone(job.task, HOST, {"n": 3})
    rng = np.random.default_rng(5)
    found = {
        param.name: param.made_up(rng)
        for param, spec in zip(setup_of(job).params, kernel.compiled.interface.params, strict=True)
        if not spec.is_output
    }
    wanted = kernel.arrays(seed=5)
    assert found.keys() == wanted.keys()
    assert all(np.array_equal(found[name], wanted[name]) for name in wanted)


def test_sums_and_iterations_are_counted():
    job = job_of(product_model())
    assert setup_of(job).terms == 24
    assert iterations_of(job) >= 8 * 24 * 32
    assert wants_plain(job)


@pytest.mark.parametrize(("cold_bytes", "calls"), [(0, 1), (0, 5), (10_000, 5), (100_000, 3)])
def test_runs_take_copies_of_constants_in_turns(cold_bytes, calls):
    """Whatever the number of copies, all of them hold the constants."""
    job = job_of(product_model())
    setup = setup_of(Job(job.task, HOST, 1, {}, cold_bytes))
    kernel = compile_task(job.task, HOST)
    rng = np.random.default_rng(0)
    arrays = {param.name: param.made_up(rng) for param in setup.params}
    subject = Subject(kernel, setup, arrays, Room(), calls)
    own = 24 * 32 * 4
    assert len(subject._feeds) >= max(1, cold_bytes // own // calls)
    expected = arrays["p0"] @ arrays["p1"]
    for _ in range(len(subject._feeds) + 1):
        (found,) = subject.computed().values()
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
        assert subject.turn_ns() > 0


@pytest.mark.parametrize(("cold_bytes", "calls"), [(0, 1), (10_000, 5)])
def test_constants_that_lie_in_others_are_packed_with_them(cold_bytes, calls):
    job = job_of(biased_model())
    (decision,) = DRAFT.schedule(job.task.workload(HOST)).decisions
    points = {decision.block: replace(decision.point, bias_in_panels=1)}
    setup = setup_of(Job(job.task, HOST, 1, {}, cold_bytes))
    kernel = compile_task(job.task.with_points(points), HOST)
    assert kernel.interface.sources == ((0,), (1, 2), (3,))
    rng = np.random.default_rng(0)
    arrays = {param.name: param.made_up(rng) for param in setup.params}
    subject = Subject(kernel, setup, arrays, Room(), calls)
    for _ in range(len(subject._feeds) + 1):
        (found,) = subject.computed().values()
        expected = arrays["p0"] @ arrays["p1"] + arrays["p2"]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_weights_that_fit_the_cache_are_warm():
    (task,) = tasks_of(product_model())
    own = constant_bytes(task)
    assert own == 24 * 32 * 4
    assert cold_bytes_of(task, own, HOST) == 0
    assert cold_bytes_of(task, CACHE, HOST) == 0


def test_weights_of_large_models_are_cold():
    (task,) = tasks_of(product_model())
    own = constant_bytes(task)
    assert cold_bytes_of(task, CACHE + 1000, HOST) == CACHE + 1000 - own
    assert cold_bytes_of(task, 100 * CACHE, HOST) == 2 * CACHE


def test_kernels_without_constants_have_nothing_cold():
    (task,) = tasks_of(elementwise_model())
    assert cold_bytes_of(task, 100 * CACHE, HOST) == 0


def test_parameters_know_which_are_constant():
    (task,) = tasks_of(product_model())
    params = parameters_of(task, sizes_of(task, {}))
    assert [p.is_constant for p in params] == [False, True, False]
