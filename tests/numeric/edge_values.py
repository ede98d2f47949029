"""Values at the edges of each element type, and all pairs of them."""

from __future__ import annotations

import numpy as np

from tilewright.dtypes import DTYPES, DType

MULTIPLE = 64
"""Arrays are filled up to a multiple of this, so that every vector width divides their length."""

DTYPE_NAMES = list(DTYPES)
WIDE_NAMES = [name for name, dtype in DTYPES.items() if not dtype.is_small]
"""Types that operations are written for; the others are only stored."""


def edge_values(dtype: DType) -> np.ndarray:
    """Zeros, ones, extremes, and for floats subnormal numbers, halves, infinities and NaN."""
    if dtype.is_bool:
        return np.array([False, True])
    if dtype.is_integer:
        low, high = int(dtype.min_value), int(dtype.max_value)
        numbers = {0, 1, 2, 3, 5, 7, 8, 63, 100, low, low + 1, high - 1, high, high // 2, high // 3}
        numbers |= {-n for n in numbers}
        return np.array(sorted(n for n in numbers if low <= n <= high), dtype.numpy)
    info = np.finfo(np.float16 if dtype.name == "f16" else np.float32)
    tiny, least, largest = float(info.tiny), float(info.smallest_subnormal), float(info.max)
    if dtype.name == "f64":
        wide = np.finfo(np.float64)
        tiny, least, largest = wide.tiny, wide.smallest_subnormal, wide.max
    sizes = [0.0, 1.0, 0.5, 1.5, 2.5, 3.14159, 1e-3, 255.5, 1000.25, tiny, least, tiny / 2]
    sizes += [largest, largest / 2, 65504.0, 65519.0, 65520.0, 1e30, np.inf, np.nan]
    with np.errstate(all="ignore"):
        return np.array([s * sign for s in sizes for sign in (1, -1)]).astype(dtype.numpy)


def padded(array: np.ndarray) -> np.ndarray:
    """The array with its first values once more at the end, up to the next multiple."""
    return np.resize(array, -(-len(array) // MULTIPLE) * MULTIPLE)


def edge_pairs(dtype: DType) -> tuple[np.ndarray, np.ndarray]:
    """Every edge value with every other."""
    values = edge_values(dtype)
    return padded(np.repeat(values, len(values))), padded(np.tile(values, len(values)))


def random_values(rng: np.random.Generator, dtype: DType, count: int) -> np.ndarray:
    """Values of all magnitudes: any bit pattern of a type may come, except in bools."""
    if dtype.is_bool:
        return rng.integers(0, 2, count).astype(np.bool_)
    patterns = 1 << min(8, dtype.bits)
    return rng.integers(0, patterns, count * dtype.size_bytes, dtype=np.uint8).view(dtype.numpy)


def assert_same(found: np.ndarray, expected: np.ndarray, what: str, *, signed_zero=True) -> None:
    """Equal element by element, NaN at the same places (any NaN is as good as another)."""
    assert found.dtype == expected.dtype, what
    wrong = found != expected
    if expected.dtype.kind in "fV":
        with np.errstate(all="ignore"):  # signalling NaN
            a, b = found.astype("f8"), expected.astype("f8")
        if signed_zero:
            wrong |= np.signbit(a) != np.signbit(b)
        wrong &= ~(np.isnan(a) & np.isnan(b))
    at = np.flatnonzero(wrong)
    assert not len(at), (
        f"{what}: {len(at)} wrong, first [{at[0]}]: {found[at[0]]!r}, not {expected[at[0]]!r}"
    )
