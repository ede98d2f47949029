"""Expansions are well-formed programs that mean what the function means; users may add to them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import tilewright as tw
from tests.expect import raises_code
from tilewright.dtypes import DType, f32, f64, i32
from tilewright.intrin import define_function
from tilewright.intrin.functions import EXPANSIONS, FUNCTIONS
from tilewright.lower.context import Context
from tilewright.lower.expand_math import expand_math
from tilewright.target import Target
from tilewright.tensor import functions as meanings
from tilewright.tensor import ir as tir
from tilewright.tensor.interpret import interpret
from tilewright.tensor.verify import Level, verify
from tilewright.tensor.visit import walk

POINTS = np.array([0.0, -0.0, 0.3, -0.3, 0.7, 1.0, 1.5, 2.0, 3.0, 4.5, 1e-10, np.nan])


def stored(name: str, dtype: DType, lanes: int) -> tir.Func:
    """One store of a call, on vectors of all points or on the first of them."""
    arity = meanings.FUNCTIONS[name].arity
    inputs = [tir.Buffer(f"X{i}", (tir.Const(POINTS.size),), dtype) for i in range(arity)]
    result = tir.Buffer("Y", (tir.Const(POINTS.size),), dtype)
    at = tir.Const(0) if lanes == 1 else tir.Ramp(tir.Const(0), tir.Const(1), lanes)
    value = tir.Call(name, tuple(b[at] for b in inputs), dtype.vector(lanes))
    return tir.Func(name, (*inputs, result), tir.Store(result, (at,), value))


def expanded(name: str, dtype: DType, lanes: int) -> tir.Func:
    return expand_math(stored(name, dtype, lanes), Context(Target.named("x86-64-v2")))


@pytest.mark.parametrize("dtype", [f32, f64], ids=str)
@pytest.mark.parametrize("name", EXPANSIONS)
@pytest.mark.parametrize("lanes", [1, 8])
def test_expansion_is_a_program(name, dtype, lanes):
    func = expanded(name, dtype, lanes)
    verify(func, Level.LOWERED)
    loads = [n for n in walk(func.body) if type(n) is tir.Load]
    assert len(loads) == meanings.FUNCTIONS[name].arity, "each argument is evaluated once"


@pytest.mark.parametrize("dtype", [f32, f64], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_expansion_means_the_function(name, dtype):
    """Run by the interpreter, which rounds after every operation."""
    x = POINTS.astype(dtype.numpy)
    args = (x, np.roll(x, 3))[: meanings.FUNCTIONS[name].arity]
    names = [f"X{i}" for i in range(len(args))]
    with np.errstate(all="ignore"):
        func = expanded(name, dtype, x.size)
        found = interpret(func, dict(zip(names, args, strict=True)))["Y"]
        wanted = meanings.apply(name, [a.astype(np.float64) for a in args], f64)
    bound = (FUNCTIONS[name].ulp + 1) * np.finfo(dtype.numpy).eps
    np.testing.assert_allclose(found, wanted, rtol=bound, atol=0)


def test_literal_exponents_are_products():
    for x in (tir.Var("x", f32), tir.Var("x", f32.vector(8))):
        two = tir.as_expr(2.0, x.dtype)
        assert EXPANSIONS["pow"]((x, two)) == tir.Call("contracted", (x * x,), x.dtype)


def test_arguments_are_computed_outside_of_what_is_contracted():
    """A sum and a product in front of a function are rounded, whatever the function fuses."""
    x = tir.Var("x", f32)
    argument = x * x + 1.0
    expanded = EXPANSIONS["exp"]((argument,))
    assert isinstance(expanded, tir.Let)
    assert expanded.value == argument
    assert isinstance(expanded.body, tir.Call)
    assert expanded.body.name == "contracted"


def test_power_of_integers_is_refused():
    x = tw.placeholder("X", (4,), i32)
    y = tw.compute("Y", (4,), lambda i: tw.call("pow", x[i], 2))
    with raises_code("V010", facts={"operation": "pow", "found": i32}):
        tw.build(tw.func("squares", [x], [y]))


@pytest.fixture
def tables() -> Iterator[None]:
    """What a test defines is forgotten after it."""
    kept = [(table, dict(table)) for table in (EXPANSIONS, FUNCTIONS, meanings.FUNCTIONS)]
    yield
    for table, before in kept:
        table.clear()
        table.update(before)


@pytest.mark.usefixtures("tables")
def test_function_of_a_user_is_interpreted_and_compiled():
    @define_function("softplus", meaning=lambda x: np.logaddexp(0.0, x), ulp=4)
    def softplus(x: tir.Expr) -> tir.Expr:
        return tw.select(x > 0, x, 0.0) + tw.call("log1p", tw.call("exp", -tw.call("abs", x)))

    x = tw.placeholder("X", (100,))
    y = tw.compute("Y", (100,), lambda i: tw.call("softplus", x[i]))
    func = tw.func("smooth", [x], [y])
    values = np.linspace(-30, 30, 100, dtype=np.float32)
    wanted = np.logaddexp(0, values.astype(np.float64))
    np.testing.assert_allclose(interpret(func, {"X": values})["Y"], wanted, rtol=2**-23)
    np.testing.assert_allclose(tw.build(func)(values), wanted, rtol=4 * 2**-23)
    assert FUNCTIONS["softplus"].ulp == 4


@pytest.mark.usefixtures("tables")
def test_function_of_two_arguments():
    @define_function("mean_square", meaning=lambda a, b: (a * a + b * b) / 2, ulp=2)
    def mean_square(a: tir.Expr, b: tir.Expr) -> tir.Expr:
        return (a * a + b * b) * 0.5

    x = tw.placeholder("X", (40,), f64)
    y = tw.compute("Y", (40,), lambda i: tw.call("mean_square", x[i] + 1.0, 3.0))
    values = np.linspace(0, 1, 40)
    found = tw.build(tw.func("squares", [x], [y]))(values)
    np.testing.assert_allclose(found, ((values + 1) ** 2 + 9) / 2, rtol=1e-15)


@pytest.mark.usefixtures("tables")
def test_known_names_are_not_defined_again():
    expansion = EXPANSIONS["exp"]
    with pytest.raises(ValueError, match="`exp` is defined twice"):
        define_function("exp", meaning=np.exp, ulp=1)(lambda x: x)
    assert EXPANSIONS["exp"] is expansion


@pytest.mark.usefixtures("tables")
def test_function_without_an_expansion_is_refused_by_name():
    meanings.register("sinc", 1, np.sinc)
    x = tw.placeholder("X", (8,))
    y = tw.compute("Y", (8,), lambda i: tw.call("sinc", x[i]))
    func = tw.func("only_meant", [x], [y])
    assert interpret(func, {"X": np.zeros(8, np.float32)})["Y"][0] == 1
    with raises_code("T203", text="define_function", facts={"function": "sinc"}):
        tw.build(func)
