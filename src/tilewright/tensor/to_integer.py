"""Floats as integers, in NumPy: the meaning of `Cast` where a number does not fit, too.

NumPy itself leaves that to the processor, and gives different results for an array and for its last
elements. Here one conversion to a signed integer decides: of 64 bits if the result has them, else
of 32. What it cannot hold (NaN too) becomes its least number, of which narrower types take the last
bits. Unsigned integers of the same width first give away their upper half, and get it back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.dtypes import DType

__all__ = ["to_integer"]

Array = NDArray[Any]


def to_integer(values: Array, dtype: DType) -> Array:
    """Floats of any type, truncated toward zero."""
    bits = 64 if dtype.bits == 64 else 32
    half = 2.0 ** (bits - 1)
    wide = np.asarray(values).astype(np.float64)
    has_halves = dtype.bits == bits and not dtype.is_signed
    with np.errstate(invalid="ignore"):
        is_upper = (wide >= half) & has_halves
        rest = np.trunc(np.where(is_upper, wide - half, wide))
        fits = (-half <= rest) & (rest < half)
    whole = np.where(fits, rest, -half).astype(np.int64)
    moved = np.where(is_upper, whole ^ np.int64(-1 << (bits - 1)), whole)
    return np.asarray(moved.astype(dtype.numpy))
