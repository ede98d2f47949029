"""Values for the inputs of a model whose file was not made in good faith.

`zeros` let a mutant of a good model run, `anything` tries to lead kernels astray: every number of a
type may be an index, a count or a divisor, and a symbolic size may be zero.
"""

from __future__ import annotations

import random
from math import prod
from typing import TYPE_CHECKING, Final

import numpy as np

from tilewright.runtime.arrays import empty

if TYPE_CHECKING:
    from tilewright.dtypes import DType
    from tilewright.model.module import Module

__all__ = ["anything", "would_be_long", "zeros"]

MOST_FED: Final = 10**6
MOST_MADE: Final = 10**7
SIZES: Final = (0, 1, 2, 3, 17)
INTEGERS: Final = (-(1 << 63), -(1 << 31), -1000, -2, -1, 0, 1, 2, 3, 7, 1 << 31, (1 << 63) - 1)
FLOATS: Final = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-42, 1e30, -1e30, np.inf, -np.inf, np.nan)
TEXTS: Final = ("", "a", "0", "-1.5", "ä\u202e", "nan", "x" * 300)


def zeros(module: Module) -> dict[str, np.ndarray] | None:
    """Zeros for all inputs, symbolic dimensions of size 2; None if they are too large."""
    feeds = {}
    for info in module.inputs:
        if info.dtype is None:
            return None
        shape = [d if isinstance(d, int) and d >= 0 else 2 for d in info.shape]
        if prod(map(float, shape)) > MOST_FED:
            return None
        feeds[info.name] = np.zeros(shape, info.dtype.numpy)
    return feeds


def anything(module: Module, rng: random.Random) -> dict[str, np.ndarray] | None:
    """Extreme values for all inputs; equal symbolic dimensions have equal sizes, mostly small."""
    feeds = {}
    sizes: dict[str, int] = {}
    for info in module.inputs:
        if info.dtype is None:
            return None
        shape = [
            d if isinstance(d, int) and d >= 0 else sizes.setdefault(str(d), rng.choice(SIZES))
            for d in info.shape
        ]
        if prod(map(float, shape)) > MOST_FED:
            return None
        feeds[info.name] = _extremes(rng, info.dtype, shape)
    return feeds


def _extremes(rng: random.Random, dtype: DType, shape: list[int]) -> np.ndarray:
    """An array of a few values, each of them many times."""
    kind = np.dtype(dtype.numpy)
    if kind.hasobject:
        texts = [rng.choice(TEXTS) for _ in range(prod(shape))]
        return np.array(texts, object).reshape(shape)
    drawn = np.random.default_rng(rng.randrange(1 << 32))
    if dtype.is_float or kind.kind == "c":
        with np.errstate(all="ignore"):  # what is too large becomes infinite
            few = np.array(FLOATS).astype(kind)
    elif kind.kind in "iu":
        limits = np.iinfo(kind)
        few = np.array([min(max(v, limits.min), limits.max) for v in INTEGERS], kind)
    else:
        few = np.array([0, 1]).astype(kind)
    made = empty(tuple(shape), dtype)  # in memory that may be guarded
    made[...] = few[drawn.integers(0, len(few), shape)]
    return made


def would_be_long(module: Module) -> bool:
    """Whether a run would make very much, as it may."""
    shapes = [info.shape for info in module.outputs]
    return any(prod(float(d) for d in s if isinstance(d, int)) > MOST_MADE for s in shapes)
