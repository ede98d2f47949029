"""Inverse hyperbolic functions, as logarithms of 1 + y where y is accurate however small."""

from __future__ import annotations

import math

from tilewright.intrin.functions.floats import Steps, call, is_double, select
from tilewright.intrin.functions.logarithm import log_of_sum
from tilewright.intrin.functions.registry import function
from tilewright.tensor import ir as tir


def _log_or_doubled(keep: Steps, a: tir.Expr, y: tir.Expr) -> tir.Expr:
    """ln(1 + y), or ln(2a) where a is so large that its square may be infinite."""
    large = keep("l", a > (2.0**80 if is_double(a) else 2.0**40))
    argument = keep("y", tir.Select(large, a, y))
    return log_of_sum(keep, argument, select(large, 1.0, tir.as_expr(0.0, a.dtype)))


@function("asinh", 3)
def asinh(x: tir.Expr) -> tir.Expr:
    """ln(1 + y) with y = a + a²/(1 + √(1 + a²)), a = |x|."""
    keep = Steps()
    a = keep("a", call("abs", x))
    z = keep("z", a * a)
    value = _log_or_doubled(keep, a, a + z / (call("sqrt", z + 1.0) + 1.0))
    return keep.result(call("copysign", value, x))


@function("acosh", 3)
def acosh(x: tir.Expr) -> tir.Expr:
    """ln(1 + y) with y = t + √(t·(t + 2)), t = x - 1."""
    keep = Steps()
    t = keep("t", x - 1.0)
    value = _log_or_doubled(keep, x, t + call("sqrt", t * (t + 2.0)))
    return keep.result(tir.Select(x >= 1.0, value, tir.as_expr(math.nan, x.dtype)))


@function("atanh", 3)
def atanh(x: tir.Expr) -> tir.Expr:
    """½·ln(1 + y) with y = 2a/(1 - a), a = |x|."""
    keep = Steps()
    a = keep("a", call("abs", x))
    value = log_of_sum(keep, keep("y", (a + a) / (1.0 - a))) * 0.5
    outside = select(a.eq(1.0), math.inf, tir.as_expr(math.nan, x.dtype))
    return keep.result(call("copysign", tir.Select(a < 1.0, value, outside), x))
