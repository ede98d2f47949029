# ruff: noqa: FBT003 (a table of constants)
"""What may be simplified on data of any dtype, as a table.

Integers wrap. On floats only what is exact for every value is here, NaN, infinities and both zeros
included: `x * 1` and `x - 0` are `x`, but `x + 0` is not (-0.0 + 0.0 is 0.0), nor is `x * 0` zero.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tilewright.tensor.ir import (
    Add,
    Binary,
    BitAnd,
    BitOr,
    BitXor,
    Div,
    Eq,
    FloorDiv,
    FloorMod,
    Le,
    Lt,
    Max,
    Min,
    Mul,
    Ne,
    ShiftLeft,
    ShiftRight,
    Sub,
)

__all__ = ["DATA_RULES", "Row", "X"]

X: Final = "x"  # any value; twice in a row of the table, twice the same


class Row(NamedTuple):
    """`left <op> right` is `result`, for data of one class."""

    on: str
    op: type[Binary]
    left: object
    right: object
    result: object


DATA_RULES: Final[tuple[Row, ...]] = (
    Row("int", Add, X, 0, X),
    Row("int", Add, 0, X, X),
    Row("int", Sub, X, 0, X),
    Row("int", Mul, X, 1, X),
    Row("int", Mul, 1, X, X),
    Row("int", Mul, X, 0, 0),
    Row("int", Mul, 0, X, 0),
    Row("int", FloorDiv, X, 1, X),
    Row("int", FloorMod, X, 1, 0),
    Row("int", BitOr, X, 0, X),
    Row("int", BitOr, 0, X, X),
    Row("int", BitXor, X, 0, X),
    Row("int", BitXor, 0, X, X),
    Row("int", BitAnd, X, 0, 0),
    Row("int", BitAnd, 0, X, 0),
    Row("int", ShiftLeft, X, 0, X),
    Row("int", ShiftRight, X, 0, X),
    Row("int", Sub, X, X, 0),
    Row("int", BitXor, X, X, 0),
    Row("int", BitAnd, X, X, X),
    Row("int", BitOr, X, X, X),
    Row("int", Min, X, X, X),
    Row("int", Max, X, X, X),
    Row("int", Eq, X, X, True),
    Row("int", Le, X, X, True),
    Row("int", Ne, X, X, False),
    Row("int", Lt, X, X, False),
    Row("bool", BitAnd, X, True, X),
    Row("bool", BitAnd, True, X, X),
    Row("bool", BitAnd, X, False, False),
    Row("bool", BitAnd, False, X, False),
    Row("bool", BitAnd, X, X, X),
    Row("bool", BitOr, X, False, X),
    Row("bool", BitOr, False, X, X),
    Row("bool", BitOr, X, True, True),
    Row("bool", BitOr, True, X, True),
    Row("bool", BitOr, X, X, X),
    Row("bool", Eq, X, X, True),
    Row("bool", Ne, X, X, False),
    Row("float", Mul, X, 1.0, X),
    Row("float", Mul, 1.0, X, X),
    Row("float", Div, X, 1.0, X),
    Row("float", Sub, X, 0.0, X),  # -0.0 - 0.0 is -0.0
    Row("float", Add, X, -0.0, X),  # 0.0 + -0.0 is 0.0
    Row("float", Add, -0.0, X, X),
    Row("float", Min, X, X, X),
    Row("float", Max, X, X, X),
)
"""Each row is checked exhaustively on 8-bit integers, on bools, and on all special floats."""
