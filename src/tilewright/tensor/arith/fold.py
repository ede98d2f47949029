"""Simplification of what is not index arithmetic: data of any dtype, and conditions.

The table is in `data_rules.py`; here it is applied, and constants are folded. Integers wrap as the
machine does; constants of floats are left to the machine that runs the program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tilewright.dtypes import DType, boolean
from tilewright.tensor.arith.data_rules import DATA_RULES, Row, X
from tilewright.tensor.arith.rebuild import same_tree
from tilewright.tensor.ir import (
    Add,
    Binary,
    BitAnd,
    BitOr,
    BitXor,
    Cast,
    Const,
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

__all__ = ["FALSE", "TRUE", "fold", "wrapped"]

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


def _class_of(dtype: DType) -> str:
    return "float" if dtype.is_float else "bool" if dtype.is_bool else "int"


_ROWS: Final[dict[tuple[str, type[Expr]], list[Row]]] = {}
for _row in DATA_RULES:
    _ROWS.setdefault((_row.on, _row.op), []).append(_row)


def _constant(value: object, dtype: DType) -> Const:
    if isinstance(value, bool):
        return TRUE if value else FALSE
    assert isinstance(value, int | float)
    return Const(float(value) if dtype.is_float else value, dtype)


def _matches(pattern: object, value: Expr, dtype: DType) -> bool:
    return pattern is X or (type(value) is Const and value == _constant(pattern, dtype))


def fold(expr: Expr) -> Expr:
    """One step at the root of `expr`, whose parts are simple already; itself if there is none."""
    if isinstance(expr, Binary):
        return expr if expr.a.dtype.lanes > 1 else _binary(expr)
    if type(expr) is Select:
        return _select(expr)
    if type(expr) is Not:
        return _not(expr)
    if type(expr) is Cast and type(expr.value) is Const:
        return _cast(expr, expr.value)
    return expr


def _binary(expr: Binary) -> Expr:
    a, b, dtype = expr.a, expr.b, expr.a.dtype
    if type(a) is Const and type(b) is Const and not dtype.is_float:
        return _constants(expr, int(a.value), int(b.value))
    for row in _ROWS.get((_class_of(dtype), type(expr)), ()):
        if not _matches(row.left, a, dtype) or not _matches(row.right, b, dtype):
            continue
        if row.left is X and row.right is X and not same_tree(a, b):
            continue
        if row.result is not X:
            return _constant(row.result, dtype)
        return a if row.left is X else b
    return expr


def _constants(expr: Binary, a: int, b: int) -> Expr:
    kind = type(expr)
    if kind in _COMPARE:
        return TRUE if _COMPARE[kind](a, b) else FALSE
    operand = expr.a.dtype
    if kind in (ShiftLeft, ShiftRight):
        if not 0 <= b < operand.bits:
            return expr
        return Const(wrapped(a << b if kind is ShiftLeft else a >> b, operand), operand)
    if kind not in _INTEGER or (operand.is_bool and kind in (Sub, FloorDiv, FloorMod)):
        return expr
    value = _INTEGER[kind](a, b)
    if operand.is_bool:
        return TRUE if value else FALSE
    return Const(wrapped(value, operand), operand)


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
