"""Floats of at most eight bits to `f32` and back, by integer arithmetic on their bits.

What the bits mean is a `FloatFormat`; both directions are the same few instructions for all formats
and every lane, without tables or branches. Results are those of ml_dtypes: to nearest even, and
beyond the greatest value infinity, else NaN, else the greatest value.
"""

from __future__ import annotations

from tilewright.dtypes import DType, FloatFormat, f32
from tilewright.llvm.spelling import integer, literal
from tilewright.llvm.writer import Value, Writer

__all__ = ["narrow", "widen"]

INFINITY = 0x7F800000
NAN = 0x7FC00000
MANTISSA = 23
BIAS = 127
LEAST = 1 << (MANTISSA - 1)
"""The bits of 2**-127, the least scale; as `f32` it is subnormal."""


def widen(w: Writer, value: Value, source: DType) -> Value:
    """The number that a code stands for, as `f32`; exact."""
    form = _format(source)
    code = w.convert("zext", value, "i32")
    bits = _scale(w, code, form) if form.sign == 0 else _number(w, code, form)
    return w.convert("bitcast", bits, "float")


def narrow(w: Writer, value: Value, to: DType) -> Value:
    """The code of an `f32`."""
    form = _format(to)
    bits = w.convert("bitcast", value, "i32")
    code = _scale_code(w, bits, form) if form.sign == 0 else _code(w, bits, form)
    return w.convert("trunc", code, "i8")


def _format(dtype: DType) -> FloatFormat:
    assert dtype.format is not None
    return dtype.format


def _number(w: Writer, code: Value, form: FloatFormat) -> Value:
    size = w.binary("and", code, form.sign - 1)
    shifted = w.binary("shl", size, MANTISSA - form.mantissa)
    number = w.binary("add", shifted, (BIAS - form.bias) << MANTISSA)
    # A subnormal number is read with a leading one, which is then taken away: no step of this is
    # subnormal as `f32`, which processors are slow with.
    one = (BIAS + 1 - form.bias) << MANTISSA
    leading = w.convert("bitcast", w.binary("add", shifted, one), "float")
    lifted = w.binary("fsub", leading, _float(2.0 ** (1 - form.bias), leading))
    is_small = w.compare("icmp ult", size, 1 << form.mantissa)
    number = w.select(is_small, w.convert("bitcast", lifted, "i32"), number)
    if form.infinity is not None:
        is_special = w.compare("icmp ugt", size, form.greatest)
        number = w.select(is_special, w.binary("or", shifted, INFINITY), number)
    elif form.nan is not None:
        same = size if form.has_negative_zero else code
        number = _where(w, w.compare("icmp eq", same, form.nan), NAN, number)
    sign = w.binary("shl", w.binary("and", code, form.sign), 32 - form.sign.bit_length())
    return w.binary("or", number, sign)


def _code(w: Writer, bits: Value, form: FloatFormat) -> Value:
    size = w.binary("and", bits, 0x7FFFFFFF)
    cut = MANTISSA - form.mantissa
    odd = w.binary("and", w.binary("lshr", size, cut), 1)
    half = (1 << (cut - 1)) - 1 - ((BIAS - form.bias) << MANTISSA)
    code = w.binary("lshr", w.binary("add", w.binary("add", size, half), odd), cut)
    # Below the least normal number, adding one whose last digit is that of subnormal numbers
    # leaves the rounded code in the last bits of the sum.
    exponent = 1 + cut - form.bias
    plain = w.convert("bitcast", size, "float")
    total = w.binary("fadd", plain, _float(2.0**exponent, plain))
    subnormal = w.binary("sub", w.convert("bitcast", total, "i32"), (exponent + BIAS) << MANTISSA)
    is_small = w.compare("icmp ult", size, (BIAS + 1 - form.bias) << MANTISSA)
    code = w.select(is_small, subnormal, code)
    is_beyond = w.compare("icmp ugt", code, form.greatest)
    sign = w.binary("and", w.binary("lshr", bits, 32 - form.sign.bit_length()), form.sign)
    is_nan = w.compare("icmp ugt", size, INFINITY)
    if form.nan is None:
        finite = w.binary("or", _where(w, is_beyond, form.greatest, code), sign)
        return w.select(is_nan, w.binary("xor", sign, form.sign), finite)
    if not form.has_negative_zero:
        is_zero = w.compare("icmp eq", code, 0)
        signed = _where(w, is_zero, 0, w.binary("or", code, sign))
        return _where(w, is_beyond, form.nan, signed)
    if form.infinity is not None:
        code = _where(w, is_beyond, form.infinity, code)
        return w.binary("or", _where(w, is_nan, form.nan, code), sign)
    return w.binary("or", _where(w, is_beyond, form.nan, code), sign)


def _scale(w: Writer, code: Value, form: FloatFormat) -> Value:
    """A power of two by its exponent alone."""
    number = _where(w, w.compare("icmp eq", code, 0), LEAST, w.binary("shl", code, MANTISSA))
    return _where(w, w.compare("icmp ugt", code, form.greatest), NAN, number)


def _scale_code(w: Writer, bits: Value, form: FloatFormat) -> Value:
    """The nearest power of two; zero and negative numbers have none."""
    half = w.binary("and", w.binary("lshr", bits, MANTISSA - 1), 1)
    code = w.binary("add", w.binary("lshr", bits, MANTISSA), half)
    code = _where(w, w.compare("icmp ult", bits, LEAST + 1), 0, code)
    assert form.nan is not None
    is_beyond = w.compare("icmp ugt", code, form.greatest)
    is_zero = w.compare("icmp eq", bits, 0)
    return _where(w, is_zero, form.nan, _where(w, is_beyond, form.nan, code))


def _where(w: Writer, condition: Value, number: int, otherwise: Value) -> Value:
    return w.select(condition, Value(integer(number, otherwise.type), otherwise.type), otherwise)


def _float(value: float, like: Value) -> Value:
    """A number in every lane of a value like this one."""
    lanes = int(like.type[1:].partition(" ")[0]) if like.type[0] == "<" else 1
    return Value(literal(value, f32.vector(lanes)), like.type)
