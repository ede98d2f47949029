"""Arguments for math functions, and what a function means on them in more digits than `f64` has."""

from __future__ import annotations

import numpy as np

from tilewright.tensor.functions import FUNCTIONS

HAS_EXTENDED = np.finfo(np.longdouble).eps < np.finfo(np.float64).eps
"""Does this machine have a float that is wider than double?"""

ONLY_DOUBLE = {"erf", "erfc", "gelu"}
"""Functions that the C library gives in double precision only."""

PERIODIC = {"sin", "cos", "tan"}

LARGE = np.exp2(np.linspace(26, 126, 3000)).round()
"""Numbers of quarter turns that are dropped part by part."""

NEARLY_WHOLE = {4: [16367173 * 2.0**72], 8: [6381956970095103 * 2.0**797]}
"""Angles that are closer to a whole number of quarter turns than all others of their type."""


def meaning(name: str, *args: np.ndarray) -> np.ndarray:
    """The value in extended precision (or what comes nearest to it here)."""
    with np.errstate(all="ignore"):
        return np.asarray(FUNCTIONS[name].evaluate(*(a.astype(np.longdouble) for a in args)))


def ulp_of(x: np.ndarray) -> np.ndarray:
    """The distance to the next float; that of the greatest is the one below it."""
    below = np.nextafter(np.finfo(x.dtype).max, x.dtype.type(0))
    return np.spacing(np.minimum(np.abs(x), below))


def special_values(dtype: np.dtype) -> np.ndarray:
    """Zeros, infinities, NaN, ones and their neighbours, and the ends of the range."""
    info, one = np.finfo(dtype), dtype.type(1)
    sizes = [0.0, np.inf, 1.0, 0.5, 0.25, 2.0, 3.0, 10.0, 1e10, info.tiny, info.max]
    sizes += [info.smallest_subnormal, np.nextafter(one, 2 * one), np.nextafter(one, 0 * one)]
    return np.array([np.nan, *sizes, *(-s for s in sizes)]).astype(dtype)


def arguments(name: str, dtype: np.dtype) -> tuple[np.ndarray, ...]:
    """Arguments of every size, many where the function is steep, within its declared domain."""
    x = _numbers(dtype)
    if FUNCTIONS[name].arity == 2:
        return _pairs(x)
    if name in PERIODIC:
        turns = np.random.default_rng(5).integers(0, 2**26, 3000)
        multiples = np.concatenate([np.arange(3000), turns, LARGE]) * (np.pi / 2)
        x = np.concatenate([x, multiples.astype(dtype), -multiples.astype(dtype)])
        x = np.concatenate([x, np.array(NEARLY_WHOLE[dtype.itemsize], dtype)])
    return (within_domain(name, x),)


def within_domain(name: str, x: np.ndarray) -> np.ndarray:
    """The values for which a function of one argument is declared."""
    if name == "exp_bounded":
        return x[~(x > (709 if x.dtype == np.float64 else 88))]
    return x


def _numbers(dtype: np.dtype) -> np.ndarray:
    rng = np.random.default_rng(3)
    bits = 8 * dtype.itemsize
    raw = rng.integers(0, 2**bits, 30_000, dtype=np.uint64).astype(f"u{dtype.itemsize}")
    near_one = 1 + rng.uniform(-1, 1, 15_000) * 10.0 ** rng.uniform(-8, 0, 15_000)
    wide = rng.uniform(-1, 1, 15_000) * (110 if bits == 32 else 760)
    limits = [88.7, 88.8, 89.4, 89.5, -87.4, -103.9, -104.1, 709.7, 709.9, 710.4, 710.5, -745, -746]
    limits += [127.9, 128, -149, -149.9, -150.1, 1023.9, 1024, -1074, -1074.9, -1075.1, 1e-40]
    parts = [rng.uniform(-15, 15, 30_000), rng.uniform(-1, 1, 15_000), near_one, -near_one, wide]
    numbers = np.concatenate([*parts, limits]).astype(dtype)
    return np.concatenate([raw.view(dtype), numbers, special_values(dtype)])


def _pairs(x: np.ndarray) -> tuple[np.ndarray, ...]:
    """Random pairs, pairs whose power is within the range, whole exponents, and all specials."""
    rng = np.random.default_rng(7)
    special = special_values(x.dtype)
    grid = [g.ravel() for g in np.meshgrid(special, special)]
    with np.errstate(all="ignore"):
        log = np.log(np.abs(x.astype(np.float64)))
        exponent = rng.uniform(-1, 1, x.size) * (105 if x.dtype.itemsize == 4 else 750) / log
        fitting = exponent.astype(x.dtype)
    whole = rng.integers(-40, 40, x.size).astype(x.dtype)
    second = [rng.permutation(x), fitting, whole, grid[1]]
    return np.concatenate([x, x, x, grid[0]]), np.concatenate(second)
