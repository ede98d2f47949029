import ml_dtypes
import numpy as np
import pytest

from tilewright.dtypes import DTYPES, bf16, boolean, dtype_of, f16, f32, f64, i8, i32, i64, u8, u64


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_dtype_agrees_with_numpy(dtype):
    assert dtype.numpy.itemsize == dtype.size_bytes
    assert dtype_of(dtype.numpy) is dtype or dtype_of(dtype.numpy) == dtype
    assert dtype_of(dtype.name) == dtype
    if dtype.is_integer:
        assert ml_dtypes.iinfo(dtype.numpy).min == dtype.min_value
        assert ml_dtypes.iinfo(dtype.numpy).max == dtype.max_value


def test_dtype_kinds_do_not_overlap():
    for dtype in DTYPES.values():
        assert [dtype.is_float, dtype.is_integer, dtype.is_bool].count(True) == 1


def test_dtype_names_of_vectors():
    assert f32.vector(8).name == "f32x8"
    assert f32.vector(8).scalar == f32
    assert f32.vector(1) == f32
    assert boolean.vector(4).is_bool


def test_dtype_identities_of_folds():
    assert f32.min_value == -np.inf
    assert bf16.max_value == np.inf
    assert (u8.min_value, u8.max_value) == (0, 255)
    assert (i8.min_value, i8.max_value) == (-128, 127)
    assert u64.max_value == 2**64 - 1


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("float32", f32),
        (np.float64, f64),
        (np.dtype("i4"), i32),
        ("f16", f16),
        (int, i64),
        (f32, f32),
    ],
)
def test_dtype_of_accepts_many_spellings(given, expected):
    assert dtype_of(given) == expected


@pytest.mark.parametrize("given", ["complex64", "nothing", object(), "f32x8"])
def test_dtype_of_rejects_other_types(given):
    with pytest.raises(TypeError, match="known: f64"):
        dtype_of(given)
