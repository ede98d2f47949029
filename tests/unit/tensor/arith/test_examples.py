"""Examples refute forms that are negative somewhere, and only such."""

from __future__ import annotations

import pytest

from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.arith.examples import examples

i, j, n, m, d = (tir.Var(name) for name in "ijnmd")


def refuted(analyzer, expr):
    form = analyzer.linear(expr)
    return any(example.refutes(form) for example in examples(analyzer))


@pytest.mark.parametrize(
    "expr",
    [
        i - 1,  # at the first iteration
        n - i - 2,  # at the last one
        m - i,  # of two sizes neither is larger
        i * m + j - n,
        i // 4 - j,
        tir.minimum(i, j) - 1,
        n - 2,  # of size one
        tir.TileStart(tir.Cover(((8, n // 8), (1, n % 8))), i) - m,
    ],
)
def test_what_is_negative_somewhere_is_refuted(expr):
    analyzer = Analyzer({i: n, j: m})
    assert refuted(analyzer, expr)
    assert analyzer.prove(tir.Const(0) <= expr) is not True


@pytest.mark.parametrize(
    "expr",
    [n - i - 1, i * m + j, n * m - i * m - j - 1, i - i % 4, tir.maximum(i, j) - i],
)
def test_what_is_never_negative_is_not_refuted(expr):
    analyzer = Analyzer({i: n, j: m})
    assert not refuted(analyzer, expr)
    assert analyzer.prove(tir.Const(0) <= expr) is True


def test_an_example_must_hold_all_facts():
    """Without the fact, large values of the size are an example."""
    analyzer = Analyzer({i: n})
    assert refuted(analyzer, 3 - i)
    assert not refuted(analyzer.assume(n <= 4), 3 - i)
    assert analyzer.assume(n <= 4).prove(i <= 3) is True


def test_nothing_is_said_of_loops_that_never_run():
    analyzer = Analyzer({i: n - 200})
    assert not refuted(analyzer, n - 201 + i)
    assert not refuted(analyzer, n - 201), "the loop is known by now"


def test_asking_changes_nothing():
    """An atom that is made in the middle of a question would answer the next ones otherwise."""
    analyzer = Analyzer({i: n, j: m - i})
    before = len(analyzer.ends())
    assert refuted(analyzer, 3 - n)
    assert len(analyzer.ends()) == before


def test_nothing_is_said_of_what_depends_on_a_condition():
    analyzer = Analyzer({i: n})
    assert not refuted(analyzer, tir.Select(d < i, i, tir.Const(0)) - 1)


@pytest.mark.parametrize("expr", [n - m, n * m - n, i - j, n - 1, i // 2 - i % 2])
def test_what_is_not_zero_somewhere_is_told_from_zero(expr):
    analyzer = Analyzer({i: n, j: m})
    assert analyzer.tells_from_zero(analyzer.linear(expr))
    assert analyzer.prove_equal(expr, tir.Const(0)) is not True


@pytest.mark.parametrize("expr", [n * m - m * n, i - (i // 4) * 4 - i % 4, tir.minimum(n, 1) - 1])
def test_what_is_zero_is_not_told_from_zero(expr):
    analyzer = Analyzer({i: n, j: m})
    assert not analyzer.tells_from_zero(analyzer.linear(expr))
