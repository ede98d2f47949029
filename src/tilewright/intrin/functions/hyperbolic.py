"""Hyperbolic functions, from powers of e."""

from __future__ import annotations

from tilewright.intrin import coefficients as co
from tilewright.intrin.functions.exponential import exp, power_parts
from tilewright.intrin.functions.floats import (
    Steps,
    call,
    format_of,
    is_double,
    let,
    polynomial,
    power_of_two,
)
from tilewright.intrin.functions.registry import function
from tilewright.tensor import ir as tir


@function("tanh", 4)
def tanh(x: tir.Expr) -> tir.Expr:
    """An odd polynomial near zero, 1 - 2/(e^2|x| + 1) elsewhere."""

    def of_size(a: tir.Expr) -> tir.Expr:
        far = 1.0 - 2.0 / (let("d", a + a, exp) + 1.0)
        tail = co.TANH_F64 if is_double(x) else co.TANH_F32
        near = let("z", a * a, lambda z: a * z * polynomial(tail, z) + a)
        return call("copysign", tir.Select(a < 0.625, near, far), x)

    return let("a", call("abs", x), of_size)


def _half_power(keep: Steps, a: tir.Expr) -> tir.Expr:
    """½·e^a for a ≥ 0; infinite only where it really is."""
    form = format_of(a)
    c = keep("c", tir.minimum(a, 710.5 if is_double(a) else 89.42))
    n, rest = power_parts(keep, c)
    return keep("u", (rest + 1.0) * power_of_two(n - 2, form, a) * 2.0)


@function("sinh", 2)
def sinh(x: tir.Expr) -> tir.Expr:
    """An odd polynomial up to one, ½e^|x| - ½e^-|x| beyond."""
    keep = Steps()
    a = keep("a", call("abs", x))
    u = _half_power(keep, a)
    z = keep("z", a * a)
    near = a * z * polynomial(co.SINH_F64 if is_double(x) else co.SINH_F32, z) + a
    return keep.result(call("copysign", tir.Select(a < 1.0, near, u - 0.25 / u), x))


@function("cosh", 2)
def cosh(x: tir.Expr) -> tir.Expr:
    """½e^|x| + ½e^-|x|."""
    keep = Steps()
    u = _half_power(keep, call("abs", x))
    return keep.result(u + 0.25 / u)
