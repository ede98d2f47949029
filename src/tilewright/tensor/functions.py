"""Functions that a `Call` may name, and what they mean: NumPy in float64, rounded to the dtype.

The table defines meaning for `interpret` and arity for `verify`; how fast code computes each
function is the business of `intrin/`, which may add names of its own with `register`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from tilewright.dtypes import DType
from tilewright.tensor import ir as tir
from tilewright.tensor.node import Node

__all__ = ["FUNCTIONS", "MARKS", "Function", "apply", "is_function", "register"]

Evaluate = Callable[..., Any]


@dataclass(frozen=True)
class Function:
    """`evaluate` takes float64 values, or integers and truth values as they are.

    `kinds` are the types that it is for: f(loat), i(nteger), b(ool).
    """

    name: str
    arity: int
    evaluate: Evaluate
    kinds: str = "f"


FUNCTIONS: Final[dict[str, Function]] = {}


def register(name: str, arity: int, evaluate: Evaluate, kinds: str = "f") -> None:
    """Make a function known; a name keeps its meaning once it has one."""
    if name in FUNCTIONS:
        raise ValueError(f"the function `{name}` is defined twice")
    FUNCTIONS[name] = Function(name, arity, evaluate, kinds)


def is_function(part: Node) -> bool:
    """Whether it is a call that computes something."""
    return type(part) is tir.Call and part.name not in MARKS


def apply(name: str, args: list[Any], dtype: DType) -> Any:
    """The value of a call on NumPy scalars or arrays."""
    function = FUNCTIONS[name]
    if dtype.is_float:
        args = [np.asarray(a).astype(np.float64) for a in args]
    return np.asarray(function.evaluate(*args)).astype(dtype.numpy)[()]


def _each(scalar: Callable[..., float]) -> Evaluate:
    """A function of Python floats, on arrays."""
    return np.vectorize(scalar, otypes=[np.float64])


def _fma(a: float, b: float, c: float) -> float:
    if not all(map(math.isfinite, (a, b, c))):
        return a * b + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return float(np.float64(a) * np.float64(b) + np.float64(c))  # for the sign of zero
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _sigmoid(x: Any) -> Any:
    return np.where(
        x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x)))
    )


_erf = _each(math.erf)
_erfc = _each(math.erfc)


def _gelu(x: Any) -> Any:
    # erfc keeps the digits of the left tail; minus infinity times zero is NaN.
    return 0.5 * x * _erfc(-x / math.sqrt(2))


_TABLE: Final[dict[str, tuple[int, Evaluate]]] = {
    "exp": (1, np.exp),
    "exp_bounded": (1, np.exp),  # for arguments that cannot overflow
    "exp2": (1, np.exp2),
    "expm1": (1, np.expm1),
    "log": (1, np.log),
    "log2": (1, np.log2),
    "log10": (1, np.log10),
    "log1p": (1, np.log1p),
    "tanh": (1, np.tanh),
    "sinh": (1, np.sinh),
    "cosh": (1, np.cosh),
    "sin": (1, np.sin),
    "cos": (1, np.cos),
    "tan": (1, np.tan),
    "asin": (1, np.arcsin),
    "acos": (1, np.arccos),
    "atan": (1, np.arctan),
    "asinh": (1, np.arcsinh),
    "acosh": (1, np.arccosh),
    "atanh": (1, np.arctanh),
    "atan2": (2, np.arctan2),
    "erf": (1, _erf),
    "erfc": (1, _erfc),
    "sigmoid": (1, _sigmoid),
    "gelu": (1, _gelu),
    "sqrt": (1, np.sqrt),
    "rsqrt": (1, lambda x: 1 / np.sqrt(x)),
    "pow": (2, np.power),
    "fmod": (2, np.fmod),
    "fma": (3, _each(_fma)),
    "floor": (1, np.floor),
    "ceil": (1, np.ceil),
    "trunc": (1, np.trunc),
    "round": (1, np.rint),  # to nearest, ties to even
    "copysign": (2, np.copysign),
}

for _name, (_arity, _evaluate) in _TABLE.items():
    register(_name, _arity, _evaluate)
register("abs", 1, np.abs, "if")
MARKS: Final = frozenset({"unlikely", "contracted"})
"""Calls that are their argument, and say how it is computed.

A choice by an `unlikely` condition need not compute what it hardly ever takes. Products in what is
`contracted` may be fused with the sums that they are added to, which saves a rounding.
"""
register("unlikely", 1, np.asarray, "b")
register("contracted", 1, np.asarray)
# Which thread of how many runs the kernel: the interpreter is a single one.
register("thread", 0, lambda: np.int64(0), "i")
register("threads", 0, lambda: np.int64(1), "i")
