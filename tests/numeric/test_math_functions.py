"""Every math function keeps its declared error, scalar and vector, on floats of all sizes.

The reference is the function's meaning, evaluated in extended precision. Where there is none the
reference has an error of its own, of about one ulp of double, which is allowed for.
"""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tests.numeric.math_samples import (
    HAS_EXTENDED,
    ONLY_DOUBLE,
    PERIODIC,
    arguments,
    meaning,
    special_values,
    ulp_of,
    within_domain,
)
from tilewright.intrin.functions import EXPANSIONS, FUNCTIONS, NATIVE
from tilewright.tensor import functions as meanings

WAYS = {
    "vectors": {"trace": "draft"},
    "scalars": {"trace": "none"},
    "no FMA": {"trace": "draft", "target": "x86-64-v2"},
}


FLUSHED = {"exp_bounded", "sigmoid"}
"""Functions whose results below the least normal number may be zero."""


def test_every_function_has_native_code():
    known = {*EXPANSIONS, *NATIVE, *meanings.MARKS, "thread", "threads"}
    assert known == meanings.FUNCTIONS.keys()
    assert EXPANSIONS.keys() == FUNCTIONS.keys()


def compiled(name: str, dtype: tw.DType, args: tuple[np.ndarray, ...], way: str) -> np.ndarray:
    """The function of whole arrays, by native code."""
    inputs = [tw.placeholder(f"X{i}", (a.size,), dtype) for i, a in enumerate(args)]
    result = tw.compute(
        "Y", (args[0].size,), lambda i: tw.call(name, *(x[i] for x in inputs)).to(dtype), dtype
    )
    kernel = tw.build(tw.func(name, inputs, [result]), threads=1, **WAYS[way])
    return np.asarray(kernel(*args))


def _unit(name: str, x: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """One ulp of the result, or of what the function's domain text names instead."""
    unit = ulp_of(x if name == "gelu" else wanted)
    # A result below the least normal number may be zero.
    return np.maximum(unit, np.finfo(x.dtype).tiny) if name in FLUSHED else unit


@pytest.mark.parametrize("dtype", [tw.f32, tw.f64], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("way", WAYS)
def test_function_keeps_its_declared_error(name: str, dtype: tw.DType, way: str) -> None:
    args = arguments(name, dtype.numpy)
    found, wanted = compiled(name, dtype, args, way), meaning(name, *args)
    with np.errstate(all="ignore"):
        rounded = wanted.astype(dtype.numpy)
    assert np.array_equal(np.isnan(found), np.isnan(rounded))
    infinite = np.isinf(rounded) | np.isinf(found)
    assert np.array_equal(found[infinite], rounded[infinite])
    finite = np.isfinite(rounded)
    unit = _unit(name, args[0][finite], rounded[finite])
    error = np.abs(found[finite] - wanted[finite]) / unit
    exact = dtype == tw.f32 or (HAS_EXTENDED and name not in ONLY_DOUBLE)
    worst = int(error.argmax())
    place = ", ".join(repr(a[finite][worst]) for a in args)
    assert error[worst] <= FUNCTIONS[name].ulp + (0.0 if exact else 1.0), (
        f"{name}({place}) is {error[worst]:.2f} ulp off"
    )


UNSIGNED_ZERO = {"gelu"}
"""Functions whose zeros may have another sign than NumPy's."""

UNSURE_ONE = {"exp_bounded"}
"""Functions that may miss a result of one by their declared error."""


@pytest.mark.parametrize("dtype", [tw.f32, tw.f64], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("way", WAYS)
def test_special_values_are_those_of_numpy(name: str, dtype: tw.DType, way: str) -> None:
    """NaN, infinities, exact ones, and zeros with their signs."""
    special = special_values(dtype.numpy)
    if meanings.FUNCTIONS[name].arity == 2:
        args = tuple(g.ravel() for g in np.meshgrid(special, special))
    else:
        args = (within_domain(name, special),)
    found = compiled(name, dtype, args, way)
    with np.errstate(all="ignore"):
        wanted = meanings.apply(name, list(args), dtype)
    assert np.array_equal(np.isnan(found), np.isnan(wanted))
    fixed = np.isin(wanted, [0.0, np.inf, -np.inf])
    if name not in UNSURE_ONE:
        fixed |= np.abs(meaning(name, *args)) == 1
    same = found == wanted
    if name not in UNSIGNED_ZERO:
        same &= np.signbit(found) == np.signbit(wanted)
    wrong = fixed & ~same
    assert not wrong.any(), [(*(a[wrong] for a in args), found[wrong], wanted[wrong])]


@pytest.mark.parametrize("dtype", [tw.f16, tw.bf16], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_storage_types_are_rounded_once(name: str, dtype: tw.DType) -> None:
    """The result lies between the roundings of the exact value, a little less and a little more."""
    every = np.arange(2**16).astype(np.uint16).view(dtype.numpy)
    with np.errstate(all="ignore"):
        if meanings.FUNCTIONS[name].arity == 2:
            args = every, np.random.default_rng(1).permutation(every)
        else:
            args = (within_domain(name, every.astype(np.float32)).astype(dtype.numpy),)
        wide = [a.astype(np.float64) for a in args]
    found = compiled(name, dtype, args, "vectors").astype(np.float64)
    with np.errstate(all="ignore"):
        wanted = meanings.apply(name, wide, tw.f64)
        size = np.abs(wide[0] if name == "gelu" else wanted)
        slack = size * FUNCTIONS[name].ulp * 2.0**-23 + 2.0**-126
        low, high = ((wanted + s).astype(dtype.numpy).astype(float) for s in (-slack, slack))
    low, high = (np.where(np.isinf(wanted), wanted, bound) for bound in (low, high))
    assert np.array_equal(np.isnan(found), np.isnan(wanted))
    outside = (found < low) | (found > high)
    assert not outside.any(), [(*(a[outside] for a in args), found[outside], wanted[outside])]


@pytest.mark.parametrize("dtype", [tw.f32, tw.f64], ids=str)
@pytest.mark.parametrize("name", sorted(PERIODIC))
@pytest.mark.parametrize("way", WAYS)
def test_large_angles_beside_small_ones(name: str, dtype: tw.DType, way: str) -> None:
    """Vectors branch around what none of their lanes needs: lanes must not depend on others."""
    small = np.linspace(-9, 9, 61).astype(dtype.numpy)
    alone = compiled(name, dtype, (small,), way)
    for number, size in enumerate((2.0**27, 1.5e8, 1e30, np.inf, np.nan)):
        mixed = small.copy()
        mixed[number::7] = size
        found, others = compiled(name, dtype, (mixed,), way), mixed == small
        np.testing.assert_array_equal(found[others], alone[others])
        assert np.array_equal(np.isfinite(found), np.isfinite(mixed))


SEAMS = {
    "exp2": (0.5, -126.0, -1022.0),
    "expm1": (np.log(2) / 2, -np.log(2) / 2, 2.0**-25, 2.0**-54),
    "log": (np.sqrt(0.5), np.sqrt(2), 2.0**-126, 2.0**-1022),
    "log2": (np.sqrt(0.5), np.sqrt(2), 1.0),
    "log10": (np.sqrt(0.5), np.sqrt(2), 1.0),
    "log1p": (np.sqrt(2) - 1, np.sqrt(0.5) - 1, 2.0**-25, 2.0**-54),
    "sinh": (1.0, 1.5 * np.log(2)),
    "tanh": (0.625,),
    "asinh": (2.0**40, 2.0**80, 2.0**-25),
    "acosh": (2.0**40, 2.0**80),
    "atanh": (3 - 2 * np.sqrt(2),),
    "sin": (np.pi / 4, -np.pi / 4),
    "tan": (np.pi / 4, -np.pi / 4, 5 * np.pi / 4),
    "asin": (0.5, -0.5),
    "acos": (0.5, -0.5),
    "atan": (1.0, -1.0),
    "erf": (1.0, -1.0),
    "erfc": (0.8, -0.8, 4.0),
    "sigmoid": (0.0,),
}
"""Where an expansion changes from one formula to another; the functions are monotone there."""


@pytest.mark.parametrize("dtype", [tw.f32, tw.f64], ids=str)
@pytest.mark.parametrize("name", SEAMS)
def test_function_does_not_step_back_at_a_seam(name: str, dtype: tw.DType) -> None:
    """Around a seam values follow each other in order, apart from one ulp; two without FMA."""
    integer = np.dtype(f"i{dtype.size_bytes}")
    seams = np.array(SEAMS[name], dtype.numpy)
    seams = seams[np.abs(seams) >= np.finfo(dtype.numpy).tiny] if name != "sigmoid" else seams
    steps = np.arange(-2000, 2000, dtype=integer)
    x = (seams.view(integer)[:, None] + np.where(seams[:, None] == 0, abs(steps), steps)).view(
        dtype.numpy
    )
    x = np.sort(x, axis=1)
    y = compiled(name, dtype, (x.ravel(),), "vectors").reshape(x.shape)
    falling = name in ("acos", "erfc")
    back = -np.diff(y, axis=1) * (-1 if falling else 1)
    roundings = 1 if tw.Target.host().fma else 2  # of a step of a polynomial
    assert (back <= roundings * ulp_of(y[:, 1:])).all()


@pytest.mark.parametrize("dtype", [tw.f32, tw.f64], ids=str)
@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.0, 3.0, 4.0, -0.5, -1.0, -2.0, 2.5, np.nan])
def test_power_with_a_literal_exponent(exponent: float, dtype: tw.DType) -> None:
    (x,) = arguments("log", dtype.numpy)
    given = tw.placeholder("X", (x.size,), dtype)
    result = tw.compute("Y", (x.size,), lambda i: tw.call("pow", given[i], exponent))
    found = tw.build(tw.func("power", [given], [result]), threads=1)(x)
    wanted = meaning("pow", x, np.full_like(x, exponent))
    with np.errstate(all="ignore"):
        rounded = wanted.astype(dtype.numpy)
        error = np.abs(found - wanted) / ulp_of(rounded)
    assert np.array_equal(np.isnan(found), np.isnan(rounded))
    edge = np.isinf(rounded) | (rounded == 0)
    assert np.array_equal(found[edge], rounded[edge])
    assert np.array_equal(np.signbit(found[edge]), np.signbit(rounded[edge]))
    assert error[~edge & ~np.isnan(rounded)].max(initial=0) <= FUNCTIONS["pow"].ulp
