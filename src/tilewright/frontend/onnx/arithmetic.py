"""Arithmetic and the functions of mathematics: each operator is a scalar expression."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Final

from tilewright.dtypes import f64
from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.frontend.onnx.shapes import aligned
from tilewright.graph import Builder, Value
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call, select

__all__ = ["divided", "quotient"]

MAX_POWER: Final = 8
"""Whole powers up to this one are multiplications."""


def quotient(x: tir.Expr, y: tir.Expr) -> tir.Expr:
    """Division as ONNX means it: that of integers is truncated toward zero."""
    if x.dtype.is_float:
        return x / y
    down = x // y
    if not x.dtype.is_signed:
        return down
    return select((x % y).ne(0) & ((x < 0) ^ (y < 0)), down + 1, down)


def divided(x: tir.Expr, number: int) -> tir.Expr:
    """A float over a number, rounded once: times the inverse only where that is exact."""
    is_exact = number.bit_count() == 1
    return x * (1 / number) if is_exact else x / number


BINARY: Final[dict[str, Callable[[tir.Expr, tir.Expr], tir.Expr]]] = {
    "Add": lambda x, y: x + y,
    "Sub": lambda x, y: x - y,
    "Mul": lambda x, y: x * y,
    "Div": quotient,
}


@onnx_op(*BINARY)
def binary(b: Builder, node: OnnxNode, x: Value, y: Value) -> Value:
    """Two operands, broadcast together."""
    return b.map(BINARY[node.op], x, aligned(b, node, x, y))


def _sign(x: tir.Expr) -> tir.Expr:
    """-1, 0 or 1; zero and NaN stay what they are."""
    if not x.dtype.is_signed:
        return select(x > 0, tir.const(1, x.dtype), x)
    one, minus = tir.const(1, x.dtype), tir.const(-1, x.dtype)
    return select(x > 0, one, select(x < 0, minus, x))


UNARY: Final[dict[str, Callable[[tir.Expr], tir.Expr]]] = {
    "Neg": lambda x: -x,
    "Abs": lambda x: call("abs", x),
    "Sign": _sign,
    "Reciprocal": lambda x: 1 / x,
}


@onnx_op(*UNARY)
def unary(b: Builder, node: OnnxNode, x: Value) -> Value:
    """One operand."""
    return b.map(UNARY[node.op], x)


FUNCTIONS: Final = (
    *("Floor", "Ceil", "Round", "Sqrt", "Exp", "Log", "Erf", "Sin", "Cos", "Tan", "Asin", "Acos"),
    *("Atan", "Sinh", "Cosh", "Tanh", "Asinh", "Acosh", "Atanh", "Sigmoid"),
)
"""Operators whose name in lower case is that of a function of the tensor IR."""


@onnx_op(*FUNCTIONS)
def function(b: Builder, node: OnnxNode, x: Value) -> Value:
    """A function by name; of integers it is rounded toward zero."""
    name = node.op.lower()
    if x.dtype.is_float:
        return b.map(lambda v: call(name, v), x)
    return b.map(lambda v: call(name, v.to(f64)).to(v.dtype), x)


MANY: Final = 16
STEP: Final = 4
"""Operands that are folded at once, where there are more than `MANY`."""

VARIADIC: Final[dict[str, Callable[[tir.Expr, tir.Expr], tir.Expr]]] = {
    "Min": tir.minimum,
    "Max": tir.maximum,
    "Sum": lambda x, y: x + y,
    "Mean": lambda x, y: x + y,
}


@onnx_op(*VARIADIC)
def variadic(b: Builder, node: OnnxNode, *inputs: Value) -> Value:
    """Any number of operands; NaN makes the extremes NaN.

    Many of them are folded step by step: an expression of hundreds is nested too deeply.
    """

    def fold(*values: tir.Expr) -> tir.Expr:
        return reduce(VARIADIC[node.op], values)

    def fold_last(*values: tir.Expr) -> tir.Expr:
        return divided(fold(*values), len(inputs)) if node.op == "Mean" else fold(*values)

    first, *rest = inputs
    while len(rest) > MANY:
        first, rest = b.map(fold, first, *rest[:STEP]), rest[STEP:]
    return b.map(fold_last, first, *rest) if rest else first


@onnx_op("Pow")
def power(b: Builder, node: OnnxNode, x: Value, y: Value) -> Value:
    """The power of x to y, as the type of x."""
    y = aligned(b, node, x, y)
    held = b.contents(y)
    if held is not None and held.size == 1 and held.dtype != object and y.rank <= x.rank:
        known = _known_power(float(held.item()), is_float=x.dtype.is_float)
        if known is not None:
            return b.map(known, x)
    if x.dtype.is_float:
        return b.map(_float_power, x, y, dtype=x.dtype)
    if y.dtype.is_float:
        return b.map(lambda v, e: call("pow", v.to(f64), e.to(f64)).to(v.dtype), x, y)
    return b.map(_whole_power, x, y)


def _known_power(exponent: float, *, is_float: bool) -> Callable[[tir.Expr], tir.Expr] | None:
    if exponent.is_integer() and 1 <= exponent <= MAX_POWER:
        return lambda v: _multiplied(v, int(exponent))
    known: dict[float, Callable[[tir.Expr], tir.Expr]] = {
        0.5: lambda v: call("sqrt", v),
        -0.5: lambda v: call("rsqrt", v),
        -1.0: lambda v: 1 / v,
    }
    return known.get(exponent) if is_float else None


def _multiplied(x: tir.Expr, times: int) -> tir.Expr:
    if times == 1:
        return x
    half = _multiplied(x, times // 2)
    return half * half * x if times % 2 else half * half


def _float_power(x: tir.Expr, y: tir.Expr) -> tir.Expr:
    """In double precision if the exponent is a double: a rounded one gives another result."""
    wide = y.dtype if y.dtype.is_float and y.dtype.bits > x.dtype.bits else x.dtype
    return call("pow", x.to(wide), y.to(wide)).to(x.dtype)


def _whole_power(x: tir.Expr, y: tir.Expr) -> tir.Expr:
    """Integers to integers below 64: the squares of the bits of the exponent, multiplied."""
    result: tir.Expr = tir.const(1, x.dtype)
    square = x
    for bit in range(6):
        has = (y & (1 << bit)).ne(0)
        result = select(has, result * square, result)
        square = square * square
    return result


@onnx_op("Mod")
def modulo(b: Builder, node: OnnxNode, x: Value, y: Value) -> Value:
    """The remainder, with the sign of the divisor, or with `fmod` that of the dividend."""
    if x.dtype.is_float:
        return b.map(partial(call, "fmod") if node.int("fmod") else _float_modulo, x, y)
    return b.map(_truncated if node.int("fmod") else (lambda v, w: v % w), x, y)


def _truncated(x: tir.Expr, y: tir.Expr) -> tir.Expr:
    rest = x % y
    return select(rest.ne(0) & ((x < 0) ^ (y < 0)), rest - y, rest) if x.dtype.is_signed else rest


def _float_modulo(x: tir.Expr, y: tir.Expr) -> tir.Expr:
    """NumPy's `mod`: with the sign of the divisor."""
    rest = call("fmod", x, y)
    moved = rest.ne(0) & ((rest < 0) ^ (y < 0))
    return select(moved, rest + y, select(rest.eq(0), call("copysign", rest, y), rest))
