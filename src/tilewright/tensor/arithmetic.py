"""The operations on two values. Each class announces its symbol to the operators of `Expr`."""

from __future__ import annotations

from typing import ClassVar

from tilewright.tensor.expr import Binary, Compare
from tilewright.tensor.node import node

__all__ = [
    "Add",
    "BitAnd",
    "BitOr",
    "BitXor",
    "Div",
    "Eq",
    "FloorDiv",
    "FloorMod",
    "Le",
    "Lt",
    "Max",
    "Min",
    "Mul",
    "Ne",
    "ShiftLeft",
    "ShiftRight",
    "Sub",
]


@node
class Add(Binary):
    """`a + b`; integers wrap."""

    symbol: ClassVar[str] = "+"


@node
class Sub(Binary):
    """`a - b`; integers wrap."""

    symbol: ClassVar[str] = "-"


@node
class Mul(Binary):
    """`a * b`; integers wrap."""

    symbol: ClassVar[str] = "*"


@node
class Div(Binary):
    """`a / b` on floats."""

    symbol: ClassVar[str] = "/"


@node
class FloorDiv(Binary):
    """`a // b` on integers, rounded down; by zero it gives 0, as NumPy does."""

    symbol: ClassVar[str] = "//"


@node
class FloorMod(Binary):
    """`a % b` on integers, with the sign of `b`; by zero it gives 0, as NumPy does."""

    symbol: ClassVar[str] = "%"


@node
class Min(Binary):
    """The lesser; NaN if either is NaN."""

    symbol: ClassVar[str] = "min"


@node
class Max(Binary):
    """The greater; NaN if either is NaN."""

    symbol: ClassVar[str] = "max"


@node
class BitAnd(Binary):
    """Bitwise and; logical and on bools (both sides are evaluated)."""

    symbol: ClassVar[str] = "&"


@node
class BitOr(Binary):
    """Bitwise or; logical or on bools (both sides are evaluated)."""

    symbol: ClassVar[str] = "|"


@node
class BitXor(Binary):
    """Bitwise exclusive or."""

    symbol: ClassVar[str] = "^"


@node
class ShiftLeft(Binary):
    """`a << b` for 0 ≤ b < bits."""

    symbol: ClassVar[str] = "<<"


@node
class ShiftRight(Binary):
    """`a >> b` for 0 ≤ b < bits; keeps the sign of signed integers."""

    symbol: ClassVar[str] = ">>"


@node
class Eq(Compare):
    """`a == b`."""

    symbol: ClassVar[str] = "=="


@node
class Ne(Compare):
    """`a != b`; true if either is NaN."""

    symbol: ClassVar[str] = "!="


@node
class Lt(Compare):
    """`a < b`; false if either is NaN."""

    symbol: ClassVar[str] = "<"


@node
class Le(Compare):
    """`a <= b`; false if either is NaN."""

    symbol: ClassVar[str] = "<="
