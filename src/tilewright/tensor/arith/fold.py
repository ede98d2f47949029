"""Simplification of what is not index arithmetic: data of any dtype, and conditions.

Integers wrap as the machine does. On floats only what is exact for every value is done, NaN,
infinities and both zeros included: `x * 1` and `x - 0` are `x`, but `x + 0` is not (-0.0 + 0.0 is
0.0), nor is `x * 0` zero. Constants of floats are left to the machine that runs the program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tilewright.dtypes import DType, boolean
from tilewright.tensor.arith.rebuild import same_tree
from tilewright.tensor.expr import (
    Add,
    Binary,
    BitAnd,
    BitOr,
    BitXor,
    Cast,
    Const,
    Div,
    Eq,
    Expr,
    FloorDiv,
    FloorMod,
    Le,
    Lt,
    Max,
    Min,
    Mul,
    Ne,
    Not,
    Select,
    ShiftLeft,
    ShiftRight,
    Sub,
)

__all__ = ["FALSE", "TRUE", "fold"]

TRUE: Final = Const(value=True, dtype=boolean)
FALSE: Final = Const(value=False, dtype=boolean)


def wrapped(value: int, dtype: DType) -> int:
    """`value` as an integer dtype holds it."""
    value &= (1 << dtype.bits) - 1
    return value - (1 << dtype.bits) if dtype.is_signed and value >> (dtype.bits - 1) else value


_INTEGER: Final[dict[type[Expr], Callable[[int, int], int]]] = {
    Add: lambda a, b: a + b,
    Sub: lambda a, b: a - b,
    Mul: lambda a, b: a * b,
    FloorDiv: lambda a, b: a // b if b else 0,
    FloorMod: lambda a, b: a % b if b else 0,
    Min: min,
    Max: max,
    BitAnd: lambda a, b: a & b,
    BitOr: lambda a, b: a | b,
    BitXor: lambda a, b: a ^ b,
}

_COMPARE: Final[dict[type[Expr], Callable[[int, int], bool]]] = {
    Eq: lambda a, b: a == b,
    Ne: lambda a, b: a != b,
    Lt: lambda a, b: a < b,
    Le: lambda a, b: a <= b,
}


def fold(expr: Expr) -> Expr:
    """One step at the root of `expr`, whose parts are simple already; itself if there is none."""
    if isinstance(expr, Binary):
        return _binary(expr)
    if type(expr) is Select:
        return _select(expr)
    if type(expr) is Not:
        return _not(expr)
    if type(expr) is Cast and type(expr.value) is Const:
        return _cast(expr, expr.value)
    return expr


def _binary(expr: Binary) -> Expr:
    a, b = expr.a, expr.b
    operand = a.dtype
    if type(a) is Const and type(b) is Const and not operand.is_float:
        return _constants(expr, int(a.value), int(b.value))
    if operand.is_float:
        return _float(expr, a, b)
    if operand.is_bool:
        return _boolean(expr, a, b)
    return _integer(expr, a, b)


def _constants(expr: Binary, a: int, b: int) -> Expr:
    kind = type(expr)
    if kind in _COMPARE:
        return TRUE if _COMPARE[kind](a, b) else FALSE
    operand = expr.a.dtype
    if kind in _INTEGER:
        value = _INTEGER[kind](a, b)
        if operand.is_bool:
            return TRUE if value else FALSE
        return Const(wrapped(value, operand), operand)
    if kind in (ShiftLeft, ShiftRight) and 0 <= b < operand.bits:
        return Const(wrapped(a << b if kind is ShiftLeft else a >> b, operand), operand)
    return expr


def _is(value: Expr, number: int) -> bool:
    return type(value) is Const and value.value == number


def _integer(expr: Binary, a: Expr, b: Expr) -> Expr:
    kind = type(expr)
    if kind in (Add, BitOr, BitXor, ShiftLeft, ShiftRight, Sub) and _is(b, 0):
        return a
    if kind in (Add, BitOr, BitXor) and _is(a, 0):
        return b
    if kind is Mul:
        if _is(b, 1) or _is(a, 0):
            return a
        if _is(a, 1) or _is(b, 0):
            return b
    if kind is FloorDiv and _is(b, 1):
        return a
    if kind in (Min, Max, BitAnd, BitOr) and same_tree(a, b):
        return a
    if kind in (Eq, Le) and same_tree(a, b):
        return TRUE
    if kind in (Ne, Lt) and same_tree(a, b):
        return FALSE
    return expr


def _boolean(expr: Binary, a: Expr, b: Expr) -> Expr:
    kind = type(expr)
    if kind is BitAnd:
        if _is(a, 1) or _is(b, 0) or same_tree(a, b):
            return b
        if _is(b, 1) or _is(a, 0):
            return a
    if kind is BitOr:
        if _is(a, 0) or _is(b, 1) or same_tree(a, b):
            return b
        if _is(b, 0) or _is(a, 1):
            return a
    return expr


def _float(expr: Binary, a: Expr, b: Expr) -> Expr:
    kind = type(expr)
    if kind is Mul and _is(b, 1):
        return a
    if kind is Mul and _is(a, 1):
        return b
    if kind is Div and _is(b, 1):
        return a
    if kind is Sub and type(b) is Const and b == Const(0.0, b.dtype):
        return a
    if kind is Add and type(b) is Const and b == Const(-0.0, b.dtype):
        return a
    return expr


def _select(expr: Select) -> Expr:
    if type(expr.cond) is Const:
        return expr.if_true if expr.cond.value else expr.if_false
    return expr.if_true if same_tree(expr.if_true, expr.if_false) else expr


_OPPOSITE: Final[dict[type[Expr], type[Binary]]] = {Eq: Ne, Ne: Eq}


def _not(expr: Not) -> Expr:
    inner = expr.value
    if type(inner) is Not:
        return inner.value
    if type(inner) is Const:
        if inner.dtype.is_bool:
            return FALSE if inner.value else TRUE
        return Const(wrapped(~int(inner.value), inner.dtype), inner.dtype)
    if isinstance(inner, Eq | Ne):
        return _OPPOSITE[type(inner)](inner.a, inner.b)
    if isinstance(inner, Lt | Le) and inner.a.dtype.is_integer:
        return Le(inner.b, inner.a) if type(inner) is Lt else Lt(inner.b, inner.a)
    return expr


def _cast(expr: Cast, value: Const) -> Expr:
    source, target = value.dtype, expr.dtype
    if source.is_float or target.is_float or target.lanes > 1:
        return expr
    if target.is_bool:
        return TRUE if value.value else FALSE
    return Const(wrapped(int(value.value), target), target)
