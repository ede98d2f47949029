"""The error function and what is made of it."""

from __future__ import annotations

import math

from tilewright.intrin import coefficients as co
from tilewright.intrin.functions.exponential import exp, power_parts
from tilewright.intrin.functions.floats import (
    Steps,
    call,
    format_of,
    is_double,
    let,
    polynomial,
    scale_by_power,
    upper,
)
from tilewright.intrin.functions.registry import function
from tilewright.tensor import ir as tir


@function("erf", 4)
def erf(x: tir.Expr) -> tir.Expr:
    """An odd polynomial up to one; beyond, one minus a tail that needs few bits."""

    def of_size(a: tir.Expr) -> tir.Expr:
        near = let("z", x * x, lambda z: x * polynomial(near_table, z))
        far = 1.0 - (_erfc_tail_f64(a) if is_double(x) else _erfc_tail_f32(a))
        return tir.Select(a < 1.0, near, call("copysign", far, x))

    near_table = co.ERF_F64 if is_double(x) else co.ERF_F32
    return let("a", call("abs", x), of_size)


def _erfc_tail_f32(a: tir.Expr) -> tir.Expr:
    """p(a)⁻⁸; from 3.95 on erf is one."""
    root = polynomial(co.ERF_ROOT_F32, tir.minimum(a, 3.95))

    def square(v: tir.Expr) -> tir.Expr:
        return v * v

    return 1.0 / let("p", root, lambda p: let("p2", p * p, lambda s: let("p4", s * s, square)))


def _erfc_tail_f64(a: tir.Expr) -> tir.Expr:
    """t·q(t)·e^(-a²) with t = 2/(2 + a); from 6 on erf is one."""

    def tail(c: tir.Expr) -> tir.Expr:
        t = 2.0 / (c + 2.0)
        return let("t", t, lambda t: t * polynomial(co.ERFC_F64, t)) * let("m", -(c * c), exp)

    return let("c", tir.minimum(a, 6.0), tail)


@function("gelu", 8, "relative to |x|·(1 + |erf(x/√2)|)")
def gelu(x: tir.Expr) -> tir.Expr:
    """½x(1 + erf(x/√2))."""
    half = x * 0.5
    return let("h", half, lambda h: h * let("u", x * math.sqrt(0.5), erf) + h)


@function("erfc", 4)
def erfc(x: tir.Expr) -> tir.Expr:
    """One minus an odd polynomial near zero; from a = |x| = 0.8 t·q(t)·e^(-a²), t = 2/(2 + a)."""
    keep, double = Steps(), is_double(x)
    near = 1.0 - x * polynomial(co.ERF_F64 if double else co.ERF_F32, keep("z", x * x))
    a = keep("a", call("abs", x))
    # From this bound on the result is zero.
    c = keep("c", tir.minimum(a, 27.3 if double else 10.2))
    # An error in the square becomes one in all digits of the power: it is computed in two parts.
    h = keep("h", upper(c))
    n, rest = power_parts(keep, keep("m", -(h * h)), keep("d", (h - c) * (h + c)))
    sum_ = keep("g", c + 2.0)
    inverse = keep("i", 1.0 / sum_)
    lost = (c - (sum_ - 2.0)) * inverse
    half_t = keep("k", inverse - lost * inverse)
    t = keep("t", half_t + half_t)
    # Around t = ½ Horner's scheme keeps most digits; a large t is known less well than 1 - c/2.
    u = keep("u", tir.Select(c < 4.0, (1.0 - c * 0.5) * half_t, t - 0.5))
    table = co.ERFC_SCALED_F64 if double else co.ERFC_SCALED_F32
    w = keep("w", t * polynomial(table, u))
    far = keep("f", scale_by_power(keep("v", w * rest + w), keep("n", n), format_of(x)))
    return keep.result(tir.Select(a < 0.8, near, tir.Select(x < 0.0, 2.0 - far, far)))
