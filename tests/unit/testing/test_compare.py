import ml_dtypes
import numpy as np
import pytest

from tilewright.dtypes import DTYPES
from tilewright.testing import assert_same, random_array

ONE = np.ones(3, np.float32)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (np.array([1, 2], np.int32), np.array([1, 3], np.int32)),
        (ONE, ONE.astype(np.float64)),
        (ONE, np.ones(4, np.float32)),
        (ONE, ONE * 1.001),
        (np.array([np.nan], np.float32), np.array([0], np.float32)),
        (np.array([np.inf], np.float32), np.array([1], np.float32)),
    ],
)
def test_differences_are_found(found, expected):
    with pytest.raises(AssertionError):
        assert_same({"A": found}, {"A": expected})


def test_names_must_agree():
    with pytest.raises(AssertionError, match="instead of"):
        assert_same({"A": ONE}, {"B": ONE})


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_rounding_is_forgiven(dtype):
    exact = np.array([1.0, 1000.0, np.inf, np.nan])
    assert_same({"A": exact.astype(dtype)}, {"A": (exact * (1 + 1e-12)).astype(dtype)})


def test_scale_loosens():
    assert_same({"A": ONE * 1.001}, {"A": ONE}, scale=100)


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_random_arrays_have_their_type(dtype, rng):
    assert random_array(rng, (3, 4), dtype).dtype == dtype.numpy
