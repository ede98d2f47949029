"""Every element type converted to every other, as scalars and as vectors, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.numeric.edge_values import DTYPE_NAMES, assert_same, edge_values, padded, random_values
from tests.numeric.test_arithmetic import FORMS, run_all
from tilewright.dtypes import DTYPES
from tilewright.tensor import ir as tir
from tilewright.tensor.to_integer import to_integer


@pytest.mark.parametrize(("target", "lanes"), FORMS)
@pytest.mark.parametrize("source", DTYPE_NAMES)
def test_conversions_are_numpys(source, target, lanes, rng):
    dtype = DTYPES[source]
    a = padded(np.concatenate([edge_values(dtype), random_values(rng, dtype, 448)]))
    values = {
        name: (lambda x, to=to: tir.Cast(to.vector(x.dtype.lanes), x))
        for name, to in DTYPES.items()
        if name != source
    }
    found = run_all(dtype, values, [a], target, lanes)
    for name, array in found.items():
        to = DTYPES[name]
        with np.errstate(all="ignore"):
            expected = a.astype(dtype.computed.numpy).astype(to.numpy)
            if dtype.is_float and to.is_integer:
                expected = to_integer(a, to)
        assert_same(array, expected, f"{source} to {name}")


def wide(x):
    return tir.Cast(DTYPES["f32"].vector(x.dtype.lanes), x)


@pytest.mark.parametrize(("target", "lanes"), FORMS)
def test_every_half_survives(target, lanes):
    """All 65536 bit patterns of both narrow floats: to `f32` and back is exact, NaN stays NaN."""
    patterns = np.arange(1 << 16, dtype=np.uint16)
    for name in ("f16", "bf16"):
        dtype = DTYPES[name]
        a = patterns.view(dtype.numpy)
        values = {"wide": wide, "back": lambda x: tir.Cast(x.dtype, wide(x) * 1.0)}
        found = run_all(dtype, values, [a], target, lanes)
        with np.errstate(all="ignore"):
            assert_same(found["wide"], a.astype("f4"), f"{name} to f32")
            assert_same(found["back"], a, f"{name} to f32 and back")


@pytest.mark.parametrize(("target", "lanes"), FORMS)
@pytest.mark.parametrize(("source", "name"), [("f32", "f16"), ("f32", "bf16"), ("f64", "f16")])
def test_rounding_to_halves_is_to_nearest_even(source, name, target, lanes):
    """Around every midpoint between neighbours, from just below to just above."""
    dtype, to = DTYPES[source], DTYPES[name]
    with np.errstate(all="ignore"):
        grid = np.arange(0, 0x7C00 if name == "f16" else 0x7F80, 7, dtype=np.uint16).view(to.numpy)
        next_up = (grid.view(np.uint16) + 1).view(to.numpy)
        middle = ((grid.astype("f8") + next_up.astype("f8")) / 2).astype(dtype.numpy)
    middle = middle[np.isfinite(middle)]
    around = [middle, np.nextafter(middle, np.inf), np.nextafter(middle, -np.inf)]
    a = padded(np.concatenate([*around, *(-x for x in around)]))
    cast = {"cast": lambda x: tir.Cast(to.vector(x.dtype.lanes), x)}
    found = run_all(dtype, cast, [a], target, lanes)["cast"]
    with np.errstate(all="ignore"):
        assert_same(found, a.astype(to.numpy), f"{source} to {name}")


@pytest.mark.parametrize("source", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("name", ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"])
def test_floats_inside_of_the_range_are_truncated(source, name, rng):
    """What is meant for floats that do not fit is a choice; for the others it is not."""
    dtype, to = DTYPES[source], DTYPES[name]
    with np.errstate(all="ignore"):
        a = np.concatenate([edge_values(dtype), random_values(rng, dtype, 2000)]).astype("f8")
    low, high = int(to.min_value), int(to.max_value)
    for value, found in zip(a, to_integer(a, to), strict=True):
        whole = int(value) if np.isfinite(value) else None
        if whole is not None and low <= whole <= high:
            assert found == whole
        elif whole is None or abs(value) >= 2.0**64:
            assert int(found) in (0, low, 1 << (to.bits - 1))
