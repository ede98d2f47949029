"""Comparison of results: exact for integers and bools, within a tolerance for floats."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tilewright.testing.accuracy import REORDERED

__all__ = ["assert_same", "tolerance"]


def tolerance(dtype: np.dtype) -> float:
    """The relative error allowed for this element type; 0 for integers."""
    return REORDERED.get(dtype, 0.0)


def assert_same(
    found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray], scale: float = 1.0
) -> None:
    """Every array of `found` equals the one of the same name; `scale` loosens the tolerance."""
    assert found.keys() == expected.keys(), f"{sorted(found)} instead of {sorted(expected)}"
    for name, wanted in expected.items():
        _assert_array(name, found[name], wanted, scale)


def _assert_array(name: str, found: np.ndarray, wanted: np.ndarray, scale: float) -> None:
    assert found.shape == wanted.shape, f"{name}: shape {found.shape} instead of {wanted.shape}"
    assert found.dtype == wanted.dtype, f"{name}: {found.dtype} instead of {wanted.dtype}"
    allowed = tolerance(wanted.dtype) * scale
    if allowed == 0:
        np.testing.assert_array_equal(found, wanted, err_msg=name)
        return
    finite = wanted[np.isfinite(wanted.astype(np.float64))].astype(np.float64)
    floor = allowed * (float(np.abs(finite).max()) if finite.size else 1.0)
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    np.testing.assert_allclose(a, b, rtol=allowed, atol=floor, err_msg=name)
