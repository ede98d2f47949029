"""Parameters that are input and output at once: changed in place, checked, never made."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tests.expect import raises_code
from tests.unit.tensor.test_contents import ACCUMULATE, one_block
from tilewright.build import build
from tilewright.pipeline import Pipeline
from tilewright.schedule import Schedule
from tilewright.target import Target

IN_PLACE = one_block(12, "vi", value="Y[vi] * 2.0 + X[vi]")
PART = one_block(8, "vi + 2")


def accumulate(trace=None, threads=1):
    return build(tw.parse(ACCUMULATE), threads=threads, trace=trace)


@pytest.fixture
def arrays(rng):
    shapes = ((8, 4), (4, 6), (8, 6))
    return [rng.standard_normal(shape, np.float32) for shape in shapes]


@pytest.mark.parametrize("trace", ["none", "draft"])
@pytest.mark.parametrize("threads", [1, 2])
def test_sum_is_added_to_what_the_caller_passes(arrays, trace, threads):
    a, b, c = arrays
    expected = c + a @ b
    kernel = accumulate(trace, threads)
    assert kernel(a, b, c) is None
    np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-6)
    kernel(B=b, C=c, A=a)
    np.testing.assert_allclose(c, expected + a @ b, rtol=1e-5, atol=1e-6)
    text = "(A: f32[8, 4], B: f32[4, 6], C: f32[8, 6]) -> (C: f32[8, 6])"
    assert repr(kernel).startswith(f"<kernel accumulate{text}")


def test_elements_are_changed_in_place(rng):
    x, y = rng.standard_normal((2, 12), np.float32)
    expected = y * 2 + x
    build(tw.parse(IN_PLACE), threads=1)(x, y)
    np.testing.assert_allclose(y, expected, rtol=1e-6)


def test_elements_that_are_not_written_stay(rng):
    x, y = rng.standard_normal(8, np.float32), rng.standard_normal(12, np.float32)
    expected = y.copy()
    expected[2:10] = x
    build(tw.parse(PART), threads=1)(x, y)
    np.testing.assert_array_equal(y, expected)


def test_outputs_besides_are_made(rng):
    """Two results: one is written over the whole, the other one is changed in place."""
    text = """\
def both(X: f32[12], Y: f32[12], Z: f32[12]):
    for i in range(12):
        with block("Z", vi=S(12, i)):
            Z[vi] = X[vi] + 1.0
    for j in range(12):
        with block("Y", vj=S(12, j)):
            Y[vj] = Y[vj] + X[vj]
"""
    kernel = build(tw.parse(text), threads=1)
    x, y = rng.standard_normal((2, 12), np.float32)
    expected = x + y
    np.testing.assert_array_equal(kernel(x, y), x + 1)
    np.testing.assert_array_equal(y, expected)
    z = np.zeros(12, np.float32)
    assert kernel(x, y, z) is None
    np.testing.assert_array_equal(z, x + 1)


def test_updated_parameter_cannot_be_left_out(arrays, golden):
    a, b, _ = arrays
    with raises_code("C001") as caught:
        accumulate()(a, b)
    assert golden == caught.value
    with raises_code("C001", text="`X`, `Y`"):
        build(tw.parse(PART), threads=1)(np.zeros(8, np.float32))


def test_updated_parameter_is_checked_as_an_output(arrays):
    a, b, c = arrays
    kernel = accumulate()
    before = c.copy()
    frozen = c.copy()
    frozen.flags.writeable = False
    for code, wrong in (
        ("C002", c.tolist()),
        ("C003", c.astype(np.float64)),
        ("C004", c[0]),
        ("C005", c[:, :5].copy()),
        ("C007", frozen),
        ("C008", np.asfortranarray(c)),
        ("C008", c[::-1]),
    ):
        with raises_code(code, facts={"param": "C"}):
            kernel(a, b, wrong)
    np.testing.assert_array_equal(c, before)


def test_updated_parameter_must_not_overlap_another():
    kernel = build(tw.parse(IN_PLACE), threads=1)
    shared = np.zeros(24, np.float32)
    with raises_code("C009", facts={"param": "Y", "other": "X"}):
        kernel(shared[:12], shared[:12])
    with raises_code("C009"):
        kernel(shared[:12], shared[11:23])
    kernel(shared[:12], shared[12:])


def test_updated_parameter_may_be_bound(arrays):
    a, b, c = arrays
    expected = c + 2 * (a @ b)
    bound = accumulate().bind(C=c)
    bound(a, b)
    bound(a, b)
    np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("passed", ["plain", "packed"])
def test_updated_parameter_in_another_layout(arrays, passed):
    """It is packed before and unpacked after the call."""
    a, b, c = arrays
    expected = c + a @ b
    s = Schedule(tw.parse(ACCUMULATE))
    s.layout_split("C", 1, 3)
    s.layout_reorder("C", [1, 0, 2])
    kernel = accumulate(s.trace)
    assert kernel.conversions == ("pack C", "unpack C")
    if passed == "plain":
        kernel(a, b, c)
    else:
        stored = kernel.pack("C", c)
        kernel(a, b, stored)
        c = stored.unpack()
    np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-6)


def test_updated_parameter_padded_and_partly_written(rng):
    s = Schedule(tw.parse(PART))
    s.layout_split("Y", 0, 4)
    kernel = build(tw.parse(PART), threads=1, trace=s.trace)
    x, y = rng.standard_normal(8, np.float32), rng.standard_normal(12, np.float32)
    expected = y.copy()
    expected[2:10] = x
    kernel(x, y)
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("stage", ["scheduled", "llvm"])
def test_role_survives_in_the_text_of_a_stage(arrays, stage):
    a, b, c = arrays
    expected = c + a @ b
    pipeline = Pipeline(Target.host())
    text = pipeline.run(tw.parse(ACCUMULATE), until=stage).text
    kernel = Pipeline(Target.host()).resume(stage, text).value
    with raises_code("C001"):
        kernel(a, b)
    kernel(a, b, c)
    np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-6)
