"""Angles: arcsine and arccosine with a square root beyond one half, arctangent with a quotient."""

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


def _arc(keep: Steps, a: tir.Expr) -> tuple[tir.Expr, tir.Expr]:
    """Whether a > ½, and asin(√((1 - a)/2)) there, asin(a) elsewhere; for a ≥ 0, NaN from a > 1."""
    far = keep("b", a > 0.5)
    z = keep("z", tir.Select(far, (1.0 - a) * 0.5, a * a))
    y = keep("y", tir.Select(far, call("sqrt", z), a))
    tail = polynomial(co.ASIN_F64 if is_double(a) else co.ASIN_F32, z)
    return far, keep("p", y * z * tail + y)


@function("asin", 3)
def asin(x: tir.Expr) -> tir.Expr:
    """An odd polynomial up to one half; beyond, π/2 - 2·asin(√((1 - |x|)/2))."""
    form, keep = format_of(x), Steps()
    far, p = _arc(keep, keep("a", call("abs", x)))
    size = tir.Select(far, form.half_pi - (p + p - form.half_pi_rest), p)
    return keep.result(call("copysign", size, x))


@function("acos", 2)
def acos(x: tir.Expr) -> tir.Expr:
    """π/2 - asin(x); beyond one half 2·asin(√((1 - |x|)/2)) or π minus that."""
    form, keep = format_of(x), Steps()
    far, p = _arc(keep, keep("a", call("abs", x)))
    side = select(x < 0.0, 2.0, tir.as_expr(0.0, x.dtype))
    turns = keep("k", tir.Select(far, side, tir.as_expr(1.0, x.dtype)))  # quarter turns: exact
    signed = keep("s", call("copysign", p, x))
    angle = tir.Select(far, signed + signed, -signed)
    return keep.result(turns * form.half_pi + (angle + turns * form.half_pi_rest))


def _angle(keep: Steps, low: tir.Expr, high: tir.Expr, steep: tir.Expr) -> tir.Expr:
    """atan(low/high) for 0 ≤ low ≤ high, or π/2 less that where `steep`."""
    form = format_of(low)
    t = keep("t", low / high)
    z = keep("z", t * t)
    p = keep("p", t * z * polynomial(co.ATAN_F64 if is_double(t) else co.ATAN_F32, z) + t)
    return tir.Select(steep, form.half_pi - (p - form.half_pi_rest), p)


@function("atan", 2)
def atan(x: tir.Expr) -> tir.Expr:
    """An odd polynomial up to one; beyond, π/2 less the angle of 1/|x|."""
    keep = Steps()
    a = keep("a", call("abs", x))
    angle = _angle(keep, tir.minimum(a, 1.0), tir.maximum(a, 1.0), a > 1.0)
    return keep.result(call("copysign", angle, x))


@function("atan2", 2)
def atan2(y: tir.Expr, x: tir.Expr) -> tir.Expr:
    """The angle of the point (x, y), by octant."""
    form, keep = format_of(x), Steps()
    a, b = keep("a", call("abs", y)), keep("b", call("abs", x))
    low, high = keep("l", tir.minimum(a, b)), keep("g", tir.maximum(a, b))
    # 0/0 counts as 0, ∞/∞ as 1.
    dividend = select(low.eq(math.inf), 1.0, low)
    divisor = select(low.eq(math.inf), 1.0, select(high.eq(0.0), 1.0, high))
    angle = keep("r", _angle(keep, dividend, divisor, b < a))
    left = 2.0 * form.half_pi - (angle - 2.0 * form.half_pi_rest)
    return keep.result(call("copysign", tir.Select(bits(x) < 0, left, angle), y))
