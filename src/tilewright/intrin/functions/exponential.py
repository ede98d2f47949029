"""Powers of e and of two, and the logistic function: 2ⁿ·e^r with a polynomial for small r."""

from __future__ import annotations

import math

from tilewright.intrin import coefficients as co
from tilewright.intrin.functions.floats import (
    Steps,
    bits,
    call,
    format_of,
    is_double,
    let,
    polynomial,
    power_of_two,
    scale_by_power,
    select,
)
from tilewright.intrin.functions.registry import function
from tilewright.tensor import ir as tir

__all__ = ["exp", "power_parts"]


@function("exp", 2)
def exp(x: tir.Expr) -> tir.Expr:
    """2ⁿ·e^r with n = round(x / ln 2); the power is applied in two halves to reach denormals."""
    form = format_of(x)
    clamped = tir.maximum(tir.minimum(x, form.exp_high), form.exp_low)

    def scaled(shifted: tir.Expr, c: tir.Expr) -> tir.Expr:
        whole = shifted - form.magic
        rest = (c - whole * form.ln2_high) - whole * form.ln2_low
        # The low bits hold n; the bits of the magic number above them leave in the shifts.
        n = bits(shifted)
        power = co.EXP_F64 if is_double(x) else co.EXP_F32
        value = let("r", rest, lambda r: let("q", r * r, lambda q: q * polynomial(power, r) + r))
        return let("n", n, lambda m: scale_by_power(value + 1.0, m, form))

    return let(
        "c",
        clamped,
        lambda c: let("s", c * (1 / math.log(2)) + form.magic, lambda s: scaled(s, c)),
    )


@function("exp_bounded", 3, "x ≤ 88 (709 in double); results below 2⁻¹²⁶ (2⁻¹⁰²²) may be zero")
def exp_bounded(x: tir.Expr) -> tir.Expr:
    """e^x where it cannot overflow, as in a softmax: a third cheaper than `exp`."""
    form = format_of(x)
    # At this bound the power of two becomes zero, and so does everything below.
    clamped = tir.maximum(x, -form.bias * math.log(2))
    table = co.EXP_WHOLE_F64 if is_double(x) else co.EXP_WHOLE_F32

    def scaled(shifted: tir.Expr, c: tir.Expr) -> tir.Expr:
        whole = shifted - form.magic
        rest = (c - whole * form.ln2_high) - whole * form.ln2_low
        return let("r", rest, lambda r: polynomial(table, r)) * power_of_two(bits(shifted), form, x)

    return let(
        "c",
        clamped,
        lambda c: let("s", c * (1 / math.log(2)) + form.magic, lambda s: scaled(s, c)),
    )


@function("sigmoid", 4, "all values; results below 2⁻¹²⁶ (2⁻¹⁰²²) may be zero")
def sigmoid(x: tir.Expr) -> tir.Expr:
    """1/(1 + e) with e = e^-x, which may become infinite where the result is nearly zero."""
    form = format_of(x)
    # At this bound the power of two is infinite, and the result zero.
    bounded = tir.minimum(-x, (form.bias + 1) * math.log(2) + 0.25)
    return 1.0 / (let("m", bounded, exp_bounded) + 1.0)


def power_parts(
    keep: Steps, x: tir.Expr, more: tir.Expr | None = None
) -> tuple[tir.Expr, tir.Expr]:
    """The integer n, modulo a power of two, and e^r - 1 with 2ⁿ·e^r = e^(x + more).

    `more` is small beside `x` and makes up for what `x` was rounded by.
    """
    form = format_of(x)
    total = x if more is None else x + more
    shifted = keep("s", total * (1 / math.log(2)) + form.magic)
    whole = keep("w", shifted - form.magic)
    rest = (x - whole * form.ln2_high) - whole * form.ln2_low
    r = keep("r", rest if more is None else rest + more)
    table = co.EXP_F64 if is_double(x) else co.EXP_F32
    return bits(shifted), r * r * polynomial(table, r) + r


@function("exp2", 2)
def exp2(x: tir.Expr) -> tir.Expr:
    """2ⁿ·2^r; nothing is lost on the way to r."""
    form, keep = format_of(x), Steps()
    # Half of the least number rounds to zero, twice the greatest power is infinite.
    bounded = tir.maximum(tir.minimum(x, form.bias + 1.0), -form.bias - form.mantissa - 1.0)
    c = keep("c", bounded)
    shifted = keep("s", c + form.magic)
    r = keep("r", c - (shifted - form.magic))
    value = r * polynomial(co.EXP2_F64 if is_double(x) else co.EXP2_F32, r) + 1.0
    return keep.result(scale_by_power(keep("v", value), keep("n", bits(shifted)), form))


@function("expm1", 3)
def expm1(x: tir.Expr) -> tir.Expr:
    """2·(s·(e^r - 1) + (s - ½)) with s = 2ⁿ⁻¹, which no n makes infinite."""
    form, keep = format_of(x), Steps()
    # e^-40 is nothing beside one.
    c = keep("c", tir.maximum(tir.minimum(x, form.exp_high), -40.0))
    n, rest = power_parts(keep, c)
    scale = keep("p", power_of_two(n - 1, form, x))
    value = (scale * rest + (scale - 0.5)) * 2.0
    return keep.result(select(call("abs", x) < form.negligible, x, value))
