"""Dimensions of a graph as numbered sizes of a program."""

from __future__ import annotations

import pytest

from tests.expect import raises_code
from tilewright.dtypes import f32
from tilewright.model.sizing import SizeTable
from tilewright.runtime.sizes import evaluate
from tilewright.tensor import ir as tir

N, M = tir.Var("n"), tir.Var("m")


@pytest.fixture
def table() -> SizeTable:
    made = SizeTable({N: 0, M: 1})
    made.bind(N)
    made.bind(M)
    return made


@pytest.mark.parametrize(
    ("expr", "value"),
    [
        (N * 2 + M, 17),
        (N // 2 - M % 4, -1),
        (tir.minimum(N, M), 5),
        (tir.maximum(N, M), 7),
        (tir.Select(N < M, N, M), 5),
    ],
)
def test_expressions_mean_the_same(table, expr, value):
    assert evaluate(table.postfix(expr), [5, 7]) == value


def test_equal_dimensions_have_one_number(table):
    assert table.number(N + N) == table.number(N * 2)
    assert table.dims((tir.Const(3), N, N * 2)) == (3, -1, -1 - table.number(N * 2))


def test_a_dimension_is_known_when_all_its_sizes_are(table):
    assert table.segment([N]) == 0
    assert table.segment([N, N + M]) == 1


def test_what_no_program_can_compute_is_a_bug(table):
    with raises_code("I140"):
        table.postfix(tir.Cast(f32, N))
