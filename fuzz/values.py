"""Element types by their ONNX numbers, and random arrays of them."""

from __future__ import annotations

import random
from typing import Any, Final

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper

from fuzz.case import Array

__all__ = ["FLOATS", "INTEGERS", "NARROW", "TYPES", "UNIT", "is_float", "number_of", "random_array"]
__all__ += ["numpy_type", "onnx_type", "wide"]

FLOATS: Final = tuple(
    getattr(TensorProto, name) for name in ("FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16")
)
INTEGERS: Final = tuple(
    getattr(TensorProto, f"{sign}INT{bits}") for sign in ("", "U") for bits in (8, 16, 32, 64)
)
NARROW: Final = tuple(
    getattr(TensorProto, name)
    for name in (
        "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "INT4", "UINT4",
    )
)  # fmt: skip
"""Stored rather than computed with: they come from casts and constants."""

TYPES: Final = (*FLOATS, *INTEGERS, TensorProto.BOOL, TensorProto.STRING, *NARROW)

SPECIAL: Final = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0)
WORDS: Final = ("", "a", "tile", "wright", "ö", "A b")

UNIT: Final = {
    np.dtype(np.float64): 2.0**-53,
    np.dtype(np.float32): 2.0**-24,
    np.dtype(np.float16): 2.0**-11,
    np.dtype(ml_dtypes.bfloat16): 2.0**-8,
    np.dtype(ml_dtypes.float8_e4m3fn): 2.0**-4,
    np.dtype(ml_dtypes.float8_e4m3fnuz): 2.0**-4,
    np.dtype(ml_dtypes.float8_e5m2): 2.0**-3,
    np.dtype(ml_dtypes.float8_e5m2fnuz): 2.0**-3,
}
"""The unit roundoff of each float."""


def numpy_type(elem_type: int) -> np.dtype[Any]:
    """The NumPy type of an ONNX number."""
    found: np.dtype[Any] = np.dtype(helper.tensor_dtype_to_np_dtype(elem_type))
    return found


def onnx_type(array: Array) -> int:
    """The ONNX number of an array's type."""
    return number_of(array.dtype)


def number_of(dtype: np.dtype[Any]) -> int:
    """The ONNX number of a NumPy type; objects are texts."""
    if dtype.kind in "OUST":
        return int(TensorProto.STRING)
    return int(helper.np_dtype_to_tensor_dtype(dtype))


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether values are rounded."""
    return dtype in UNIT


def wide(array: Array) -> Array:
    """Floats as float64, everything else as it is."""
    return array.astype(np.float64) if is_float(array.dtype) else array


def random_array(
    draw: random.Random, elem_type: int, shape: tuple[int, ...], flavour: str = "plain"
) -> Array:
    """Values that suit most operators.

    `plain` has small numbers, many of them multiples of a quarter, so that ties and equal values
    appear; `wide` has sizes over many orders of magnitude; `special` has infinities, NaN, signed
    zeros and denormals among plain ones. Integers stay small unless they are `wide`.
    """
    rng = np.random.default_rng(draw.getrandbits(63))
    if elem_type == TensorProto.STRING:
        return rng.choice(np.array(WORDS, object), shape)
    dtype = numpy_type(elem_type)
    if elem_type == TensorProto.BOOL:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if elem_type in INTEGERS:
        return _integers(rng, dtype, shape, flavour)
    if elem_type in {TensorProto.INT4, TensorProto.UINT4}:
        return rng.integers(0, 8, shape).astype(np.int8).astype(dtype)
    return _floats(rng, dtype, shape, flavour, exact=draw.random() < 0.4)


def _integers(
    rng: np.random.Generator, dtype: np.dtype[Any], shape: tuple[int, ...], flavour: str
) -> Array:
    info = np.iinfo(dtype)
    if flavour == "wide":
        return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    return rng.integers(max(info.min, -9), 10, shape).astype(dtype)


def _floats(
    rng: np.random.Generator,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    flavour: str,
    *,
    exact: bool,
) -> Array:
    values = rng.uniform(-4, 4, shape)
    if exact:
        values = np.round(values * 4) / 4
    if flavour == "wide":
        top = 12 if dtype.itemsize >= 4 else 3
        values = values * 10.0 ** rng.integers(-top, top, shape, endpoint=True)
    if flavour == "special":
        tiny = float(ml_dtypes.finfo(dtype).smallest_subnormal)
        table = np.array([*SPECIAL, tiny, -3 * tiny])
        values = np.where(rng.random(shape) < 0.25, rng.choice(table, shape), values)
    return np.asarray(values).astype(dtype)
