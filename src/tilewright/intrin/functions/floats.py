"""What expansions are written with: names for values, polynomials, and the bits of floats.

An expansion works on `f32` and on `f64`, on scalars and on vectors; everything here takes its
format and its lanes from the expression that it is given. Multiplications and additions may be
fused or not, as the target likes: where an error term is computed, the product is exact by itself
because `upper` has cut its factors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tilewright.dtypes import DType, f64, i32, i64
from tilewright.tensor import ir as tir

__all__ = [
    "DOUBLE",
    "SINGLE",
    "Format",
    "Steps",
    "bits",
    "bits_type",
    "call",
    "format_of",
    "is_double",
    "let",
    "number",
    "polynomial",
    "power_of_two",
    "scale_by_power",
    "select",
    "sign_bit",
    "upper",
    "with_sign",
]


class Steps:
    """Straight-line code: values that are used several times, named in the order of computation.

    After `keep = Steps()` and `z = keep("z", x * x)`, `keep.result(z * z + z)` squares `x` once.
    """

    def __init__(self) -> None:
        self._lets: list[tuple[tir.Var, tir.Expr]] = []

    def __call__(self, name: str, value: tir.Expr) -> tir.Expr:
        """A variable for `value`, or `value` itself where that costs nothing."""
        if _is_free(value):
            return value
        var = tir.Var(name, value.dtype)
        self._lets.append((var, value))
        return var

    def result(self, value: tir.Expr) -> tir.Expr:
        """`value`, with everything that was kept computed before."""
        for var, kept in reversed(self._lets):
            value = tir.Let(var, kept, value)
        return value


def let(name: str, value: tir.Expr, body: Callable[[tir.Expr], tir.Expr]) -> tir.Expr:
    """`body` of a value that is used several times and computed once."""
    keep = Steps()
    return keep.result(body(keep(name, value)))


def _is_free(value: tir.Expr) -> bool:
    return isinstance(value, tir.Const | tir.Var) or number(value) is not None


def number(value: tir.Expr) -> float | None:
    """The number that a literal stands for, in every lane."""
    literal = value.value if isinstance(value, tir.Broadcast) else value
    return literal.value if isinstance(literal, tir.Const) else None


def polynomial(coefficients: Sequence[float], x: tir.Expr) -> tir.Expr:
    """Horner's scheme; every step is one FMA where the target has it."""
    result = tir.as_expr(coefficients[-1], x.dtype)
    for c in reversed(coefficients[:-1]):
        result = result * x + c
    return result


def call(name: str, *args: tir.Expr) -> tir.Expr:
    """A function that has an instruction, or another expansion."""
    return tir.Call(name, args, args[0].dtype)


def select(cond: tir.Expr, if_true: tir.Lift, if_false: tir.Expr) -> tir.Expr:
    """`if_true`, a number or an expression, where `cond`, else `if_false`."""
    return tir.Select(cond, tir.as_expr(if_true, if_false.dtype), if_false)


def is_double(x: tir.Expr) -> bool:
    """Is it `f64`, with any number of lanes?"""
    return x.dtype.scalar == f64


@dataclass(frozen=True)
class Format:
    """The numbers of a binary float format."""

    mantissa: int
    bias: int
    magic: float  # adding it rounds to a whole number and leaves that number in the low bits
    ln2_high: float  # few bits: exact times any exponent
    ln2_low: float
    exp_low: float  # below, e^x is zero …
    exp_high: float  # … and from here on it is infinite
    root_half: int  # the bits of √½
    upper_bits: int  # of the mantissa: what `upper` keeps; squares of such numbers are exact
    half_pi: float
    half_pi_rest: float

    @property
    def least(self) -> float:
        """The least normal number."""
        return 2.0 ** (1 - self.bias)

    @property
    def negligible(self) -> float:
        """Added to one, or squared beside itself, such a number leaves no trace."""
        return 2.0 ** -(self.mantissa + 2)


SINGLE: Final = Format(
    mantissa=23,
    bias=127,
    magic=1.5 * 2**23,
    ln2_high=0.693359375,
    ln2_low=-2.12194440054690583e-4,
    exp_low=-104.0,
    exp_high=89.0,
    root_half=0x3F3504F3,
    upper_bits=11,
    half_pi=1.57079637050628662109375,
    half_pi_rest=-4.37113900018624283e-8,
)
DOUBLE: Final = Format(
    mantissa=52,
    bias=1023,
    magic=1.5 * 2**52,
    ln2_high=6.93147180369123816490e-01,
    ln2_low=1.90821492927058770002e-10,
    exp_low=-746.0,
    exp_high=710.0,
    root_half=0x3FE6A09E667F3BCD,
    upper_bits=25,
    half_pi=math.pi / 2,
    half_pi_rest=6.12323399573676603587e-17,
)


def format_of(x: tir.Expr) -> Format:
    """The format of `f32` or `f64`."""
    return DOUBLE if is_double(x) else SINGLE


def bits_type(x: tir.Expr) -> DType:
    """The signed integer of the same width and lanes."""
    return (i64 if is_double(x) else i32).vector(x.dtype.lanes)


def bits(x: tir.Expr) -> tir.Expr:
    """The bits of a float as a signed integer; negative floats are negative integers."""
    return tir.Reinterpret(bits_type(x), x)


def sign_bit(x: tir.Expr) -> int:
    """The integer whose only bit is the sign of a float like `x`."""
    return -(2**63) if is_double(x) else -(2**31)


def with_sign(size: tir.Expr, sign: tir.Expr) -> tir.Expr:
    """`size`, negated where the integer `sign` is negative."""
    flip = sign & sign_bit(size)
    return tir.Reinterpret(size.dtype, bits(size) ^ flip)


def upper(x: tir.Expr) -> tir.Expr:
    """`x` cut to its leading bits: the product of two such numbers is exact."""
    form = format_of(x)
    dropped = form.mantissa - form.upper_bits
    return tir.Reinterpret(x.dtype, bits(x) & -(1 << dropped))


def power_of_two(n: tir.Expr, form: Format, like: tir.Expr) -> tir.Expr:
    """2ⁿ for an exponent within the format; bits of `n` above the exponent's do not matter."""
    one = form.bias << form.mantissa
    return tir.Reinterpret(like.dtype, (n << form.mantissa) + one)


def scale_by_power(value: tir.Expr, n: tir.Expr, form: Format) -> tir.Expr:
    """value·2ⁿ for n modulo a power of two, right also where 2ⁿ itself is not a normal number."""

    def both(half: tir.Expr) -> tir.Expr:
        return value * power_of_two(half, form, value) * power_of_two(n - half, form, value)

    return let("h", n >> 1, both)
