"""Whatever is simplified, bounded or proved is compared with plain evaluation at many points."""

from __future__ import annotations

from hypothesis import given, note
from hypothesis import strategies as st

from tests.property.index_expressions import (
    NoTile,
    Scope,
    Values,
    conditions,
    evaluate,
    expressions,
    scopes,
)
from tilewright.dtypes import boolean
from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.printer import print_node

PER_EXAMPLE = 20  # expressions in one scope: making a scope costs more than using it


def describe(scope: Scope, expr: tir.Expr) -> None:
    extents = ", ".join(f"{v.name} < {print_node(e)}" for v, e in scope.extents.items())
    note(f"{print_node(expr)}   where {extents}")


def defined(expr: tir.Expr, points: list[Values]) -> list[tuple[Values, int]]:
    """The points at which all tiles exist, with the value there."""
    found = []
    for values in points:
        try:
            found.append((values, evaluate(expr, values)))
        except NoTile:
            continue
    return found


@given(scope=scopes(), data=st.data())
def test_simplify_keeps_the_value_and_is_idempotent(scope, data):
    points = scope.points(data.draw(st.integers(0, 99)))
    analyzer = Analyzer(scope.extents)
    for _ in range(PER_EXAMPLE):
        expr = data.draw(st.one_of(expressions(scope), conditions(scope)))
        describe(scope, expr)
        simple = analyzer.simplify(expr)
        note(f"became {print_node(simple)}")
        assert simple.dtype == expr.dtype
        for values, expected in defined(expr, points):
            assert evaluate(simple, values) == expected
        assert analyzer.simplify(simple) is simple
        assert Analyzer(scope.extents).simplify(simple) is simple


@given(scope=scopes(), data=st.data())
def test_bounds_contain_every_value(scope, data):
    points = scope.points(data.draw(st.integers(0, 99)))
    analyzer = Analyzer(scope.extents)
    for _ in range(PER_EXAMPLE):
        expr = data.draw(expressions(scope))
        describe(scope, expr)
        bounds, divisor = analyzer.bounds(expr), analyzer.divisor(expr)
        for _, value in defined(expr, points):
            assert bounds.contains(value)
            assert value % divisor == 0 if divisor else value == 0


@given(scope=scopes(), data=st.data())
def test_what_is_proved_is_true(scope, data):
    points = scope.points(data.draw(st.integers(0, 99)))
    analyzer = Analyzer(scope.extents)
    for _ in range(PER_EXAMPLE):
        cond = data.draw(conditions(scope))
        describe(scope, cond)
        answer = analyzer.prove(cond)
        if answer is not None:
            assert all(bool(value) is answer for _, value in defined(cond, points))


@given(scope=scopes(), data=st.data())
def test_assumptions_are_used_soundly(scope, data):
    points = scope.points(data.draw(st.integers(0, 99)), count=100)
    fact = data.draw(conditions(scope))
    describe(scope, fact)
    analyzer = Analyzer(scope.extents).assume(fact)
    where = [values for values, holds in defined(fact, points) if holds]
    for _ in range(PER_EXAMPLE):
        expr = data.draw(st.one_of(expressions(scope), conditions(scope)))
        describe(scope, expr)
        simple, bounds = analyzer.simplify(expr), analyzer.bounds(expr)
        for values, expected in defined(expr, where):
            assert evaluate(simple, values) == expected
            assert expr.dtype == boolean or bounds.contains(expected)


@given(scope=scopes(), data=st.data())
def test_equal_expressions_are_never_said_to_differ(scope, data):
    points = scope.points(data.draw(st.integers(0, 99)))
    analyzer = Analyzer(scope.extents)
    for _ in range(PER_EXAMPLE):
        a, b = data.draw(expressions(scope)), data.draw(expressions(scope))
        for left, right in ((a, b), (a + b, b + a), (a - b + b, a)):
            answer = analyzer.prove_equal(left, right)
            both = [(x, y) for (_, x), (_, y) in _together(left, right, points)]
            if answer is not None:
                assert all((x == y) is answer for x, y in both)


def _together(a: tir.Expr, b: tir.Expr, points: list[Values]) -> list[tuple[object, object]]:
    pairs = []
    for values in points:
        try:
            pairs.append(((values, evaluate(a, values)), (values, evaluate(b, values))))
        except NoTile:
            continue
    return pairs


@given(scope=scopes(), data=st.data())
def test_results_do_not_depend_on_earlier_questions(scope, data):
    busy = Analyzer(scope.extents)
    exprs = [data.draw(expressions(scope)) for _ in range(PER_EXAMPLE)]
    first = [busy.simplify(expr) for expr in exprs]
    for expr, simple in zip(exprs, first, strict=True):
        describe(scope, expr)
        assert print_node(Analyzer(scope.extents).simplify(expr)) == print_node(simple)
