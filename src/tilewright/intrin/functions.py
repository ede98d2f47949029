"""Math functions as tensor IR: each call expands into arithmetic that vectorises like any other.

`EXPANSIONS[name](args)` gives an expression of the same dtype, scalar or vector. `FUNCTIONS` says
what a function means (NumPy in double precision) and what error is declared for it. Range reduction
splits constants so that products with small integers are exact, which holds with and without FMA;
there is no branch: special values fall out of the arithmetic or are selected at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.dtypes import DType, f64, i32, i64
from tilewright.intrin import coefficients as co
from tilewright.tensor import ir as tir

__all__ = ["EXPANSIONS", "FUNCTIONS", "NATIVE", "MathFunction"]

NATIVE = ("fma", "sqrt", "floor", "ceil", "trunc", "round", "abs", "copysign")
"""Functions with an instruction of their own on every target; they are not expanded."""


@dataclass(frozen=True)
class MathFunction:
    """Declared properties: the error bound in ulp of the result, and where it holds."""

    name: str
    ulp: float
    domain: str = "all values"


FUNCTIONS: dict[str, MathFunction] = {}
EXPANSIONS: dict[str, Callable[[tuple[tir.Expr, ...]], tir.Expr]] = {}

Unary = Callable[[tir.Expr], tir.Expr]


def _function(name: str, ulp: float, domain: str = "all values") -> Callable[[Unary], Unary]:
    """Register the expansion of a function of one argument, which is evaluated once."""

    def register(expand: Unary) -> Unary:
        FUNCTIONS[name] = MathFunction(name, ulp, domain)
        EXPANSIONS[name] = lambda args: let("x", args[0], expand)
        return expand

    return register


def let(name: str, value: tir.Expr, body: Unary) -> tir.Expr:
    """`body` of a value that is used several times and computed once."""
    if isinstance(value, tir.Const | tir.Var):
        return body(value)
    var = tir.Var(name, value.dtype)
    return tir.Let(var, value, body(var))


def _polynomial(coefficients: Sequence[float], x: tir.Expr) -> tir.Expr:
    """Horner's scheme; every step is one FMA where the target has it."""
    result = tir.as_expr(coefficients[-1], x.dtype)
    for c in reversed(coefficients[:-1]):
        result = result * x + c
    return result


def _call(name: str, *args: tir.Expr) -> tir.Expr:
    return tir.Call(name, args, args[0].dtype)


def _select(cond: tir.Expr, if_true: tir.Lift, if_false: tir.Expr) -> tir.Expr:
    return tir.Select(cond, tir.as_expr(if_true, if_false.dtype), if_false)


def _is_double(x: tir.Expr) -> bool:
    return x.dtype.scalar == f64


def _bits_type(x: tir.Expr) -> DType:
    """The signed integer of the same width and lanes."""
    return (i64 if _is_double(x) else i32).vector(x.dtype.lanes)


@dataclass(frozen=True)
class _Format:
    """The numbers of a binary float format."""

    mantissa: int
    bias: int
    magic: float  # adding it rounds to a whole number and leaves that number in the low bits
    ln2_high: float  # few bits: exact times any exponent
    ln2_low: float
    exp_low: float
    exp_high: float


_SINGLE = _Format(23, 127, 1.5 * 2**23, 0.693359375, -2.12194440054690583e-4, -104.0, 89.0)
_DOUBLE = _Format(
    52,
    1023,
    1.5 * 2**52,
    6.93147180369123816490e-01,
    1.90821492927058770002e-10,
    -746.0,
    710.0,
)


def _format(x: tir.Expr) -> _Format:
    return _DOUBLE if _is_double(x) else _SINGLE


@_function("exp", 2)
def exp(x: tir.Expr) -> tir.Expr:
    """2ⁿ·e^r with n = round(x / ln 2); the power is applied in two halves to reach denormals."""
    form = _format(x)
    clamped = tir.maximum(tir.minimum(x, form.exp_high), form.exp_low)

    def scaled(shifted: tir.Expr, c: tir.Expr) -> tir.Expr:
        whole = shifted - form.magic
        rest = (c - whole * form.ln2_high) - whole * form.ln2_low
        # The low bits hold n; the bits of the magic number above them leave in the shifts.
        n = tir.Reinterpret(_bits_type(x), shifted)
        power = co.EXP_F64 if _is_double(x) else co.EXP_F32
        value = let("r", rest, lambda r: let("q", r * r, lambda q: q * _polynomial(power, r) + r))
        return let("n", n, lambda m: _scale_by_power(value + 1.0, m, form))

    return let(
        "c",
        clamped,
        lambda c: let("s", c * (1 / math.log(2)) + form.magic, lambda s: scaled(s, c)),
    )


@_function("exp_bounded", 3, "x ≤ 88 (709 in double); results below 2⁻¹²⁶ (2⁻¹⁰²²) may be zero")
def exp_bounded(x: tir.Expr) -> tir.Expr:
    """e^x where it cannot overflow, as in a softmax: a third cheaper than `exp`."""
    form = _format(x)
    # At this bound the power of two becomes zero, and so does everything below.
    clamped = tir.maximum(x, -form.bias * math.log(2))
    table = co.EXP_WHOLE_F64 if _is_double(x) else co.EXP_WHOLE_F32

    def scaled(shifted: tir.Expr, c: tir.Expr) -> tir.Expr:
        whole = shifted - form.magic
        rest = (c - whole * form.ln2_high) - whole * form.ln2_low
        n = tir.Reinterpret(_bits_type(x), shifted)
        return let("r", rest, lambda r: _polynomial(table, r)) * _power_of_two(n, form, x)

    return let(
        "c",
        clamped,
        lambda c: let("s", c * (1 / math.log(2)) + form.magic, lambda s: scaled(s, c)),
    )


def _scale_by_power(value: tir.Expr, n: tir.Expr, form: _Format) -> tir.Expr:
    """value·2ⁿ for n modulo a power of two, right also where 2ⁿ itself is not a normal number."""

    def both(half: tir.Expr) -> tir.Expr:
        return value * _power_of_two(half, form, value) * _power_of_two(n - half, form, value)

    return let("h", n >> 1, both)


def _power_of_two(n: tir.Expr, form: _Format, like: tir.Expr) -> tir.Expr:
    one = form.bias << form.mantissa
    return tir.Reinterpret(like.dtype, (n << form.mantissa) + one)


@_function("log", 2)
def log(x: tir.Expr) -> tir.Expr:
    """The sum of e·ln 2 and the logarithm of 1 + f in [√½, √2)."""
    form, bits = _format(x), _bits_type(x)
    tiny = 2.0 ** (1 - form.bias)
    root = 0x3FE6A09E667F3BCD if _is_double(x) else 0x3F3504F3

    def reduced(scaled: tir.Expr, shift: tir.Expr) -> tir.Expr:
        offset = tir.Reinterpret(bits, scaled) - root
        return let("o", offset, lambda o: split(o, shift))

    def split(o: tir.Expr, shift: tir.Expr) -> tir.Expr:
        mantissa = (o & ((1 << form.mantissa) - 1)) + root
        exponent = tir.Cast(x.dtype, o >> form.mantissa) - shift
        f = tir.Reinterpret(x.dtype, mantissa) - 1.0
        return let("e", exponent, lambda e: let("f", f, lambda f: assemble(e, f)))

    def assemble(e: tir.Expr, f: tir.Expr) -> tir.Expr:
        tail = _polynomial(co.LOG_F64 if _is_double(x) else co.LOG_F32, f)

        def total(q: tir.Expr) -> tir.Expr:
            return e * form.ln2_high + (f + (q * f * tail - q * 0.5 + e * form.ln2_low))

        return special(let("q", f * f, total))

    def special(value: tir.Expr) -> tir.Expr:
        infinite = _select(x.eq(math.inf), math.inf, value)
        return _select(x.eq(0.0), -math.inf, _select(~(x >= 0.0), math.nan, infinite))

    small = x < tiny
    scale = 2.0**form.mantissa
    scaled = _select(small, x * scale, x)
    shift = _select(small, float(form.mantissa), tir.as_expr(0.0, x.dtype))
    return let("g", scaled, lambda g: reduced(g, shift))


@_function("tanh", 4)
def tanh(x: tir.Expr) -> tir.Expr:
    """An odd polynomial near zero, 1 - 2/(e^2|x| + 1) elsewhere."""

    def of_size(a: tir.Expr) -> tir.Expr:
        far = 1.0 - 2.0 / (let("d", a + a, exp) + 1.0)
        tail = co.TANH_F64 if _is_double(x) else co.TANH_F32
        near = let("z", x * x, lambda z: x * z * _polynomial(tail, z) + x)
        return tir.Select(a < 0.625, near, _call("copysign", far, x))

    return let("a", _call("abs", x), of_size)


@_function("erf", 4)
def erf(x: tir.Expr) -> tir.Expr:
    """An odd polynomial up to one; beyond, one minus a tail that needs few bits."""

    def of_size(a: tir.Expr) -> tir.Expr:
        near = let("z", x * x, lambda z: x * _polynomial(near_table, z))
        far = 1.0 - (_erfc_tail_f64(a) if _is_double(x) else _erfc_tail_f32(a))
        return tir.Select(a < 1.0, near, _call("copysign", far, x))

    near_table = co.ERF_F64 if _is_double(x) else co.ERF_F32
    return let("a", _call("abs", x), of_size)


def _erfc_tail_f32(a: tir.Expr) -> tir.Expr:
    """p(a)⁻⁸; from 3.95 on erf is one."""
    root = _polynomial(co.ERF_ROOT_F32, tir.minimum(a, 3.95))

    def square(v: tir.Expr) -> tir.Expr:
        return v * v

    return 1.0 / let("p", root, lambda p: let("p2", p * p, lambda s: let("p4", s * s, square)))


def _erfc_tail_f64(a: tir.Expr) -> tir.Expr:
    """t·q(t)·e^(-a²) with t = 2/(2 + a); from 6 on erf is one."""

    def tail(c: tir.Expr) -> tir.Expr:
        t = 2.0 / (c + 2.0)
        return let("t", t, lambda t: t * _polynomial(co.ERFC_F64, t)) * let("m", -(c * c), exp)

    return let("c", tir.minimum(a, 6.0), tail)


@_function("sigmoid", 4)
def sigmoid(x: tir.Expr) -> tir.Expr:
    """1/(1 + e) or e/(1 + e) with e = e^-|x|: no overflow, small results stay accurate."""

    def from_power(e: tir.Expr) -> tir.Expr:
        return tir.Select(x < 0.0, e, tir.as_expr(1.0, x.dtype)) / (e + 1.0)

    return let("e", let("m", -_call("abs", x), exp), from_power)


@_function("gelu", 8, "relative to |x|·(1 + |erf(x/√2)|)")
def gelu(x: tir.Expr) -> tir.Expr:
    """½x(1 + erf(x/√2))."""
    half = x * 0.5
    return let("h", half, lambda h: h * let("u", x * math.sqrt(0.5), erf) + h)


@_function("rsqrt", 2)
def rsqrt(x: tir.Expr) -> tir.Expr:
    """1/√x by the exact instructions."""
    return 1.0 / _call("sqrt", x)


def _quadrant(x: tir.Expr, finish: Callable[[tir.Expr, tir.Expr], tir.Expr]) -> tir.Expr:
    """`finish(r, n)` with x = n·π/2 + r; single precision reduces in double precision."""
    wide = tir.Cast(f64.vector(x.dtype.lanes), x) if not _is_double(x) else x

    def reduced(shifted: tir.Expr, w: tir.Expr) -> tir.Expr:
        whole = shifted - _DOUBLE.magic
        n = tir.Reinterpret(i64.vector(x.dtype.lanes), shifted)
        r = w
        for part in _HALF_PI_PARTS:
            r = r - whole * part
        return let("r", tir.Cast(x.dtype, r) if not _is_double(x) else r, lambda v: finish(v, n))

    def shifted(w: tir.Expr) -> tir.Expr:
        return let("s", w * (2 / math.pi) + _DOUBLE.magic, lambda s: reduced(s, w))

    return let("w", wide, shifted)


# π/2 in parts of 33 bits: a product with a whole number below 2²⁰ is exact.
_HALF_PI_PARTS = (
    1.57079632673412561417e00,
    6.07710050630396597660e-11,
    2.02226624871116645580e-21,
    8.47842766036889956997e-32,
)


def _wave(x: tir.Expr, quarter_turns: int) -> tir.Expr:
    """sin(x + quarter_turns·π/2)."""
    sin_table = co.SIN_F64 if _is_double(x) else co.SIN_F32
    cos_table = co.COS_F64 if _is_double(x) else co.COS_F32

    def finish(r: tir.Expr, n: tir.Expr) -> tir.Expr:
        def of_square(z: tir.Expr) -> tir.Expr:
            sine = r * z * _polynomial(sin_table, z) + r
            cosine = z * z * _polynomial(cos_table, z) - z * 0.5 + 1.0
            turns = n + quarter_turns
            value = tir.Select((turns & 1).eq(0), sine, cosine)
            return let("v", value, lambda v: tir.Select((turns & 2).eq(0), v, -v))

        return let("z", r * r, of_square)

    return _quadrant(x, finish)


@_function("sin", 2, "|x| ≤ 10⁶; absolute error below 2⁻²³ there")
def sin(x: tir.Expr) -> tir.Expr:
    """By quadrant."""
    return _wave(x, 0)


@_function("cos", 2, "|x| ≤ 10⁶; absolute error below 2⁻²³ there")
def cos(x: tir.Expr) -> tir.Expr:
    """By quadrant."""
    return _wave(x, 1)
