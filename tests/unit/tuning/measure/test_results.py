"""What counts as the same results."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tilewright.tuning.measure.results import difference, limit

INF, NAN = np.inf, np.nan


def differ(found, wanted, dtype=np.float32, **rest):
    return difference({"y": np.array(found, dtype)}, {"y": np.array(wanted, dtype)}, **rest)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
def test_floats_may_differ_by_rounding_alone(dtype):
    wanted = np.linspace(1, 8, 57).astype(dtype)
    step = 8 * limit(wanted.dtype, 1)
    close, apart = (wanted.astype(np.float64) + step * part for part in (0.4, 4.0))
    assert not differ(close, wanted, dtype)
    assert "57 of 57 elements differ" in differ(apart, wanted, dtype)


def test_a_missing_term_of_a_long_sum_shows():
    rng = np.random.default_rng(0)
    for terms in (64, 4608, 100_000):
        a, b = rng.uniform(-1, 1, (2, 8, terms)).astype(np.float32)
        whole = (a * b).sum(axis=1)
        other_order = np.array(
            [np.cumsum((x * y)[::-1], dtype=np.float32)[-1] for x, y in zip(a, b, strict=True)]
        )
        without = whole - a[:, 0] * b[:, 0]
        assert not differ(other_order, whole, terms=terms)
        assert differ(without, whole, terms=terms)


def test_infinities_and_nan_equal_themselves_and_nothing_else():
    wanted = [1.0, INF, -INF, NAN]
    assert not differ(wanted, wanted)
    assert not differ([1.00001, INF, -INF, NAN], wanted)
    for at, other in ((0, NAN), (0, INF), (1, -INF), (1, 1e38), (2, NAN), (3, 0.0)):
        found = list(wanted)
        found[at] = other
        assert f"the first at [{at}]" in differ(found, wanted)


def test_zeros_must_be_zero():
    assert not differ([0.0, -0.0], [0.0, 0.0])
    assert differ([0.0, 1e-3], [0.0, 0.0])


def test_integers_are_exact_unless_floats_were_rounded():
    wanted = np.arange(2000) % 100
    one_off = wanted.copy()
    one_off[7] += 1
    two_off = wanted.copy()
    two_off[7] += 2
    many_off = wanted + 1
    assert not differ(wanted, wanted, np.uint8)
    assert "1 of 2000 elements differ, the first at [7]" in differ(
        one_off, wanted, np.uint8, has_floats=False
    )
    assert not differ(one_off, wanted, np.uint8, has_floats=True)
    assert differ(two_off, wanted, np.uint8, has_floats=True)
    assert differ(many_off, wanted, np.uint8, has_floats=True)


def test_booleans_are_exact():
    assert not differ([True, False], [True, False], np.bool_)
    assert differ([True, True], [True, False], np.bool_)


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "int4", "uint4"])
def test_narrow_types_can_be_compared(name):
    dtype = np.dtype(getattr(ml_dtypes, name))
    assert not differ([1, 2, 3], [1, 2, 3], dtype)
    assert differ([1, 2, 1], [1, 2, 7], dtype, has_floats=False)


def test_arrays_without_elements_are_equal():
    assert not differ([], [])
    assert not differ([], [], np.int32)


def test_values_that_no_kernel_wrote_differ():
    poison = np.full(16, 0xFF, np.uint8).view(np.float32)
    assert differ(poison, np.zeros(4))
