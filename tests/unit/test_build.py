from __future__ import annotations

import numpy as np
import pytest

from tests.expect import raises_code
from tests.unit.test_pipeline import matmul
from tilewright.build import build
from tilewright.schedule import Schedule
from tilewright.target import Target
from tilewright.tensor import library


@pytest.mark.parametrize("trace", [None, "draft", "none"])
def test_build_gives_a_callable(trace, rng):
    kernel = build(matmul(17, 33, 20), threads=1, trace=trace)
    a = rng.standard_normal((17, 20), np.float32)
    b = rng.standard_normal((20, 33), np.float32)
    np.testing.assert_allclose(kernel(a, b), a @ b, rtol=1e-4, atol=1e-5)


def test_constants_are_packed_and_no_longer_passed(rng):
    a = rng.standard_normal((17, 20), np.float32)
    b = rng.standard_normal((20, 32), np.float32)
    kernel = build(matmul(17, 32, 20), threads=1, constants={"B": b})
    np.testing.assert_allclose(kernel(a), a @ b, rtol=1e-4, atol=1e-5)
    assert kernel.report.total_seconds > 0


def test_schedule_of_a_person():
    schedule = Schedule(matmul(6, 16, 8))
    schedule.parallel("i")
    kernel = build(matmul(6, 16, 8), threads=2, trace=schedule.trace)
    assert kernel.threads == 2
    ones = np.ones((6, 8), np.float32), np.ones((8, 16), np.float32)
    assert (kernel(*ones) == 8).all()


def test_program_without_parallel_loops_runs_on_one_thread():
    assert build(matmul(), threads=4, trace="none").threads == 1


@pytest.mark.parametrize("target", ["host", "x86-64-v2", Target.host()])
def test_targets_by_name_or_value(target):
    a, b = np.ones((3, 4), np.float32), np.ones((4, 5), np.float32)
    assert (build(matmul(), target=target, threads=1)(a, b) == 4).all()


def test_build_rejects_other_machines():
    with raises_code("T004"):
        build(matmul(), target="aarch64")


def test_function_without_native_code_is_refused_by_name():
    with raises_code("T203") as caught:
        build(library.unary("log1p", 2, 8))
    assert "`log1p`" in str(caught.value)
    assert "exp" in str(caught.value)
