"""Fit the polynomials of `tilewright/intrin/coefficients.py` (needs mpmath).

Each polynomial is the Remez-style minimax fit, in relative error, of a smooth function on an
interval; `python scripts/fit_math_coefficients.py` writes the tables with the error reached, and
constants that are split into parts of few bits.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import mpmath as mp

TARGET = Path(__file__).parents[1] / "src" / "tilewright" / "intrin" / "coefficients.py"

mp.mp.dps = 60

Function = Callable[[mp.mpf], mp.mpf]


def fit(f: Function, low: float, high: float, degree: int, weight: Function) -> list[mp.mpf]:
    """Coefficients c0…cn with nearly equal ripples of `weight·(p - f)` on [low, high]."""
    count = degree + 2
    a, b = mp.mpf(low), mp.mpf(high)
    points = [(a + b) / 2 - (b - a) / 2 * mp.cos(mp.pi * i / (count - 1)) for i in range(count)]
    coefficients: list[mp.mpf] = []
    for _ in range(12):
        system = mp.matrix(count, count)
        right = mp.matrix(count, 1)
        for row, x in enumerate(points):
            for column in range(degree + 1):
                system[row, column] = x**column
            system[row, degree + 1] = (-1) ** row / weight(x)
            right[row] = f(x)
        solution = mp.lu_solve(system, right)
        coefficients = [solution[i] for i in range(degree + 1)]
        points = _exchange(_weighted_error(f, weight, coefficients), a, b, points)
    return coefficients


def _weighted_error(f: Function, weight: Function, coefficients: list[mp.mpf]) -> Function:
    return lambda x: weight(x) * (_value(coefficients, x) - f(x))


def _value(coefficients: list[mp.mpf], x: mp.mpf) -> mp.mpf:
    return mp.polyval(coefficients[::-1], x)


def _exchange(error: Function, a: mp.mpf, b: mp.mpf, points: list[mp.mpf]) -> list[mp.mpf]:
    """Move each reference point to the local extremum between its neighbours."""
    moved = []
    for i, x in enumerate(points):
        low = a if i == 0 else (points[i - 1] + x) / 2
        high = b if i == len(points) - 1 else (points[i + 1] + x) / 2
        grid = [low + (high - low) * mp.mpf(j) / 24 for j in range(25)]
        moved.append(max(grid, key=lambda g: abs(error(g))))
    return moved


def _relative(f: Function) -> Function:
    return lambda x: 1 / f(x)


def _series_safe(f: Function, at_zero: float) -> Function:
    return lambda x: mp.mpf(at_zero) if abs(x) < mp.mpf(10) ** -25 else f(x)


def _sqrt_of(f: Function, at_zero: mp.mpf) -> Function:
    """`f(√z)/√z` as a function of z."""
    return lambda z: at_zero if z < mp.mpf(10) ** -40 else f(mp.sqrt(z)) / mp.sqrt(z)


HALF_LN2 = mp.log(2) / 2 * mp.mpf("1.0001")

exp_tail = _series_safe(lambda r: (mp.exp(r) - 1 - r) / r**2, 0.5)
log_tail = _series_safe(lambda f: (mp.log1p(f) - f + f * f / 2) / f**3, mp.mpf(1) / 3)
tanh_odd = _sqrt_of(mp.tanh, mp.mpf(1))
tanh_tail = _series_safe(lambda z: (tanh_odd(z) - 1) / z, -mp.mpf(1) / 3)
erf_odd = _sqrt_of(mp.erf, 2 / mp.sqrt(mp.pi))
sin_tail = _series_safe(lambda z: (_sqrt_of(mp.sin, mp.mpf(1))(z) - 1) / z, -mp.mpf(1) / 6)
exp2_rest = _series_safe(lambda r: (mp.mpf(2) ** r - 1) / r, mp.log(2))
log2_rest = _series_safe(lambda f: mp.log1p(f) / mp.log(2) / f, 1 / mp.log(2))
sinh_tail = _series_safe(lambda z: (_sqrt_of(mp.sinh, mp.mpf(1))(z) - 1) / z, mp.mpf(1) / 6)
asin_tail = _series_safe(lambda z: (_sqrt_of(mp.asin, mp.mpf(1))(z) - 1) / z, mp.mpf(1) / 6)
atan_tail = _series_safe(lambda z: (_sqrt_of(mp.atan, mp.mpf(1))(z) - 1) / z, -mp.mpf(1) / 3)
atanh_odd = _sqrt_of(mp.atanh, mp.mpf(1))
atanh_tail = _series_safe(lambda z: (atanh_odd(z) - 1 - z / 3) / z**2, mp.mpf(1) / 5)
cos_tail = _series_safe(lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, mp.mpf(1) / 24)


def scaled_erfc(t: mp.mpf) -> mp.mpf:
    """erfc(x)·exp(x²)/t at x = 2/t - 2, the map that makes the tail nearly linear in t."""
    x = 2 / t - 2
    return mp.erfc(x) * mp.exp(x * x) / t


def wide_erfc(u: mp.mpf) -> mp.mpf:
    """The same for a greater range, around t = ½ (away from it Horner's scheme loses digits)."""
    return scaled_erfc(u + mp.mpf("0.5"))


def erf_root(x: mp.mpf) -> mp.mpf:
    """erfc(x)^(-1/8): a low-degree polynomial p gives erf(x) = 1 - 1/p(x)^8 without an exp."""
    return mp.erfc(x) ** (-mp.mpf(1) / 8)


def erf_root_weight(x: mp.mpf) -> mp.mpf:
    """How a relative error of the root shows up in erf."""
    return 8 * mp.erfc(x) / erf_root(x) / mp.erf(x)


QUARTER_PI2 = (mp.pi / 4 * mp.mpf("1.0001")) ** 2
ROOTS = mp.sqrt(mp.mpf("0.5")) - 1, mp.sqrt(2) - 1
HALF = mp.mpf("0.5001")
ERFC_32 = 2 / mp.mpf("12.2") - mp.mpf("0.5"), 2 / mp.mpf("2.8") - mp.mpf("0.5")
ERFC_64 = 2 / mp.mpf("29.3") - mp.mpf("0.5"), 2 / mp.mpf("2.8") - mp.mpf("0.5")
ATANH_MAX = mp.mpf("0.0296")  # the square of (√2 - 1)/(√2 + 1)
Entry = tuple[str, Function, mp.mpf, mp.mpf, Function, dict[str, int]]
TABLE: tuple[Entry, ...] = (
    ("EXP", exp_tail, -HALF_LN2, HALF_LN2, _relative(exp_tail), {"f32": 4, "f64": 9}),
    ("EXP_WHOLE", mp.exp, -HALF_LN2, HALF_LN2, _relative(mp.exp), {"f32": 5, "f64": 11}),
    ("EXP2", exp2_rest, -HALF, HALF, _relative(exp2_rest), {"f32": 5, "f64": 10}),
    ("LOG", log_tail, *ROOTS, _relative(log_tail), {"f32": 7, "f64": 18}),
    ("TANH", tanh_tail, 0, mp.mpf("0.625") ** 2, _relative(tanh_tail), {"f32": 4, "f64": 10}),
    ("SINH", sinh_tail, 0, 1, _relative(sinh_tail), {"f32": 3, "f64": 6}),
    ("ERF", erf_odd, 0, 1, _relative(erf_odd), {"f32": 5, "f64": 12}),
    ("ERF_ROOT", erf_root, 1, mp.mpf("3.95"), erf_root_weight, {"f32": 8}),
    ("ERFC", scaled_erfc, mp.mpf(1) / 4, mp.mpf(2) / 3, _relative(scaled_erfc), {"f64": 16}),
    ("ERFC_SCALED", wide_erfc, *ERFC_32, _relative(wide_erfc), {"f32": 8}),
    ("ERFC_SCALED", wide_erfc, *ERFC_64, _relative(wide_erfc), {"f64": 21}),
    ("SIN", sin_tail, 0, QUARTER_PI2, _relative(sin_tail), {"f32": 2, "f64": 5}),
    ("COS", cos_tail, 0, QUARTER_PI2, _relative(cos_tail), {"f32": 2, "f64": 5}),
    ("ASIN", asin_tail, 0, mp.mpf("0.25"), _relative(asin_tail), {"f32": 4, "f64": 11}),
    ("ATAN", atan_tail, 0, 1, _relative(atan_tail), {"f32": 8, "f64": 19}),
    # The power of single precision is computed in double precision.
    ("POW_LOG2", log2_rest, *ROOTS, _relative(log2_rest), {"f32": 11}),
    ("POW_ATANH", atanh_tail, 0, ATANH_MAX, _relative(atanh_tail), {"f64": 7}),
)

SPLITS: tuple[tuple[str, mp.mpf, tuple[int, ...], int], ...] = (
    # (name, number, bits of the parts before the last, bits of the last)
    ("LOG2_E_F32", 1 / mp.log(2), (24,), 24),
    ("LOG2_E_F64", 1 / mp.log(2), (53,), 53),
    ("LOG10_E_F32", 1 / mp.log(10), (24,), 24),
    ("LOG10_E_F64", 1 / mp.log(10), (53,), 53),
    ("LOG10_2_F32", mp.log10(2), (15,), 24),  # exact times an exponent
    ("LOG10_2_F64", mp.log10(2), (42,), 53),
    ("TURNS_F32", 2 / mp.pi, (29, 29), 53),  # exact, in double precision, times an f32
    ("HALF_PI_F64", mp.pi / 2, (26, 26, 26), 53),  # exact times 27 bits
    ("TWO_OVER_LN2_F64", 2 / mp.log(2), (26,), 53),
    ("THIRD_F64", mp.mpf(1) / 3, (26,), 53),
)


def rounded(x: mp.mpf, bits: int) -> mp.mpf:
    """The nearest number with so many bits."""
    scale = mp.mpf(2) ** (bits - int(mp.floor(mp.log(abs(x), 2))) - 1)
    return mp.nint(x * scale) / scale


def split(x: mp.mpf, leading: tuple[int, ...], last: int) -> list[mp.mpf]:
    """Parts of few bits whose sum is `x`."""
    parts = []
    for bits in (*leading, last):
        parts.append(rounded(x, bits))
        x -= parts[-1]
    return parts


def tuple_text(name: str, values: list[mp.mpf], comment: str = "") -> str:
    """One assignment, with as many numbers on a line as fit."""
    line = f"{name} = ({', '.join(repr(float(v)) for v in values)})"
    if len(line) <= 96 and not comment:
        return f"\n{line}"
    numbers = textwrap.fill(", ".join(repr(float(v)) for v in values) + ",", 92)
    return f"\n{name} = ({comment}\n{textwrap.indent(numbers, '    ')}\n)"


def bits_text(name: str, x: Callable[[], mp.mpf], bits: int) -> str:
    """One assignment: so many bits of a number below one, as an integer."""
    with mp.workprec(bits + 20):
        digits = f"{int(mp.floor(x() * mp.mpf(2) ** bits)):x}"
    lines = textwrap.wrap(digits, 88)
    return f"\n{name} = int(\n" + "\n".join(f'    "{line}"' for line in lines) + ",\n    16,\n)"


def main() -> None:
    """Write the module with the tables."""
    lines = [
        '"""Coefficients of polynomials, lowest degree first, and constants in parts.',
        "",
        "Made by scripts/fit_math_coefficients.py.",
        '"""',
        "",
        "# fmt: off",
    ]
    for name, f, low, high, weight, degrees in TABLE:
        for dtype, degree in degrees.items():
            found = fit(f, low, high, degree, weight)
            grid = [low + (high - low) * mp.mpf(i) / 500 for i in range(501)]
            worst = max(abs(weight(x) * (_value(found, x) - f(x))) for x in grid)
            comment = f"  # weighted error {mp.nstr(worst, 2)}"
            lines.append(tuple_text(f"{name}_{dtype.upper()}", found, comment))
    lines += [tuple_text(name, split(x, parts, last)) for name, x, parts, last in SPLITS]
    lines.append(bits_text("TURN_BITS", lambda: 2 / mp.pi, 1280))  # for angles up to 2¹⁰²⁴
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
