"""Floats as integers: the same for vectors and single elements, also of what does not fit.

LLVM's conversions are poison there, and what processors make of it differs between the widths of
vectors. `tensor/to_integer.py` says what is meant: one conversion to a signed integer of 32 or 64
bits, which is one instruction of x86-64 with exactly this result; other machines saturate, and get
two more instructions.
"""

from __future__ import annotations

from tilewright.dtypes import DType, f64, i32, i64
from tilewright.llvm.spelling import element_type, integer, literal, value_type
from tilewright.llvm.writer import Value, Writer

__all__ = ["to_integer"]


def to_integer(w: Writer, value: Value, source: DType, to: DType, *, gives_least: bool) -> Value:
    """A value of `f32` or `f64` as an integer; `gives_least`: the machine does so by itself."""
    whole = (i64 if to.bits == 64 else i32).vector(source.lanes)
    if to.is_signed or to.bits < whole.bits:
        found = _signed(w, value, source, whole, gives_least=gives_least)
        return found if to.bits == whole.bits else w.convert("trunc", found, element_type(to))
    half = _constant(2.0 ** (whole.bits - 1), source)
    is_upper = w.compare("fcmp oge", value, half)
    rest = w.select(is_upper, w.binary("fsub", value, half), value)
    found = _signed(w, rest, source, whole, gives_least=gives_least)
    kind = value_type(whole)
    sign, zero = (Value(integer(n, kind), kind) for n in (-1 << (whole.bits - 1), 0))
    return w.binary("xor", found, w.select(is_upper, sign, zero))


def _signed(w: Writer, value: Value, source: DType, to: DType, *, gives_least: bool) -> Value:
    poison = w.convert("fptosi", value, element_type(to))
    found = w.pure(poison.type, f"freeze {poison.typed}", poison)
    if gives_least:
        return found
    end = 2.0 ** (to.bits - 1)
    # Of doubles, what is cut off does not matter: -2147483648.5 is the least number, too.
    low = -end - (1.0 if source.scalar == f64 and to.bits == 32 else 0.0)
    above = w.compare("fcmp oge" if low == -end else "fcmp ogt", value, _constant(low, source))
    fits = w.binary("and", above, w.compare("fcmp olt", value, _constant(end, source)))
    least = Value(integer(-1 << (to.bits - 1), poison.type), poison.type)
    return w.select(fits, found, least)


def _constant(number: float, dtype: DType) -> Value:
    return Value(literal(number, dtype), value_type(dtype))
