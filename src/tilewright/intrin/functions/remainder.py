"""The rest of a division, exact as in C: long division, some bits of the quotient at a time.

The divisor is scaled by powers of two, from the greatest that a quotient may have down to one. The
product of a digit and the divisor is exact, with and without FMA: single precision computes in
double precision, double precision cuts the divisor into two parts. Then the difference is exact as
well; it is below zero where the quotient was rounded up to the next whole number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from tilewright.dtypes import f64
from tilewright.intrin.functions.floats import Steps, call, is_double, select, upper
from tilewright.intrin.functions.registry import function
from tilewright.tensor import ir as tir

GREATEST: Final = 1023
"""The exponent of the greatest power of two that double precision has."""


@dataclass(frozen=True)
class Digits:
    """How many `bits` of a quotient a step may have, and how many any quotient has."""

    bits: int
    all_bits: int

    @property
    def scales(self) -> range:
        """The exponents of the powers of two that the divisor is multiplied with."""
        return range((self.all_bits - 1) // self.bits * self.bits, -1, -self.bits)


SINGLE: Final = Digits(28, 128 + 149)
DOUBLE: Final = Digits(25, 1024 + 1074)


@function("fmod", 0.5)
def fmod(x: tir.Expr, y: tir.Expr) -> tir.Expr:
    """What is left of |x|, with the sign of x; NaN of an infinite x, or of a y that is zero."""
    keep = Steps()
    double = is_double(x)
    wide = f64.vector(x.dtype.lanes)
    whole = keep("a", call("abs", x if double else tir.Cast(wide, x)))
    size = keep("y", call("abs", y if double else tir.Cast(wide, y)))
    parts = [size]
    if double:
        high = keep("h", upper(size))
        parts = [high, keep("l", size - high)]
    rest = whole
    for exponent in (DOUBLE if double else SINGLE).scales:
        rest = _without_multiples(keep, rest, size, parts, exponent)
    rest = rest + (whole - whole)  # NaN of an infinite dividend
    return keep.result(call("copysign", rest if double else tir.Cast(x.dtype, rest), x))


def _without_multiples(
    keep: Steps, rest: tir.Expr, size: tir.Expr, parts: list[tir.Expr], exponent: int
) -> tir.Expr:
    """The rest of a division by 2ⁿ·size; where that is infinite, nothing is taken away.

    Only the rest has a name: names are nested, and there are many steps. What occurs twice in a
    step is computed once all the same.
    """
    divisor = _scaled(size, exponent)
    digit = call("trunc", rest / divisor)
    left = rest
    for part in parts:
        left = left - digit * _scaled(part, exponent)
    mended = select(left < 0.0, left + divisor, left)
    return keep("r", select(divisor.eq(math.inf), rest, mended))


def _scaled(value: tir.Expr, exponent: int) -> tir.Expr:
    while exponent:
        power = min(exponent, GREATEST)
        value, exponent = value * 2.0**power, exponent - power
    return value
