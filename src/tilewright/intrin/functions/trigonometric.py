"""Sine, cosine and tangent: by quadrant, with a remainder that is accurate however small it is."""

from __future__ import annotations

import math
from typing import Final

from tilewright.dtypes import f64, i64
from tilewright.intrin import coefficients as co
from tilewright.intrin.functions.floats import (
    DOUBLE,
    Steps,
    bits,
    bits_type,
    call,
    is_double,
    polynomial,
    with_sign,
)
from tilewright.intrin.functions.registry import function
from tilewright.tensor import ir as tir

LIMIT: Final = 2.0**27
"""Quarter turns up to here have 27 bits, which the parts of π are cut for."""

DOMAIN: Final = "|x| ≤ 2²⁷ (about 1.3·10⁸); NaN beyond"


def _quadrant(keep: Steps, a: tir.Expr) -> tuple[tir.Expr, tir.Expr]:
    """The remainder r and the integer n of a = n·π/2 + r, for 0 ≤ a ≤ `LIMIT`."""
    if is_double(a):
        return _quadrant_f64(keep, a)
    # In double precision, and in quarter turns: the products of 24 and 29 bits are exact.
    lanes = a.dtype.lanes
    w = keep("w", tir.Cast(f64.vector(lanes), a))
    shifted = keep("s", w * (2 / math.pi) + DOUBLE.magic)
    first, second, third = co.TURNS_F32
    turn = ((w * first - (shifted - DOUBLE.magic)) + w * second) + w * third
    n = tir.Cast(bits_type(a), tir.Reinterpret(i64.vector(lanes), shifted))
    return keep("r", tir.Cast(a.dtype, turn * (math.pi / 2))), keep("n", n)


def _quadrant_f64(keep: Steps, a: tir.Expr) -> tuple[tir.Expr, tir.Expr]:
    # π/2 comes in parts of 26 bits: their products with n are exact, and so are the first two
    # differences. What the third is rounded by is made up for with the last part.
    first, second, third, rest = co.HALF_PI_F64
    shifted = keep("s", a * (2 / math.pi) + DOUBLE.magic)
    whole = keep("w", shifted - DOUBLE.magic)
    near = keep("d", (a - whole * first) - whole * second)
    closer = keep("c", near - whole * third)
    r = closer + (((near - closer) - whole * third) - whole * rest)
    return keep("r", r), keep("n", bits(shifted))


def _waves(keep: Steps, r: tir.Expr) -> tuple[tir.Expr, tir.Expr]:
    """The sine and cosine of |r| ≤ π/4."""
    z = keep("z", r * r)
    sine = r * z * polynomial(co.SIN_F64 if is_double(r) else co.SIN_F32, z) + r
    cosine = z * z * polynomial(co.COS_F64 if is_double(r) else co.COS_F32, z) - z * 0.5 + 1.0
    return sine, cosine


def _size(keep: Steps, x: tir.Expr) -> tir.Expr:
    """|x|, or NaN where that is beyond the limit: it stays NaN in all that follows."""
    a = keep("a", call("abs", x))
    return keep("a", tir.Select(a <= LIMIT, a, tir.as_expr(math.nan, x.dtype)))


def _is_odd(n: tir.Expr) -> tir.Expr:
    return n << (n.dtype.bits - 1) < 0


@function("sin", 2, DOMAIN)
def sin(x: tir.Expr) -> tir.Expr:
    """±sin r or ±cos r."""
    keep = Steps()
    r, n = _quadrant(keep, _size(keep, x))
    sine, cosine = _waves(keep, r)
    sign = (n << (n.dtype.bits - 2)) ^ bits(x)
    return keep.result(with_sign(tir.Select(_is_odd(n), cosine, sine), sign))


@function("cos", 2, DOMAIN)
def cos(x: tir.Expr) -> tir.Expr:
    """±cos r or ±sin r."""
    keep = Steps()
    r, n = _quadrant(keep, _size(keep, x))
    sine, cosine = _waves(keep, r)
    sign = (n + 1) << (n.dtype.bits - 2)
    return keep.result(with_sign(tir.Select(_is_odd(n), sine, cosine), sign))


@function("tan", 4, DOMAIN)
def tan(x: tir.Expr) -> tir.Expr:
    """The quotient sin r / cos r, or -cos r / sin r."""
    keep = Steps()
    r, n = _quadrant(keep, _size(keep, x))
    sine, cosine = (keep(name, value) for name, value in zip("uv", _waves(keep, r), strict=True))
    odd = keep("o", _is_odd(n))
    size = tir.Select(odd, cosine, sine) / tir.Select(odd, sine, cosine)
    return keep.result(with_sign(size, (n << (n.dtype.bits - 1)) ^ bits(x)))
