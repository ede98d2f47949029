"""Logarithms: the exponent, and a polynomial for a mantissa in [√½, √2)."""

from __future__ import annotations

import math

from tilewright.intrin import coefficients as co
from tilewright.intrin.functions.floats import (
    Steps,
    bits,
    call,
    format_of,
    is_double,
    polynomial,
    select,
)
from tilewright.intrin.functions.registry import function
from tilewright.tensor import ir as tir

__all__ = ["log_of_sum"]


def _parts(keep: Steps, x: tir.Expr) -> tuple[tir.Expr, tir.Expr]:
    """The parts e and f of x = 2^e·(1 + f), for positive finite x."""
    form = format_of(x)
    small = x < form.least
    scaled = keep("g", select(small, x * 2.0**form.mantissa, x))
    shift = select(small, float(form.mantissa), tir.as_expr(0.0, x.dtype))
    offset = keep("o", bits(scaled) - form.root_half)
    mantissa = (offset & ((1 << form.mantissa) - 1)) + form.root_half
    exponent = keep("e", tir.Cast(x.dtype, offset >> form.mantissa) - shift)
    return exponent, keep("f", tir.Reinterpret(x.dtype, mantissa) - 1.0)


def _bend(keep: Steps, f: tir.Expr) -> tir.Expr:
    """ln(1 + f) - f."""
    q = keep("q", f * f)
    return q * f * polynomial(co.LOG_F64 if is_double(f) else co.LOG_F32, f) - q * 0.5


def _special(x: tir.Expr, value: tir.Expr) -> tir.Expr:
    infinite = select(x.eq(math.inf), math.inf, value)
    return select(x.eq(0.0), -math.inf, select(~(x >= 0.0), math.nan, infinite))


@function("log", 2)
def log(x: tir.Expr) -> tir.Expr:
    """The sum of e·ln 2 and the logarithm of 1 + f."""
    form, keep = format_of(x), Steps()
    e, f = _parts(keep, x)
    value = e * form.ln2_high + (f + (_bend(keep, f) + e * form.ln2_low))
    return keep.result(_special(x, value))


@function("log2", 3)
def log2(x: tir.Expr) -> tir.Expr:
    """The sum of e and log₂(1 + f); whole for powers of two."""
    keep = Steps()
    e, f = _parts(keep, x)
    high, low = co.LOG2_E_F64 if is_double(x) else co.LOG2_E_F32
    value = e + (f * high + (f * low + _bend(keep, f) * high))
    return keep.result(_special(x, value))


@function("log10", 3)
def log10(x: tir.Expr) -> tir.Expr:
    """The sum of e·log₁₀2 and log₁₀(1 + f)."""
    keep = Steps()
    e, f = _parts(keep, x)
    high, low = co.LOG10_E_F64 if is_double(x) else co.LOG10_E_F32
    two_high, two_low = co.LOG10_2_F64 if is_double(x) else co.LOG10_2_F32
    rest = f * low + (_bend(keep, f) * high + e * two_low)
    return keep.result(_special(x, e * two_high + (f * high + rest)))


def log_of_sum(keep: Steps, x: tir.Expr, doublings: tir.Expr | None = None) -> tir.Expr:
    """ln(1 + x), or ln(2^doublings·(1 + x)), for -1 < x; infinity and NaN stay what they are."""
    form = format_of(x)
    offset = keep("o", bits(x + 1.0) - form.root_half)
    # 2²⁻ᵉ is a normal number for every e; x/4 is inexact only where x itself is the result.
    exponent_bits = offset & -(1 << form.mantissa)
    scale = keep("p", tir.Reinterpret(x.dtype, ((form.bias + 2) << form.mantissa) - exponent_bits))
    f = keep("f", x * 0.25 * scale + (scale * 0.25 - 1.0))
    exponent = tir.Cast(x.dtype, offset >> form.mantissa)
    e = keep("e", exponent if doublings is None else exponent + doublings)
    value = e * form.ln2_high + (f + (_bend(keep, f) + e * form.ln2_low))
    finite = tir.Select(x < math.inf, value, x)
    return tir.Select(call("abs", x) < form.negligible, x, finite)


@function("log1p", 2)
def log1p(x: tir.Expr) -> tir.Expr:
    """With 1 + x = 2^e·(1 + f), f = x·2^-e + (2^-e - 1) has one rounding only."""
    keep = Steps()
    outside = select(x.eq(-1.0), -math.inf, tir.as_expr(math.nan, x.dtype))
    return keep.result(tir.Select(x > -1.0, log_of_sum(keep, x), outside))
