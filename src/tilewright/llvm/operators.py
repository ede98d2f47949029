"""Arithmetic as LLVM instructions: tables from node class to opcode, and the few that need care.

Every operation on floats is that of IEEE 754, rounded once. Only where the caller allows for it may
LLVM fuse a product with the sum that it is added to (`contract`): in sums, whose order is open
anyway, and inside of functions and transforms, which have error bounds of their own. NaN,
infinities and the order of operations are always kept. `min` and `max` propagate NaN; which zero
they give for `max(-0.0, 0.0)` is left open (`nsz`), as it is in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tilewright.dtypes import DType
from tilewright.llvm.spelling import integer, suffix, value_type, vector
from tilewright.llvm.writer import Value, Writer
from tilewright.tensor import ir as tir

__all__ = ["apply_binary", "apply_call", "apply_compare", "fold_lanes"]

Kinds = dict[type[tir.Binary], str]

FLOAT_BINARY: Final[Kinds] = {
    tir.Add: "fadd",
    tir.Sub: "fsub",
    tir.Mul: "fmul",
    tir.Div: "fdiv",
}
CONTRACTED: Final[Kinds] = {
    tir.Add: "fadd contract",
    tir.Sub: "fsub contract",
    tir.Mul: "fmul contract",
}
"""LLVM fuses a product and a sum if both carry the flag."""

INT_BINARY: Final[Kinds] = {
    tir.Add: "add",
    tir.Sub: "sub",
    tir.Mul: "mul",
    tir.BitAnd: "and",
    tir.BitOr: "or",
    tir.BitXor: "xor",
}
# NumPy's arithmetic on bools: addition is `or`, multiplication is `and`.
BOOL_BINARY: Final[Kinds] = {
    tir.Add: "or",
    tir.Sub: "xor",
    tir.Mul: "and",
    tir.Min: "and",
    tir.Max: "or",
    tir.BitAnd: "and",
    tir.BitOr: "or",
    tir.BitXor: "xor",
}

FLOAT_COMPARE: Final[Kinds] = {
    tir.Eq: "fcmp oeq",
    tir.Ne: "fcmp une",
    tir.Lt: "fcmp olt",
    tir.Le: "fcmp ole",
}
SIGNED_COMPARE: Final[Kinds] = {
    tir.Eq: "icmp eq",
    tir.Ne: "icmp ne",
    tir.Lt: "icmp slt",
    tir.Le: "icmp sle",
}
UNSIGNED_COMPARE: Final[Kinds] = {**SIGNED_COMPARE, tir.Lt: "icmp ult", tir.Le: "icmp ule"}

CALLS: Final = {
    "fma": "llvm.fma",
    "sqrt": "llvm.sqrt",
    "floor": "llvm.floor",
    "ceil": "llvm.ceil",
    "trunc": "llvm.trunc",
    "round": "llvm.roundeven",
    "abs": "llvm.fabs",
    "copysign": "llvm.copysign",
}


def apply_compare(w: Writer, kind: type[tir.Binary], dtype: DType, a: Value, b: Value) -> Value:
    """A comparison of two values of `dtype`."""
    ordered = SIGNED_COMPARE if dtype.is_signed else UNSIGNED_COMPARE
    return w.compare((FLOAT_COMPARE if dtype.is_float else ordered)[kind], a, b)


def apply_binary(
    w: Writer, kind: type[tir.Binary], dtype: DType, a: Value, b: Value, *, contract: bool = False
) -> Value:
    """An operation on two values of `dtype` that gives the same dtype.

    With `contract`, floats are fused with other operations for which the same holds.
    """
    table = FLOAT_BINARY if dtype.is_float else BOOL_BINARY if dtype.is_bool else INT_BINARY
    opcode = (CONTRACTED.get(kind) if contract and dtype.is_float else None) or table.get(kind)
    return w.binary(opcode, a, b) if opcode else SPECIAL[kind](w, dtype, a, b)


def _min(w: Writer, dtype: DType, a: Value, b: Value) -> Value:
    return _extreme(w, "min", dtype, a, b)


def _max(w: Writer, dtype: DType, a: Value, b: Value) -> Value:
    return _extreme(w, "max", dtype, a, b)


def _extreme(w: Writer, word: str, dtype: DType, a: Value, b: Value) -> Value:
    if dtype.is_float:
        return w.call(f"llvm.{word}imum.{suffix(dtype)}", a.type, a, b, flags="nsz")
    sign = "s" if dtype.is_signed else "u"
    return w.call(f"llvm.{sign}{word}.{suffix(dtype)}", a.type, a, b)


def _shift_left(w: Writer, dtype: DType, a: Value, b: Value) -> Value:
    return w.binary("shl", a, _within(w, dtype, b))


def _shift_right(w: Writer, dtype: DType, a: Value, b: Value) -> Value:
    return w.binary("ashr" if dtype.is_signed else "lshr", a, _within(w, dtype, b))


def _within(w: Writer, dtype: DType, amount: Value) -> Value:
    """Shifting too far is poison in LLVM; masking gives it some meaning at next to no cost."""
    return amount if amount.text[0] != "%" else w.binary("and", amount, dtype.bits - 1)


def _floor_div(w: Writer, dtype: DType, a: Value, b: Value) -> Value:
    divisor = _constant_of(b)
    if divisor is not None:
        return _floor_div_constant(w, dtype, a, divisor)
    is_zero = w.compare("icmp eq", b, 0)
    zero, one = _number(0, a), _number(1, a)
    if not dtype.is_signed:
        return w.select(is_zero, zero, w.binary("udiv", a, w.select(is_zero, one, b)))
    # Dividing the least integer by -1 overflows in hardware; here it wraps.
    is_minus = w.compare("icmp eq", b, -1)
    safe = w.select(w.binary("or", is_zero, is_minus), one, b)
    rounded_down = _adjusted(w, a, safe)
    result = w.select(is_minus, w.binary("sub", zero, a), rounded_down)
    return w.select(is_zero, zero, result)


def _adjusted(w: Writer, a: Value, b: Value) -> Value:
    """Truncated division, less one where the remainder's sign differs from the divisor's."""
    quotient, remainder = w.binary("sdiv", a, b), w.binary("srem", a, b)
    differ = w.compare("icmp slt", w.binary("xor", remainder, b), 0)
    inexact = w.compare("icmp ne", remainder, 0)
    down = w.binary("and", differ, inexact)
    return w.binary("add", quotient, w.convert("sext", down, _element(a)))


def _floor_div_constant(w: Writer, dtype: DType, a: Value, divisor: int) -> Value:
    if divisor == 0:
        return _number(0, a)
    if divisor > 0 and divisor & (divisor - 1) == 0:
        amount = divisor.bit_length() - 1
        return w.binary("ashr" if dtype.is_signed else "lshr", a, amount) if amount else a
    if not dtype.is_signed:
        return w.binary("udiv", a, divisor)
    return (
        w.binary("sub", _number(0, a), a) if divisor == -1 else _adjusted(w, a, _number(divisor, a))
    )


def _floor_mod(w: Writer, dtype: DType, a: Value, b: Value) -> Value:
    divisor = _constant_of(b)
    if divisor in (0, -1, 1):
        return _number(0, a)
    if divisor is not None and divisor > 0 and divisor & (divisor - 1) == 0:
        return w.binary("and", a, divisor - 1)
    if not dtype.is_signed:
        return _unsigned_mod(w, a, b, known=divisor is not None)
    if divisor is None:
        is_trivial = w.compare("icmp ult", w.binary("add", b, 1), 2)  # 0 or -1: the rest is zero
        b = w.select(is_trivial, _number(1, a), b)
    remainder = w.binary("srem", a, b)
    differ = w.compare("icmp slt", w.binary("xor", remainder, b), 0)
    raised = w.select(differ, w.binary("add", remainder, b), remainder)
    # A remainder of zero has no sign to disagree, but `0 ^ b` has that of b.
    return w.select(w.compare("icmp eq", remainder, 0), _number(0, a), raised)


def _unsigned_mod(w: Writer, a: Value, b: Value, *, known: bool) -> Value:
    if known:
        return w.binary("urem", a, b)
    is_zero = w.compare("icmp eq", b, 0)
    safe = w.select(is_zero, _number(1, a), b)
    return w.binary("urem", a, safe)


def _constant_of(value: Value) -> int | None:
    """The number that an integer constant stands for, in every lane."""
    text = value.text
    if text.startswith("splat"):
        text = text[:-1].rpartition(" ")[2]
    return None if text[0] in "%<" else int(text)


def _number(number: int, like: Value) -> Value:
    return Value(integer(number, like.type), like.type)


def _element(value: Value) -> str:
    kind = value.type
    return kind[1:-1].partition(" x ")[2] if kind[0] == "<" else kind


SPECIAL: Final[dict[type[tir.Binary], Callable[[Writer, DType, Value, Value], Value]]] = {
    tir.FloorDiv: _floor_div,
    tir.FloorMod: _floor_mod,
    tir.Min: _min,
    tir.Max: _max,
    tir.ShiftLeft: _shift_left,
    tir.ShiftRight: _shift_right,
}


def apply_call(w: Writer, name: str, dtype: DType, args: list[Value], *, has_fma: bool) -> Value:
    """A function that processors have; floats are `f32` or `f64`, `abs` also takes integers."""
    kind = value_type(dtype)
    if name == "abs" and not dtype.is_float:
        if not dtype.is_signed:
            return args[0]
        wraps = Value("false", "i1")
        return w.call(f"llvm.abs.{suffix(dtype)}", kind, args[0], wraps)
    if name == "fma" and not has_fma:
        # The library function would be exact, and some fifty times slower.
        return w.binary("fadd", w.binary("fmul", args[0], args[1]), args[2])
    return w.call(f"{CALLS[name]}.{suffix(dtype)}", kind, *args)


def fold_lanes(w: Writer, fold: tir.Fold, dtype: DType, value: Value) -> Value:
    """All lanes of a vector of `dtype` as one scalar."""
    scalar = value_type(dtype.scalar)
    if dtype.is_float and fold in (tir.Fold.MIN, tir.Fold.MAX):
        return _fold_by_halves(w, fold, dtype, value)
    if dtype.is_float:
        # The order of a fold is unspecified: `reassoc` lets it be a tree.
        start = Value("0x8000000000000000" if fold is tir.Fold.ADD else "1.0", scalar)
        intrinsic = f"llvm.vector.reduce.f{fold.value}.{suffix(dtype)}"
        return w.call(intrinsic, scalar, start, value, flags="reassoc")
    word = fold.value
    if dtype.is_bool:
        word = "or" if fold in (tir.Fold.ADD, tir.Fold.MAX) else "and"
    elif fold in (tir.Fold.MIN, tir.Fold.MAX):
        word = ("s" if dtype.is_signed else "u") + word
    return w.call(f"llvm.vector.reduce.{word}.{suffix(dtype)}", scalar, value)


def _fold_by_halves(w: Writer, fold: tir.Fold, dtype: DType, value: Value) -> Value:
    """LLVM folds a NaN-propagating extreme lane by lane; halving keeps it short."""
    combine = _min if fold is tir.Fold.MIN else _max
    lanes = dtype.lanes
    if lanes % 2:
        intrinsic = f"llvm.vector.reduce.f{fold.value}imum.{suffix(dtype)}"
        return w.call(intrinsic, value_type(dtype.scalar), value, flags="nsz")
    half = lanes // 2
    low, high = (take_lanes(w, value, range(at, at + half), lanes) for at in (0, half))
    folded = combine(w, dtype.vector(half), low, high)
    return folded if half == 1 else _fold_by_halves(w, fold, dtype.vector(half), folded)


def take_lanes(w: Writer, value: Value, which: range, lanes: int) -> Value:
    """Some lanes of a vector that has `lanes` of them; a scalar if it is one."""
    element = _element(value)
    if len(which) == 1:
        return w.pure(element, f"extractelement {value.typed}, i64 {which[0]}", value)
    mask = ", ".join(f"i32 {lane}" for lane in which)
    poison = f"{vector(element, lanes)} poison"
    text = f"shufflevector {value.typed}, {poison}, <{len(which)} x i32> <{mask}>"
    return w.pure(vector(element, len(which)), text, value)
