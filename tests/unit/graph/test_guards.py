"""What a graph takes conditions on sizes for, and what it notes of that."""

from __future__ import annotations

import pytest

from tilewright.dtypes import f32
from tilewright.graph import Builder
from tilewright.graph.guards import Guards, decided, holds, is_one
from tilewright.graph.nested import Inner
from tilewright.tensor import ir as tir
from tilewright.tensor.build import select

N, M = tir.Var("n"), tir.Var("m")


def builder(flipped=()) -> Builder:
    b = Builder("guarded")
    b.guards = Guards(flipped)
    b.input("x", f32, (N, M))
    b.guards.named.update((N, M))
    b.guards.place = "drop"
    return b


def keys(b: Builder) -> list[tuple[str, bool]]:
    assert b.guards is not None
    return [(guard.key, guard.holds) for guard in b.guards.noted]


def test_sizes_are_taken_as_most_runs_have_them():
    b = builder()
    assert not is_one(b, N, "dimension 0")
    assert is_one(b, tir.minimum(N, 1), "the last row")
    assert holds(b, tir.Const(1) < M, "a branch")
    assert keys(b) == [("n == 1", False), ("min(1, n) == 1", True), ("1 < m", True)]


def test_a_condition_is_noted_once():
    b = builder()
    assert [is_one(b, N + 1, "a"), is_one(b, N + 1, "b"), holds(b, N.eq(0), "c")] == [False] * 3
    assert keys(b) == [("n == 0", False)]


def test_what_is_known_needs_no_guard():
    b = builder()
    assert is_one(b, tir.Const(1), "one")
    assert not is_one(b, N * 2, "an even size")
    assert not holds(b, N.eq(-1), "a negative size")
    assert keys(b) == []


def test_a_branch_knows_its_condition():
    b = builder()
    inner = Inner(b, "then")
    inner.assume(b.sizes([N.eq(1)]), holds=True)
    assert is_one(Inner(inner, "deeper"), N, "dimension 0")
    assert not is_one(inner, M, "dimension 1")
    assert keys(b) == [("m == 1", False)]


@pytest.mark.parametrize("flipped", [(), ("n == 1",)])
def test_a_version_has_other_answers(flipped):
    b = builder(flipped)
    assert is_one(b, N, "dimension 0") == bool(flipped)
    assert not is_one(b, M, "dimension 1")


def test_sizes_that_data_tell_are_known_by_the_node_that_asks():
    found = tir.Var("found7")
    b = builder(["dimension 1 = 1 of drop"])
    assert is_one(b, found, "dimension 1")
    assert keys(b) == [("dimension 1 = 1 of drop", True)]


def test_integers_that_sizes_choose():
    b = builder()
    zero, one, two = map(tir.Const, range(3))
    chosen = select(N.eq(1), zero, select(M.eq(1), one, two))
    assert decided(b, [tir.Const(4), chosen], "axes") == [4, 2]
    assert decided(b, [N], "axes") is None
    assert decided(b, None, "axes") is None
    assert decided(builder(["n == 1"]), [chosen], "axes") == [0]


def test_a_graph_that_cannot_be_may_be_with_other_answers():
    b = builder()
    is_one(b, N, "dimension 0")
    is_one(b, M, "dimension 1")
    assert b.guards is not None
    every = {"n == 1", "m == 1"}
    assert list(b.guards.others()) == [every, {"n == 1"}, {"m == 1"}]
    assert list(Guards(["n == 1"]).others()) == []


def test_without_guards_nothing_is_one_that_is_not_known():
    assert not is_one(Builder("plain"), N, "dimension 0")
