"""Every math function keeps its declared error, scalar and vector, on floats of all sizes.

The reference is the C library in double precision, whose own error (about one ulp of double) only
matters for the double functions, where it is allowed for.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import tilewright as tw
from tilewright.intrin.functions import EXPANSIONS, FUNCTIONS
from tilewright.tensor import library


def _gelu(x: float) -> float:
    return 0.5 * x * math.erfc(-x / math.sqrt(2))


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else math.exp(x)


REFERENCE = {
    "exp": np.exp,
    "exp_bounded": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "sin": np.sin,
    "cos": np.cos,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "gelu": np.vectorize(_gelu, otypes=[np.float64]),
    "sigmoid": np.vectorize(_sigmoid, otypes=[np.float64]),
}


def test_every_function_has_a_reference():
    assert REFERENCE.keys() == EXPANSIONS.keys() == FUNCTIONS.keys()


def _samples(dtype: np.dtype, name: str) -> np.ndarray:
    """Floats with every exponent, a dense part around zero, and the special values."""
    rng = np.random.default_rng(3)
    bits = 8 * dtype.itemsize
    raw = rng.integers(0, 2**bits, 60_000, dtype=np.uint64).astype(f"u{dtype.itemsize}")
    dense = rng.uniform(-15, 15, 60_000).astype(dtype)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-40, -1e-40], dtype)
    limits = np.array([88.7, 88.8, -87.4, -103.9, -104.1, 709.7, 709.9, -745.0, -746.0], dtype)
    x = np.concatenate([raw.view(dtype), dense, special, limits])
    if name in ("sin", "cos"):
        x = x[np.abs(x) <= 1e6]
    if name == "exp_bounded":
        x = x[~(x > (88 if bits == 32 else 709))]
    return x


def _unit(name: str, x: np.ndarray, wanted: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """One ulp of the result, or of what the function's domain text names instead."""
    scale = np.abs(x if name == "gelu" else wanted).astype(dtype)
    unit = np.spacing(scale).astype(np.float64)
    if name in ("sin", "cos"):
        return np.maximum(unit, np.finfo(dtype).eps / 2)
    # A result below the least normal number may be zero.
    return np.maximum(unit, np.finfo(dtype).tiny) if name == "exp_bounded" else unit


@pytest.mark.parametrize("dtype", [tw.f32, tw.f64], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("trace", ["draft", "none"])
def test_function_keeps_its_declared_error(name: str, dtype: tw.DType, trace: str) -> None:
    x = _samples(dtype.numpy, name)
    kernel = tw.build(library.unary(name, 1, x.size, dtype), trace=trace, threads=1)
    found = kernel(x[None])[0].astype(np.float64)
    with np.errstate(all="ignore"):
        wanted = REFERENCE[name](x.astype(np.float64))
        rounded = wanted.astype(dtype.numpy)
    assert np.array_equal(np.isnan(found), np.isnan(wanted))
    infinite = np.isinf(rounded)
    assert np.array_equal(found[infinite], rounded[infinite].astype(np.float64))
    finite = np.isfinite(rounded)
    unit = _unit(name, x[finite], rounded[finite], dtype.numpy)
    error = np.abs(found[finite] - wanted[finite]) / unit
    allowed = FUNCTIONS[name].ulp + (1.0 if dtype == tw.f64 else 0.0)
    worst = int(error.argmax())
    assert error[worst] <= allowed, f"{name}({x[finite][worst]!r}) is {error[worst]:.2f} ulp off"
