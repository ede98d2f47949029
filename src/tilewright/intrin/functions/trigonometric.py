"""Sine, cosine and tangent, by quarter turns."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.intrin import coefficients as co
from tilewright.intrin.functions.floats import (
    Steps,
    bits,
    call,
    is_double,
    polynomial,
    with_sign,
)
from tilewright.intrin.functions.quadrants import LIMIT, any_quadrant, quadrant
from tilewright.intrin.functions.registry import function
from tilewright.tensor import ir as tir


def _waves(keep: Steps, r: tir.Expr) -> tuple[tir.Expr, tir.Expr]:
    """The sine and cosine of |r| ≤ π/4."""
    z = keep("z", r * r)
    sine = r * z * polynomial(co.SIN_F64 if is_double(r) else co.SIN_F32, z) + r
    cosine = z * z * polynomial(co.COS_F64 if is_double(r) else co.COS_F32, z) - z * 0.5 + 1.0
    return sine, cosine


def _any_size(x: tir.Expr, of: Callable[[Steps, tir.Expr, tir.Expr], tir.Expr]) -> tir.Expr:
    """A function of the remainder and the quarter turn of |x|, be it large or not."""
    a = Steps()
    size = a("a", call("abs", x))
    usual, seldom = Steps(), Steps()
    common = usual.result(of(usual, *quadrant(usual, size)))
    large = seldom.result(of(seldom, *any_quadrant(seldom, size)))
    return a.result(tir.Select(call("unlikely", size > LIMIT), large, common))


def _is_odd(n: tir.Expr) -> tir.Expr:
    return n << (n.dtype.bits - 1) < 0


@function("sin", 2)
def sin(x: tir.Expr) -> tir.Expr:
    """±sin r or ±cos r."""

    def of(keep: Steps, r: tir.Expr, n: tir.Expr) -> tir.Expr:
        sine, cosine = _waves(keep, r)
        sign = (n << (n.dtype.bits - 2)) ^ bits(x)
        return with_sign(tir.Select(_is_odd(n), cosine, sine), sign)

    return _any_size(x, of)


@function("cos", 2)
def cos(x: tir.Expr) -> tir.Expr:
    """±cos r or ±sin r."""

    def of(keep: Steps, r: tir.Expr, n: tir.Expr) -> tir.Expr:
        sine, cosine = _waves(keep, r)
        sign = (n + 1) << (n.dtype.bits - 2)
        return with_sign(tir.Select(_is_odd(n), sine, cosine), sign)

    return _any_size(x, of)


@function("tan", 4)
def tan(x: tir.Expr) -> tir.Expr:
    """The quotient sin r / cos r, or -cos r / sin r."""

    def of(keep: Steps, r: tir.Expr, n: tir.Expr) -> tir.Expr:
        sine, cosine = (keep(*wave) for wave in zip("uv", _waves(keep, r), strict=True))
        odd = keep("o", _is_odd(n))
        size = tir.Select(odd, cosine, sine) / tir.Select(odd, sine, cosine)
        return with_sign(size, (n << (n.dtype.bits - 1)) ^ bits(x))

    return _any_size(x, of)
