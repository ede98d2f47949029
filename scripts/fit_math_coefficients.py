"""Fit the polynomials of `tilewright/intrin/coefficients.py` (needs mpmath).

Each polynomial is the Remez-style minimax fit, in relative error, of a smooth function on an
interval; `python scripts/fit_math_coefficients.py` prints the tables with the error reached.
"""

from __future__ import annotations

from collections.abc import Callable

import mpmath as mp

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
cos_tail = _series_safe(lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, mp.mpf(1) / 24)


def scaled_erfc(t: mp.mpf) -> mp.mpf:
    """erfc(x)·exp(x²) at x = 2/t - 2, the map that makes the tail nearly linear in t."""
    x = 2 / t - 2
    return mp.erfc(x) * mp.exp(x * x) / t


def erf_root(x: mp.mpf) -> mp.mpf:
    """erfc(x)^(-1/8): a low-degree polynomial p gives erf(x) = 1 - 1/p(x)^8 without an exp."""
    return mp.erfc(x) ** (-mp.mpf(1) / 8)


def erf_root_weight(x: mp.mpf) -> mp.mpf:
    """How a relative error of the root shows up in erf."""
    return 8 * mp.erfc(x) / erf_root(x) / mp.erf(x)


QUARTER_PI2 = (mp.pi / 4 * mp.mpf("1.0001")) ** 2
Entry = tuple[str, Function, object, object, Function, dict[str, int]]
TABLE: tuple[Entry, ...] = (
    ("EXP", exp_tail, -HALF_LN2, HALF_LN2, _relative(exp_tail), {"f32": 4, "f64": 9}),
    ("EXP_WHOLE", mp.exp, -HALF_LN2, HALF_LN2, _relative(mp.exp), {"f32": 5, "f64": 11}),
    (
        "LOG",
        log_tail,
        mp.sqrt(mp.mpf("0.5")) - 1,
        mp.sqrt(2) - 1,
        _relative(log_tail),
        {"f32": 7, "f64": 18},
    ),
    ("TANH", tanh_tail, 0, mp.mpf("0.625") ** 2, _relative(tanh_tail), {"f32": 4, "f64": 10}),
    ("ERF", erf_odd, 0, 1, _relative(erf_odd), {"f32": 5, "f64": 12}),
    ("ERF_ROOT", erf_root, 1, mp.mpf("3.95"), erf_root_weight, {"f32": 8}),
    ("ERFC", scaled_erfc, mp.mpf(1) / 4, mp.mpf(2) / 3, _relative(scaled_erfc), {"f64": 16}),
    ("SIN", sin_tail, 0, QUARTER_PI2, _relative(sin_tail), {"f32": 2, "f64": 5}),
    ("COS", cos_tail, 0, QUARTER_PI2, _relative(cos_tail), {"f32": 2, "f64": 5}),
)


def main() -> None:
    """Print the module with the tables."""
    print(
        '"""Polynomial coefficients, lowest degree first; '
        'made by scripts/fit_math_coefficients.py."""'
    )
    for name, f, low, high, weight, degrees in TABLE:
        for dtype, degree in degrees.items():
            found = fit(f, low, high, degree, weight)
            grid = [low + (high - low) * mp.mpf(i) / 500 for i in range(501)]
            worst = max(abs(weight(x) * (_value(found, x) - f(x))) for x in grid)
            print(f"\n{name}_{dtype.upper()} = (  # weighted error {mp.nstr(worst, 2)}")
            for c in found:
                print(f"    {float(c)!r},")
            print(")")


if __name__ == "__main__":
    main()
