"""Angles in quarter turns: a = n·π/2 + r, with a remainder that is accurate however small it is.

Angles of ordinary size are divided with π/2 in a few parts. Larger ones are multiplied by as many
bits of 2/π as matter for them: of the product, whole turns are dropped part by part, while all
products and sums are exact.
"""

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
    upper,
)
from tilewright.tensor import ir as tir

__all__ = ["LIMIT", "any_quadrant", "quadrant"]

LIMIT: Final = 2.0**27
"""Quarter turns up to here have 27 bits, which the parts of π are cut for."""

WIDTH: Final = 26
"""Bits of a part of 2/π: its products with 27 bits are exact in f64."""

PARTS_F32: Final = 8
"""78 bits of a quarter turn, for angles below 2¹²⁸. Of those, 30 may be needed to see that an angle
is not a whole number of quarter turns."""

PARTS_F64: Final = 9
"""128 bits, for angles that have been divided until they are below 2¹⁰⁴; 62 may be needed."""

WINDOW: Final = 52
"""Angles whose exponents are within so many of each other use the same parts."""


def quadrant(keep: Steps, a: tir.Expr) -> tuple[tir.Expr, tir.Expr]:
    """The remainder r and the number n, for 0 ≤ a ≤ `LIMIT`."""
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


def any_quadrant(keep: Steps, a: tir.Expr) -> tuple[tir.Expr, tir.Expr]:
    """The remainder r and the number n, for every a ≥ 0; r is NaN for infinite ones."""
    w = keep("w", tir.Cast(f64.vector(a.dtype.lanes), a))
    if is_double(a):
        w, parts = _scaled(keep, w)
        high = keep("h", upper(w))
        factors = [high, keep("l", w - high)]
    else:
        factors, parts = [w], [_as(part, w) for part in _turn_parts(0, PARTS_F32)]
    turn, rest, count = _as(0.0, w), _as(0.0, w), _as(0.0, w)
    for part in parts:
        for factor in factors:
            product = keep("p", factor * part)
            whole = keep("t", call("round", product))
            turn, error = _sum(keep, turn, keep("q", product - whole))
            carry = keep("t", call("round", turn))
            turn = keep("r", turn - carry)
            rest = keep("e", rest + error)
            count = keep("n", count + (whole - call("round", whole * 0.25) * 4.0) + carry)
    first, second, third, _ = co.HALF_PI_F64
    cut = keep("u", upper(turn))
    r = cut * first + (cut * (second + third) + ((turn - cut) + rest) * (math.pi / 2))
    finite = tir.Select(count.eq(count), count, _as(0.0, w))
    n = keep("n", tir.Cast(bits_type(a), tir.Cast(i64.vector(a.dtype.lanes), finite)))
    return keep("r", tir.Cast(a.dtype, r)), n


def _as(value: float, like: tir.Expr) -> tir.Expr:
    return tir.as_expr(value, like.dtype)


def _sum(keep: Steps, a: tir.Expr, b: tir.Expr) -> tuple[tir.Expr, tir.Expr]:
    """The sum, rounded, and what it was rounded by."""
    total = keep("s", a + b)
    other = keep("o", total - a)
    return total, (a - (total - other)) + (b - other)


def _scaled(keep: Steps, a: tir.Expr) -> tuple[tir.Expr, list[tir.Expr]]:
    """An angle divided by a power of two, and the parts of as many quarter turns, for f64.

    A quotient that is a whole number, of any size, times four quarter turns counts as none.
    """
    scale, parts = _as(1.0, a), [_as(part, a) for part in _turn_parts(0, PARTS_F64)]
    shift = WINDOW
    while 52 + shift < 1024:
        beyond = keep("b", a >= _as(2.0 ** (52 + shift), a))
        scale = tir.Select(beyond, _as(2.0**-shift, a), scale)
        new = [_as(part, a) for part in _turn_parts(shift, PARTS_F64)]
        parts = [tir.Select(beyond, *pair) for pair in zip(new, parts, strict=True)]
        shift += WINDOW
    return keep("w", a * scale), [keep("c", part) for part in parts]


def _turn_parts(shift: int, number: int) -> list[float]:
    """2^shift·2/π without the multiples of four, in parts of few bits, largest first."""
    length = co.TURN_BITS.bit_length()  # 2/π lies between a half and one
    parts, below = [], length - shift + 2  # the place of the first bit that counts
    for _ in range(number):
        below -= WIDTH
        taken = co.TURN_BITS >> below if below >= 0 else co.TURN_BITS << -below
        parts.append(math.ldexp(taken & ((1 << WIDTH) - 1), below - length + shift))
    return parts
