"""Expressions of the tensor IR and the buffers they read. Data, and the operators that build it.

Operators (`a + b`, `a // 4`, `a < b`) lift Python numbers and fold what is trivially constant on
integers; everything deeper is the simplifier's work (`arith/`). `==` compares two expressions as
values; the IR's own comparison is `a.eq(b)`.

The operations on two values are in `arithmetic.py`. Nodes from `Let` to `Reduce` appear only after
lowering.
"""

from __future__ import annotations

import enum
import operator
import struct
from collections.abc import Callable
from typing import ClassVar, TypeGuard

from tilewright.dtypes import DType, boolean, index
from tilewright.tensor.layout import LayoutStep
from tilewright.tensor.node import Node, node


class Expr(Node):
    """A pure value. `dtype` is known at construction."""

    __slots__ = ()
    dtype: DType

    def __add__(self, other: Lift) -> Expr:
        return _binary("+", self, as_expr(other, self.dtype))

    def __radd__(self, other: Lift) -> Expr:
        return _binary("+", as_expr(other, self.dtype), self)

    def __sub__(self, other: Lift) -> Expr:
        return _binary("-", self, as_expr(other, self.dtype))

    def __rsub__(self, other: Lift) -> Expr:
        return _binary("-", as_expr(other, self.dtype), self)

    def __mul__(self, other: Lift) -> Expr:
        return _binary("*", self, as_expr(other, self.dtype))

    def __rmul__(self, other: Lift) -> Expr:
        return _binary("*", as_expr(other, self.dtype), self)

    def __truediv__(self, other: Lift) -> Expr:
        return _binary("/", self, as_expr(other, self.dtype))

    def __rtruediv__(self, other: Lift) -> Expr:
        return _binary("/", as_expr(other, self.dtype), self)

    def __floordiv__(self, other: Lift) -> Expr:
        return _binary("//", self, as_expr(other, self.dtype))

    def __rfloordiv__(self, other: Lift) -> Expr:
        return _binary("//", as_expr(other, self.dtype), self)

    def __mod__(self, other: Lift) -> Expr:
        return _binary("%", self, as_expr(other, self.dtype))

    def __rmod__(self, other: Lift) -> Expr:
        return _binary("%", as_expr(other, self.dtype), self)

    def __and__(self, other: Lift) -> Expr:
        return _binary("&", self, as_expr(other, self.dtype))

    def __or__(self, other: Lift) -> Expr:
        return _binary("|", self, as_expr(other, self.dtype))

    def __xor__(self, other: Lift) -> Expr:
        return _binary("^", self, as_expr(other, self.dtype))

    def __lshift__(self, other: Lift) -> Expr:
        return _binary("<<", self, as_expr(other, self.dtype))

    def __rshift__(self, other: Lift) -> Expr:
        return _binary(">>", self, as_expr(other, self.dtype))

    def __lt__(self, other: Lift) -> Expr:
        return _binary("<", self, as_expr(other, self.dtype))

    def __le__(self, other: Lift) -> Expr:
        return _binary("<=", self, as_expr(other, self.dtype))

    def __gt__(self, other: Lift) -> Expr:
        return _binary("<", as_expr(other, self.dtype), self)

    def __ge__(self, other: Lift) -> Expr:
        return _binary("<=", as_expr(other, self.dtype), self)

    def __neg__(self) -> Expr:
        return Neg(self) if self.dtype != index else _binary("-", Const(0, index), self)

    def __invert__(self) -> Expr:
        return Not(self)

    def eq(self, other: Lift) -> Expr:
        """`self == other` as an expression."""
        return _binary("==", self, as_expr(other, self.dtype))

    def ne(self, other: Lift) -> Expr:
        """`self != other` as an expression."""
        return _binary("!=", self, as_expr(other, self.dtype))

    def to(self, dtype: DType) -> Expr:
        """Converted to `dtype`; itself if it already has it."""
        if self.dtype == dtype:
            return self
        if dtype.is_small and self.dtype == dtype.computed and _is_from(self, dtype):
            return self.value  # a value that was widened stays what it is, also if it is NaN
        return Cast(dtype, self)

    def __bool__(self) -> bool:
        raise TypeError("an expression has no truth value while the program is built; use `select`")


@node
class Const(Expr):
    """A literal; `value` is a Python int, float or bool that the dtype can hold."""

    value: int | float | bool
    dtype: DType = index

    def key(self) -> object:
        """Distinguishes 0.0 from -0.0 and makes NaN equal to itself."""
        return struct.pack("d", self.value) if isinstance(self.value, float) else int(self.value)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is not Const or self.dtype != other.dtype:
            return False
        if type(self.value) is int and type(other.value) is int:
            return self.value == other.value
        return self.key() == other.key()

    def __hash__(self) -> int:
        return hash(self.value if type(self.value) is int else self.key())


@node
class Var(Expr):
    """A loop, iteration, size or let variable. Identity is meaning, the name is a hint."""

    name: str
    dtype: DType = index
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a variable has identity; send the program's text instead")


OPERATIONS: dict[str, type[Binary]] = {}
"""The operation of each symbol; `arithmetic.py` defines them."""


@node
class Binary(Expr):
    """An operation on two values of one dtype."""

    a: Expr
    b: Expr
    dtype: DType = None  # type: ignore[assignment]
    symbol: ClassVar[str] = "?"

    def __init_subclass__(cls) -> None:
        OPERATIONS[cls.symbol] = cls

    def finish(self) -> None:
        _set_dtype(self, self.a.dtype)  # the default stands for "as the parts say"


_set_dtype = Binary.__dict__["dtype"].__set__


@node
class Compare(Binary):
    """A comparison; its dtype is bool."""

    def finish(self) -> None:
        _set_dtype(self, boolean.vector(self.a.dtype.lanes))


@node
class Not(Expr):
    """Logical not of a bool, bitwise not of an integer."""

    value: Expr

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.value.dtype


@node
class Neg(Expr):
    """`-value`; exact on floats (also of zero), wraps on integers."""

    value: Expr

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.value.dtype


@node
class Cast(Expr):
    """Conversion of value: rounds to nearest even into floats, truncates into integers.

    `to_integer.py` says what becomes of floats outside of the range of the integer.
    """

    dtype: DType
    value: Expr


def _is_from(expr: Expr, dtype: DType) -> TypeGuard[Cast]:
    """Whether a conversion from a type is what `expr` is."""
    return type(expr) is Cast and expr.value.dtype == dtype


@node
class Reinterpret(Expr):
    """The same bits as another dtype of equal size."""

    dtype: DType
    value: Expr


@node
class Select(Expr):
    """`if_true` where `cond`, else `if_false`; both sides are evaluated (no side effects)."""

    cond: Expr
    if_true: Expr
    if_false: Expr

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.if_true.dtype


@node
class Load(Expr):
    """One element, or a vector after lowering (then the last index is a `Ramp`)."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    dtype: DType = None  # type: ignore[assignment]

    def finish(self) -> None:
        lanes = max([i.dtype.lanes for i in self.indices], default=1)
        _set_load_dtype(self, self.buffer.dtype.vector(lanes))


_set_load_dtype = Load.__dict__["dtype"].__set__


@node
class Call(Expr):
    """A math function by name (`exp`, `sqrt`, `fma`, …; the table is in `tensor/functions.py`)."""

    name: str
    args: tuple[Expr, ...]
    dtype: DType


@node
class Let(Expr):
    """`body` with `var` standing for `value`, which is evaluated once."""

    var: Var
    value: Expr
    body: Expr

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.body.dtype


@node
class Ramp(Expr):
    """The vector `base, base + stride, …` of indices."""

    base: Expr
    stride: Expr
    lanes: int

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.base.dtype.vector(self.lanes)


@node
class Prefix(Expr):
    """The index vector `base, base + 1, …` of which only the first `count` lanes are on.

    It stands for the index of an access alone. Lanes that are off touch no memory: a load gives
    zero there, a store writes nothing. `count` may be negative, or exceed the lanes.
    """

    base: Expr
    count: Expr
    lanes: int

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.base.dtype.vector(self.lanes)


@node
class Broadcast(Expr):
    """A vector of `lanes` equal values."""

    value: Expr
    lanes: int

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.value.dtype.vector(self.lanes)


class Fold(enum.Enum):
    """How the lanes of a vector are combined into one value, in any order."""

    ADD = "add"
    MUL = "mul"
    MIN = "min"
    MAX = "max"


@node
class Reduce(Expr):
    """All lanes of a vector folded into one scalar; the order is unspecified."""

    fold: Fold
    value: Expr

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.value.dtype.scalar


class Scope(enum.Enum):
    """Where a buffer lives."""

    MEMORY = "memory"
    REGISTER = "register"


@node
class Buffer(Node):
    """A dense array; `shape` is physical, `layout` says how it came from the logical shape."""

    name: str
    shape: tuple[Expr, ...]
    dtype: DType
    scope: Scope = Scope.MEMORY
    layout: tuple[LayoutStep, ...] = ()
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __getitem__(self, indices: object) -> Load:
        parts = indices if isinstance(indices, tuple) else (indices,)
        return Load(self, tuple(as_index(i) for i in parts))


Lift = int | float | bool | Expr


def const(value: float, dtype: DType = index) -> Const:
    """A literal of a scalar dtype, with `value` brought to the Python type that fits it."""
    if dtype.is_float:
        return Const(float(value), dtype)
    return Const(bool(value), dtype) if dtype.is_bool else Const(int(value), dtype)


def as_expr(value: Lift, like: DType = index) -> Expr:
    """`value` itself if it is an expression, else a literal of dtype `like`."""
    if isinstance(value, Expr):
        return value
    literal = const(value, like.scalar)
    return literal if like.lanes == 1 else Broadcast(literal, like.lanes)


def as_index(value: Lift) -> Expr:
    """An index expression from a number or an expression."""
    return value if isinstance(value, Expr) else Const(int(value), index)


def int_value(value: Expr) -> int | None:
    """The number if `value` is an integer literal, else None."""
    if type(value) is Const and type(value.value) is int:
        return value.value
    return None


_FOLD: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": lambda a, b: a // b if b else 0,
    "%": lambda a, b: a % b if b else 0,
    "min": min,
    "max": max,
}


def _binary(symbol: str, a: Expr, b: Expr) -> Expr:
    """The operation with this symbol, folded where the result is plain to see on indices."""
    if a.dtype is index or a.dtype == index:
        x, y = int_value(a), int_value(b)
        if x is not None and y is not None and symbol in _FOLD:
            return Const(_FOLD[symbol](x, y), index)
        match symbol:
            case "+" if x == 0:
                return b
            case "+" | "-" if y == 0:
                return a
            case "*" if x == 1 or y == 0:
                return b
            case "*" if y == 1 or x == 0:
                return a
            case "//" if y == 1:
                return a
            case "%" if y == 1:
                return Const(0, index)
    return OPERATIONS[symbol](a, b)


def minimum(a: Lift, b: Lift) -> Expr:
    """The lesser of two values; one of them must be an expression."""
    return _lifted("min", a, b)


def maximum(a: Lift, b: Lift) -> Expr:
    """The greater of two values; one of them must be an expression."""
    return _lifted("max", a, b)


def _lifted(symbol: str, a: Lift, b: Lift) -> Expr:
    like = a.dtype if isinstance(a, Expr) else b.dtype if isinstance(b, Expr) else index
    return _binary(symbol, as_expr(a, like), as_expr(b, like))
