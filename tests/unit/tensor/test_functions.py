import math

import numpy as np
import pytest

from tilewright.dtypes import bf16, f32, f64, i32
from tilewright.tensor.functions import FUNCTIONS, apply, register

SCALARS = {
    "exp": math.exp,
    "expm1": math.expm1,
    "log1p": math.log1p,
    "tanh": math.tanh,
    "erf": math.erf,
    "sin": math.sin,
    "atan": math.atan,
    "floor": math.floor,
    "trunc": math.trunc,
    "round": round,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "gelu": lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))),
    "exp2": lambda x: 2**x,
    "abs": abs,
}


@pytest.mark.parametrize("name", SCALARS)
@pytest.mark.parametrize("value", [-0.75, 0.0, 0.5, 1.5])
def test_function_agrees_with_math(name, value):
    assert apply(name, [np.float64(value)], f64) == pytest.approx(SCALARS[name](value), abs=1e-15)


def test_result_is_rounded_once_to_the_type():
    result = apply("exp", [np.float32(1.0)], f32)
    assert result.dtype == np.float32
    assert result == np.float32(math.e)


def test_vectors_are_lane_by_lane():
    lanes = np.array([0.0, 1.0, 4.0], np.float32)
    np.testing.assert_array_equal(apply("sqrt", [lanes], f32), np.float32([0, 1, 2]))
    np.testing.assert_array_equal(apply("erf", [lanes * 0], f32), np.float32([0, 0, 0]))


def test_special_values():
    with np.errstate(all="ignore"):
        inf = np.float64("inf")
        assert np.isnan(apply("gelu", [-inf], f64))
        assert apply("sigmoid", [-inf], f64) == 0
        assert apply("sigmoid", [inf], f64) == 1
        assert apply("rsqrt", [np.float64(0)], f64) == inf
        assert np.isnan(apply("gelu", [np.float64("nan")], f64))
        assert np.isnan(apply("log", [np.float64(-1)], f64))
        assert apply("copysign", [np.float64(2), np.float64(-0.0)], f64) == -2


def test_fma_rounds_once():
    a, b = np.float64(1 + 2**-30), np.float64(1 - 2**-30)
    assert apply("fma", [a, b, np.float64(-1)], f64) == -(2.0**-60)
    assert a * b - 1 == 0
    tiny = apply("fma", [np.float64(-1), np.float64(0), np.float64(-0.0)], f64)
    assert math.copysign(1, tiny) == -1
    big = np.float64(1e300)
    assert apply("fma", [big, -big, np.float64(0)], f64) == -math.inf


def test_rounding_is_to_even():
    found = [apply("round", [np.float64(v)], f64) for v in (0.5, 1.5, 2.5, -0.5)]
    assert found == [0, 2, 2, 0]


def test_integers_have_an_absolute_value():
    assert apply("abs", [np.int32(-3)], i32) == 3


def test_storage_types_are_rounded():
    assert apply("exp", [np.float32(1)], bf16) == bf16.numpy.type(math.e)


def test_thread_of_the_interpreter():
    assert (apply("thread", [], i32), apply("threads", [], i32)) == (0, 1)


def test_names_keep_their_meaning():
    assert FUNCTIONS["fma"].arity == 3
    with pytest.raises(ValueError, match="`exp` is defined twice"):
        register("exp", 1, np.exp)
