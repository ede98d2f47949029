"""Are these the results of the reference? Integers exactly, floats within what sums may differ by.

Sums in another order differ by rounding, relative to their terms and not to a result in which they
cancel: limits are relative to the largest value. They come from the one table of tolerances
(`testing/accuracy.py`), ten times its figure for f32 and f64, by as much minimal filters amplify
rounding, and grow with the root of the number of terms from some thousands on. A term that is left
out or counted twice shows by far more.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any, Final

import ml_dtypes
import numpy as np

from tilewright.graph.ir import Array
from tilewright.testing.accuracy import REORDERED

__all__ = ["difference", "limit"]

AMPLIFIED: Final = 10.0
STEPS: Final = 4
"""Units in the last place of the largest value, for narrow floats."""
MANY_TERMS: Final = 4096
ROUNDED_APART: Final = 1e-3
"""Part of integers that may be one apart, where they were rounded from sums of floats."""


def limit(dtype: np.dtype[Any], terms: int) -> float:
    """How far results may be apart, relative to the largest; 0 for integers."""
    if dtype in (np.dtype(np.float32), np.dtype(np.float64)):
        return AMPLIFIED * REORDERED[dtype] * max(1.0, sqrt(terms / MANY_TERMS))
    try:
        return STEPS * float(ml_dtypes.finfo(dtype).eps)
    except ValueError:
        return 0.0


def difference(
    found: Mapping[str, Array],
    expected: Mapping[str, Array],
    terms: int = 1,
    *,
    has_floats: bool = True,
) -> str:
    """What is wrong with results, in words; nothing if they are as expected."""
    for name, wanted in expected.items():
        problem = _wrong(found[name], wanted, terms, has_floats=has_floats)
        if problem:
            return f"result `{name}`: {problem}"
    return ""


def _wrong(found: Array, wanted: Array, terms: int, *, has_floats: bool) -> str:
    allowed = limit(wanted.dtype, terms)
    if not allowed:
        return _unequal(found, wanted, has_floats=has_floats)
    wide = wanted.dtype if wanted.dtype.itemsize > 2 else np.dtype(np.float32)
    a, b = found.astype(wide, copy=False), wanted.astype(wide, copy=False)
    with np.errstate(all="ignore"):
        scale = np.abs(b).max(initial=0)
        apart = np.abs(a - b).max(initial=0)
        if np.isfinite(scale) and apart <= allowed * scale:
            return ""
        return _apart(a, b, allowed)


def _apart(a: Array, b: Array, allowed: float) -> str:
    """The same element by element: infinities and NaN equal themselves, and have no distance."""
    finite = np.isfinite(b)
    scale = float(np.abs(b[finite]).max(initial=0)) or 1.0
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    close = finite & np.isfinite(a) & (np.abs(a - b) <= allowed * scale)
    wrong = ~(same | close)
    if not wrong.any():
        return ""
    at = tuple(int(k) for k in np.argwhere(wrong)[0])
    many = f"{int(wrong.sum())} of {wrong.size} elements differ"
    return f"{many}, the first at {list(at)}: {a[at]} instead of {b[at]}"


def _unequal(found: Array, wanted: Array, *, has_floats: bool) -> str:
    wrong = found.view(np.uint8) != wanted.view(np.uint8) if wanted.dtype == bool else None
    wrong = found != wanted if wrong is None else wrong
    if not wrong.any():
        return ""
    if has_floats and wanted.dtype != bool and wrong.mean() <= ROUNDED_APART:
        steps = found[wrong].astype(np.int64) - wanted[wrong].astype(np.int64)
        if np.abs(steps).max() <= 1:
            return ""
    at = tuple(int(k) for k in np.argwhere(wrong)[0])
    many = f"{int(wrong.sum())} of {wrong.size} elements differ"
    return f"{many}, the first at {list(at)}: {found[at]} instead of {wanted[at]}"
