"""What results may differ from exact ones: the one table of tolerances.

`docs/accuracy.md` is made of it, tests keep to it, and so do the comparisons of benchmarks. A limit
is a number of *units*; what the unit is depends on the kind of operator, because an error of a sum
is small beside its terms and not beside a result in which they cancel. `u` is the unit roundoff of
the element type, 2⁻²⁴ for f32 and 2⁻⁵³ for f64.

Convolutions by minimal filters have bounds that follow from their matrices (`worst`), which hold
for all data, and far smaller limits for ordinary data (`CONVOLUTIONS`, and `rounding` for windows
of any geometry).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import prod, sqrt
from typing import Final

import ml_dtypes
import numpy as np

from tilewright.intrin.functions import FUNCTIONS
from tilewright.tensor.library.minimal_filters import Filter
from tilewright.tensor.library.tiles import SpreadTiles, Tiles

__all__ = ["CONVOLUTIONS", "CONVOLVED", "FAMILIES", "FUNCTION_OPS", "MODELS", "OPERATORS"]
__all__ += [
    "REFERENCE",
    "REORDERED",
    "UNEVEN",
    "Family",
    "Rounding",
    "amplification",
    "growth",
    "limit",
]
__all__ += ["rounding", "worst"]


@dataclass(frozen=True)
class Family:
    """Operators with one kind of error.

    `unit` says what an error is compared with, where n is the number of terms. `strict` and
    `default` are the limits for the two settings of `accuracy`.
    """

    operators: str
    unit: str
    strict: float
    default: float

    def limit(self, accuracy: str) -> float:
        return self.default if accuracy == "default" else self.strict


FUNCTION_OPS: Final = {
    "Acos": "acos", "Acosh": "acosh", "Asin": "asin", "Asinh": "asinh", "Atan": "atan",
    "Atanh": "atanh", "Cos": "cos", "Cosh": "cosh", "Erf": "erf", "Exp": "exp", "Log": "log",
    "Sigmoid": "sigmoid", "Sin": "sin", "Sinh": "sinh", "Tan": "tan", "Tanh": "tanh",
}  # fmt: skip
"""ONNX operators that are one function of each element; its limit is declared with the function."""

FAMILIES: Final = {
    "arithmetic": Family(
        "Add, Sub, Mul, Div, Max, Min, Sqrt, Neg, Abs, Relu, Floor, Ceil, Round",
        "ulp of the result",
        0.5,
        0.5,
    ),
    "sum": Family(
        "ReduceSum, ReduceMean, AveragePool, MatMul, Gemm, Conv",
        "n·u·Σ|terms|",
        1.0,
        1.0,
    ),
    "winograd": Family(
        "Conv, where minimal filters F(m, r) pay",
        "(4·t + k)·α·u·max|x|·max Σ|w|, with k, t and α [as below](#convolutions) "
        "(strict: n·u·Σ|terms|)",
        1.0,
        1.0,
    ),
    "softmax": Family("Softmax", "(n + |x - max x|)·u·y", 2.0, 2.0),
    "normalisation": Family(
        "LayerNormalization, RMSNormalization",
        "n·u·|scale|·(max|x|/σ + |y|)",
        1.0,
        1.0,
    ),
    "attention": Family(
        "Attention, also as products with a softmax between them",
        "(n + d·max Σ|q·k|)·u·max|v|, with n keys and d channels",
        2.0,
        2.0,
    ),
}
"""Families by name; elementwise functions have limits of their own (`FUNCTION_OPS`)."""


@dataclass(frozen=True)
class Rounding:
    """Limits of an algorithm for convolutions of ordinary data, of up to 512 channels.

    `largest` error relative to the largest result, `mean` that of the squares' roots relative to
    the same of the results. `beside` is for results to which a huge element spreads although their
    windows do not see it: their error in u·|element|·max|w|.
    """

    largest: float
    mean: float
    beside: float


CONVOLUTIONS: Final = {
    "direct": Rounding(1.5e-5, 5e-6, 0),
    "F(2, 2)": Rounding(4e-6, 2e-6, 0),
    "F(3, 2)": Rounding(4e-6, 2.5e-6, 10),
    "F(4, 2)": Rounding(1e-5, 5e-6, 50),
    "F(5, 2)": Rounding(1.5e-5, 5e-6, 80),
    "F(6, 2)": Rounding(5e-5, 1.2e-5, 150),
    "F(2, 3)": Rounding(4e-6, 2.5e-6, 0),
    "F(3, 3)": Rounding(6e-6, 4e-6, 30),
    "F(4, 3)": Rounding(1.5e-5, 5e-6, 50),
    "F(5, 3)": Rounding(3e-5, 1.2e-5, 200),
    "F(6, 3)": Rounding(8e-5, 1.8e-5, 300),
    "F(2, 4)": Rounding(6e-6, 4e-6, 20),
    "F(3, 4)": Rounding(1.2e-5, 5e-6, 50),
    "F(4, 4)": Rounding(5e-5, 1.8e-5, 300),
    "F(5, 4)": Rounding(6e-5, 2e-5, 300),
    "F(2, 5)": Rounding(1e-5, 6e-6, 0),
    "F(3, 5)": Rounding(3e-5, 1.2e-5, 60),
    "F(4, 5)": Rounding(6e-5, 2e-5, 60),
    "F(2, 6)": Rounding(4e-5, 2e-5, 60),
    "F(3, 6)": Rounding(4e-5, 2e-5, 60),
    "F(2, 7)": Rounding(4e-5, 2.2e-5, 0),
}
"""Minimal filters along two dimensions, by the names that `layouts.algorithms` gives them."""

UNEVEN: Final = 30
"""`beside` at least, where parts of a window differ: zeros stand for what is missing."""

OPERATORS: Final = 1e-5
"""Single operators of the benchmarks: relative to the largest value of the exact result."""

CONVOLVED: Final = 1e-4
"""The same for convolutions: above the limits of all algorithms for windows of one part."""

MODELS: Final = {"models": 1e-4, "vision": 2e-4}
"""Whole models, by family of the benchmarks: relative to the largest value of each output."""

REORDERED: Final = {
    np.dtype(np.float64): 1e-10,
    np.dtype(np.float32): 2e-5,
    np.dtype(np.float16): 2e-3,
    np.dtype(ml_dtypes.bfloat16): 1.6e-2,
}
"""Programs with another order of sums and other storage, by element type: relative to the largest
value."""

REFERENCE: Final = {2: (1e-2, 1e-2), 4: (2e-5, 1e-6), 8: (1e-12, 1e-14)}
"""Small graphs against the ONNX reference implementation, which itself rounds to the element type:
relative and absolute, by the bytes of a float."""


def limit(family: str, accuracy: str = "default") -> float:
    """How many units the results of a family, or of an ONNX function, may be off."""
    if family in FUNCTION_OPS:
        return FUNCTIONS[FUNCTION_OPS[family]].ulp
    return FAMILIES[family].limit(accuracy)


def rounding(tiles: Tiles | None) -> Rounding:
    """The limits of an algorithm; `None` is the direct one.

    Errors of the dimensions multiply. Where these have different filters, the limits are therefore
    between those of both; a dimension without tiles is like the direct algorithm. Sums that are k
    times as long, because windows have parts or dimensions without tiles, round √k times as much.
    """
    direct = CONVOLUTIONS["direct"]
    if tiles is None:
        return direct
    found = [CONVOLUTIONS[f"F({f.results}, {f.taps})"] for f in tiles.filters]
    first, second = found if len(found) == 2 else (*found, direct)
    longer = sqrt(_summed(tiles))
    return Rounding(
        longer * sqrt(first.largest * second.largest),
        longer * sqrt(first.mean * second.mean),
        max(first.beside, second.beside, UNEVEN if _is_uneven(tiles) else 0),
    )


def _summed(tiles: Tiles) -> int:
    """How many terms of a product there are for each channel."""
    return prod(tiles.taps[d] for d in tiles.plain) * prod(tiles.parts)


def _is_uneven(tiles: Tiles) -> bool:
    """Whether parts of a window have zeros where others have elements."""
    own = isinstance(tiles, SpreadTiles)  # whose images have windows of their own
    parts = ((d, line.images if own else line.parts) for d, line in tiles.lines.items())
    return any(tiles.taps[d] % count for d, count in parts)


def growth(tiles: Tiles) -> float:
    """How many times max|x| transformed data may be: max Σ|B|, of all tiled dimensions."""
    return prod(float(max(_sizes(f))) for f in tiles.filters)


def amplification(tiles: Tiles) -> float:
    """α: how many times max|x| · max Σ|w| the terms of a result may add up to, signs aside."""
    return prod(_amplification(f) for f in tiles.filters)


def worst(tiles: Tiles, channels: int) -> float:
    """A bound of the error in u · max|x| · max Σ|w|: roundings on the way of a term, times α.

    `channels` are those of a group. Windows of dimensions without tiles, and parts of windows, are
    summed up with them.
    """
    terms = channels * _summed(tiles)
    return (2 * sum(f.tile for f in tiles.filters) + terms) * amplification(tiles)


def _sizes(one: Filter) -> list[Fraction]:
    """Σ|B| of each row."""
    return [sum(map(abs, row), Fraction(0)) for row in one.data]


def _amplification(one: Filter) -> float:
    sizes = _sizes(one)
    return max(
        float(sum(abs(a * g) * b for a, g, b in zip(row, column, sizes, strict=True)))
        for row in one.back
        for column in zip(*one.weights, strict=True)
    )
