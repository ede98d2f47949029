"""Powers with any exponent, and the reciprocal root.

x^y is 2^(y·log₂|x|), with the sign and the special cases selected at the end. An error in the
logarithm is multiplied by up to 1075·ln 2: single precision computes in double precision, double
precision carries the logarithm as a sum of two numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from tilewright.dtypes import f64
from tilewright.intrin import coefficients as co
from tilewright.intrin.functions.floats import (
    DOUBLE,
    Steps,
    bits,
    call,
    format_of,
    is_double,
    number,
    polynomial,
    power_of_two,
    scale_by_power,
    select,
    upper,
)
from tilewright.intrin.functions.registry import function
from tilewright.tensor import ir as tir


@function("rsqrt", 2)
def rsqrt(x: tir.Expr) -> tir.Expr:
    """1/√x by the exact instructions."""
    return 1.0 / call("sqrt", x)


@function("pow", 2)
def pow(x: tir.Expr, y: tir.Expr) -> tir.Expr:  # noqa: A001 (named as it is called)
    """2^(y·log₂|x|), negative for negative x and odd y."""
    exponent = number(y)
    if exponent is not None and exponent in _FIXED:
        return _FIXED[exponent](x)
    keep = Steps()
    a = keep("a", call("abs", x))
    # Such an exponent gives 0, 1 or infinity as an infinite one does, without 0·∞ on the way.
    bounded = keep("b", tir.maximum(tir.minimum(y, 2.0**70), -(2.0**70)))
    size = _size_f64(keep, a, bounded) if is_double(x) else _size_f32(keep, a, bounded)
    value = _or_limit(a, y, size) * _sign(keep, x, a, bounded)
    known = select(x.ne(x), math.nan, select(y.ne(y), math.nan, value))
    return keep.result(select(y.eq(0.0), 1.0, select(x.eq(1.0), 1.0, known)))


# Conditions are not combined: a select more is cheaper than packing and unpacking lanes of bools.


def _or_limit(a: tir.Expr, y: tir.Expr, size: tir.Expr) -> tir.Expr:
    """`size` where a is a positive number; 0 and infinity become themselves or each other."""
    form = format_of(a)
    infinity = (2 * form.bias + 1) << form.mantissa
    limit = tir.Select(y < 0.0, tir.Reinterpret(a.dtype, infinity - bits(a)), a)
    return tir.Select(a > 0.0, tir.Select(a < math.inf, size, limit), limit)


def _sign(keep: Steps, x: tir.Expr, a: tir.Expr, y: tir.Expr) -> tir.Expr:
    """1, or for negative x: -1 if y is odd, 1 if it is even, else NaN (1 if x is 0 or infinite)."""
    one = tir.as_expr(1.0, x.dtype)
    size = keep("l", call("abs", y))  # of a negative y the rest modulo 2 would not be exact
    rest = keep("m", size - call("floor", size * 0.5) * 2.0)
    otherwise = tir.Select(a > 0.0, select(a < math.inf, math.nan, one), one)
    negative = select(rest.eq(1.0), -1.0, select(rest.eq(0.0), 1.0, otherwise))
    return tir.Select(bits(x) < 0, negative, one)


def _size_f32(keep: Steps, a: tir.Expr, y: tir.Expr) -> tir.Expr:
    """a^y in double precision; the conversion back rounds, also to denormals and infinity."""
    wide = f64.vector(a.dtype.lanes)
    form = DOUBLE
    offset = keep("o", bits(tir.Cast(wide, a)) - form.root_half)
    mantissa = (offset & ((1 << form.mantissa) - 1)) + form.root_half
    f = keep("f", tir.Reinterpret(wide, mantissa) - 1.0)
    log = tir.Cast(wide, offset >> form.mantissa) + f * polynomial(co.POW_LOG2_F32, f)
    p = keep("p", tir.maximum(tir.minimum(tir.Cast(wide, y) * log, 200.0), -200.0))
    shifted = keep("s", p + form.magic)
    r = keep("r", p - (shifted - form.magic))
    power = r * polynomial(co.EXP2_F32, r) + 1.0
    return tir.Cast(a.dtype, power * power_of_two(bits(shifted), form, r))


def _size_f64(keep: Steps, a: tir.Expr, y: tir.Expr) -> tir.Expr:
    """a^y by way of log₂ a as a sum; the terms of the exponent are exact or negligible."""
    form = DOUBLE
    high, low = _log2_sum(keep, a)
    lead = keep("u", upper(high))
    rest = (high - lead) + low
    y_lead = keep("m", upper(y))
    p = keep("p", tir.maximum(tir.minimum(y_lead * lead, 1100.0), -1100.0))
    more = tir.maximum(tir.minimum((y - y_lead) * lead + y * rest, 1.0), -1.0)
    shifted = keep("s", p + form.magic)
    r = keep("r", (p - (shifted - form.magic)) + more)
    power = keep("e", r * polynomial(co.EXP2_F64, r) + 1.0)
    return scale_by_power(power, keep("n", bits(shifted)), form)


def _log2_sum(keep: Steps, a: tir.Expr) -> tuple[tir.Expr, tir.Expr]:
    """log₂ a in two parts with some 66 bits.

    With a = 2^e·(1 + f) and s = f/(2 + f) it is e + 2/ln 2·s·(1 + z/3 + z²·q(z)), z = s² ≤ 0.03.
    """
    form = DOUBLE
    small = keep("j", a < form.least)
    scaled = tir.Select(small, a * 2.0**form.mantissa, a)
    shift = select(small, float(form.mantissa), tir.as_expr(0.0, a.dtype))
    offset = keep("o", bits(scaled) - form.root_half)
    mantissa = (offset & ((1 << form.mantissa) - 1)) + form.root_half
    e = keep("e", tir.Cast(a.dtype, offset >> form.mantissa) - shift)
    f = keep("f", tir.Reinterpret(a.dtype, mantissa) - 1.0)
    # s, from a quotient with 26 bits and the exact remainder.
    sum_ = keep("g", f + 2.0)
    inverse = keep("i", 1.0 / sum_)
    s = keep("s", upper(f * inverse))
    divisor = keep("d", upper(sum_))
    divisor_rest = (sum_ - divisor) + (f - (sum_ - 2.0))
    s_rest = keep("k", ((f - s * divisor) - s * divisor_rest) * inverse)
    # w = z/3 + z²·q(z).
    square = keep("q", s * s)
    square_rest = keep("r", (s + s + s_rest) * s_rest)
    z = keep("z", square + square_rest)
    z_lead = keep("y", upper(square))
    z_rest = (square - z_lead) + square_rest
    third, third_rest = co.THIRD_F64
    w = keep("w", z_lead * third)
    tail = z_rest * third + z * third_rest + z * z * polynomial(co.POW_ATANH_F64, z)
    w_tail = keep("t", tail)
    w_lead = keep("v", upper(w + w_tail))
    w_rest = keep("h", (w - w_lead) + w_tail)
    # c = 2/ln 2·s, and the sum e + c + c·w.
    factor, factor_rest = co.TWO_OVER_LN2_F64
    c = keep("c", s * factor)
    c_rest = keep("b", s_rest * factor + (s + s_rest) * factor_rest)
    c_lead = keep("l", upper(c))
    product = keep("p", c_lead * w_lead)
    product_rest = ((c - c_lead) + c_rest) * w_lead + (c + c_rest) * w_rest
    first = keep("m", e + c)
    total = keep("n", first + product)
    lost = (c - (first - e)) + (product - (total - first))
    return total, keep("r", lost + (c_rest + product_rest))


def _square(x: tir.Expr) -> tir.Expr:
    return x * x


def _fourth(x: tir.Expr) -> tir.Expr:
    keep = Steps()
    return keep.result(_square(keep("q", x * x)))


def _root(x: tir.Expr) -> tir.Expr:
    # Unlike a root, the power of -0 is 0 and that of -∞ is ∞.
    return select(x.eq(-math.inf), math.inf, call("sqrt", x + 0.0))


_FIXED: Final[dict[float, Callable[[tir.Expr], tir.Expr]]] = {
    0.5: _root,
    1.0: lambda x: x,
    2.0: _square,
    3.0: lambda x: x * x * x,
    4.0: _fourth,
    -0.5: lambda x: 1.0 / _root(x),
    -1.0: lambda x: 1.0 / x,
}
"""Exponents that programs often have as literals."""
