"""Where the rounding of small floats is decided, and what the standard says of scales."""

from __future__ import annotations

import math

import numpy as np

from tilewright.dtypes import DTYPES, DType

__all__ = ["SMALL_FLOATS", "around_decisions", "codes_of", "every_half", "midpoints", "scale_code"]

SMALL_FLOATS = [dtype for dtype in DTYPES.values() if dtype.format is not None]

LEAST, GREATEST = 2.0**-127, 2.0**127
"""The range of `f8e8m0`."""


def codes_of(dtype: DType) -> np.ndarray:
    """All values of a type, by their codes."""
    return np.arange(1 << dtype.bits, dtype=np.uint8).view(dtype.numpy)


def midpoints(dtype: DType) -> np.ndarray:
    """Half-way between each two neighbours, and between the greatest and what would follow it."""
    wide = codes_of(dtype).astype(np.float64)
    values = np.unique(np.abs(wide[np.isfinite(wide)]))
    last = 2 * values[-1] - values[-2] if dtype.name != "f8e8m0" else 2 * values[-1]
    values = np.append(values, last)
    return (values[:-1] + values[1:]) / 2


def around_decisions(dtype: DType) -> np.ndarray:
    """Values and midpoints with their neighbours as `f32`, and special values; of both signs."""
    with np.errstate(all="ignore"):
        wide = codes_of(dtype).astype(np.float32)
        at = np.concatenate([wide[np.isfinite(wide)], midpoints(dtype).astype(np.float32)])
        ends = np.float32([np.inf, -np.inf])
        at = np.concatenate([at, *(np.nextafter(at, end) for end in ends)])
    special = np.array([0.0, np.inf, np.nan, 1e-45, 1e-40, 65504.0, 3.4e38, 2.0**127], np.float32)
    both = np.concatenate([at, special])
    return np.concatenate([both, -both])


def every_half() -> np.ndarray:
    """All values of `f16`."""
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def scale_code(x: float, mode: str, *, saturates: bool) -> int:
    """The code of a number as `f8e8m0`, by the text of the Cast operator; `x` is not negative."""
    if math.isnan(x):
        return 0xFF
    if not LEAST <= x <= GREATEST:
        return (0 if x < LEAST else 0xFE) if saturates else 0xFF
    fraction, exponent = math.frexp(x)  # a power of two has the fraction 1/2
    raised = {"up": fraction > 0.5, "nearest": fraction >= 0.75, "down": False}[mode]
    return exponent - 1 + 127 + raised
