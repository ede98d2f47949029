"""Dimensions of a graph as numbered sizes of a program."""

from __future__ import annotations

import pytest

from tests.expect import raises_code
from tilewright.dtypes import f32
from tilewright.graph.ir import TensorType, Value
from tilewright.graph.sizes import evaluate_size
from tilewright.model.sizing import SizeTable
from tilewright.runtime.program import SizeOp
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


EVERY = {
    "sum": N + M,
    "difference": N - M,
    "product": N * M,
    "quotient": (N - 9) // M,
    "remainder": (N - 9) % M,
    "least": tir.minimum(N, M),
    "greatest": tir.maximum(N, M),
    "equal": tir.Select(N.eq(M), tir.Const(1), tir.Const(0)),
    "different": tir.Select(N.ne(M), tir.Const(1), tir.Const(0)),
    "less": tir.Select(N < M, N, M * 2),
    "at most": tir.Select(N <= M, N, M * 2),
    "both": tir.Select((N < M) & (M < 7), N, M),
    "one of them": tir.Select((N < M) | (M < 2), N, M),
    "not": tir.Select(~(N < M), N, M),
}


@pytest.mark.parametrize("expr", EVERY.values(), ids=EVERY)
def test_every_operation_means_what_dimensions_mean(table, expr):
    postfix = table.postfix(expr)
    for n in (1, 3, 8):
        for m in (1, 3, 7):
            assert evaluate(postfix, [n, m]) == evaluate_size(expr, {N: n, M: m})


def test_the_operations_are_all_there():
    used = {op for expr in EVERY.values() for op, _ in _postfix(expr)}
    assert used == set(SizeOp)


def _postfix(expr):
    made = SizeTable({N: 0, M: 0})
    made.bind(N)
    made.bind(M)
    return made.postfix(expr)


def test_the_memory_of_a_value(table):
    value = Value("x", TensorType(f32, (N, tir.Const(3))))
    assert evaluate(table.bytes_of(value), [5, 7]) == 60


def test_what_must_be_equal_is_asked_once_for_each_segment(table):
    before = len(table.sizes)
    for _ in range(2):
        table.require_equal(N, tir.Const(5))
        table.require_equal(tir.Const(5), N, since=2)
        table.require_equal(N * 2, N + N)
    asked = table.sizes[before:]
    assert [(size.name, size.segment) for size in asked] == [("5 = n", 0), ("5 = n", 2)]
    assert evaluate(asked[0].value, [5, 7]) == 1
    with pytest.raises(ZeroDivisionError):
        evaluate(asked[0].value, [6, 7])


def test_what_not_every_run_can_compute_waits_for_its_branch():
    table = SizeTable({N: 0, M: 1})
    table.bind(N)
    table.bind(M)
    assert table.segment([N * 2], since=3) == 0
    assert table.segment([N - 4], since=3) == 3
    assert table.segment([N, N - 4]) == 0
    early, late = table.number(N - 4), table.number(N - 4, since=3)
    assert [table.sizes[k].segment for k in (early, late)] == [0, 3]
    assert table.sizes[early].value == table.sizes[late].value
    assert table.number(N - 4, since=3) == late
    assert table.dims((tir.Const(2), N - 4), since=3) == (2, -1 - late)
    assert table.number(N * 2, since=3) == table.number(N + N)


def test_several_dimensions_that_may_be_negative_are_looked_at_one_by_one(table):
    before = len(table.sizes)
    table.require_shape((tir.Const(3), N - 4))
    assert len(table.sizes) == before, "bytes tell"
    for _ in range(2):
        table.require_shape((N - 4, tir.Const(2), N - 9), since=2)
    asked = table.sizes[before:]
    assert [(size.name, size.segment) for size in asked] == [("n - 4 ≥ 0", 2), ("n - 9 ≥ 0", 2)]
    assert [evaluate(size.value, [9, 0]) for size in asked] == [1, 1]
    assert evaluate(asked[0].value, [5, 0]) == 1
    with pytest.raises(ZeroDivisionError):
        evaluate(asked[1].value, [5, 0])


def test_a_negative_dimension_beside_one_that_may_be_zero_is_looked_at(table):
    """No elements are no bytes, however many rows of them there were."""
    before = len(table.sizes)
    table.require_shape((M, N - 1))
    (asked,) = table.sizes[before:]
    assert evaluate(asked.value, [1, 0]) == 1
    with pytest.raises(ZeroDivisionError):
        evaluate(asked.value, [0, 0])


def test_a_check_says_whether_another_version_could_broadcast() -> None:
    table = SizeTable({N: 0, M: 0})
    table.bind(N)
    table.bind(M)
    table.require_equal(N, M, or_one=True)
    table.require_equal(N * 2, M, or_one=False)
    table.require_equal(N, tir.Const(1), or_one=True)
    table.require_equal(N, tir.Const(3), or_one=True)
    names = [size.name for size in table.sizes[2:]]
    assert names == ["m = n, or 1", "m = n * 2", "1 = n", "3 = n, or 1"]
