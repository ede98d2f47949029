"""Generated accessors agree with the fields of every node class."""

import pytest
from hypothesis import given

from tilewright.dtypes import f32
from tilewright.tensor import ir as tir
from tilewright.tensor.fields import children_of, rebuild
from tilewright.tensor.node import Node
from tilewright.tensor.visit import free_vars, walk
from tilewright.testing.strategies import programs

X, Y = tir.Var("x"), tir.Var("y")
A = tir.Buffer("A", (tir.Const(4),), f32)
STORE = tir.Store(A, (X,), A[Y])
BLOCK = tir.Block("b", (tir.Iter(Y, tir.Const(4)),), (X,), (), (), tir.Store(A, (Y,), A[Y]))

NODES = [
    (tir.Const(1), ()),
    (X, ()),
    (A, ()),
    (X + Y, (X, Y)),
    (tir.Select(X < Y, X, Y), (X < Y, X, Y)),
    (A[X], (X,)),
    (tir.Cover(((4, X), (2, Y))), (X, Y)),
    (tir.TileSize(tir.Cover(((4, X),)), Y), (tir.Cover(((4, X),)), Y)),
    (tir.If(X < Y, STORE), (X < Y, STORE)),
    (tir.If(X < Y, STORE, tir.Barrier()), (X < Y, STORE, tir.Barrier())),
    (tir.For(X, Y, STORE), (X, Y, STORE)),
    (tir.Seq((STORE, tir.Barrier())), (STORE, tir.Barrier())),
    (tir.Alloc(A, STORE), (STORE,)),
    (tir.Barrier(), ()),
    (BLOCK, (BLOCK.iters[0], X, BLOCK.body, tir.TRUE)),
]


@pytest.mark.parametrize(("node", "expected"), NODES, ids=lambda v: type(v).__name__)
def test_children_in_order(node, expected):
    assert children_of[type(node)](node) == expected


@pytest.mark.parametrize("node", [node for node, _ in NODES], ids=lambda v: type(v).__name__)
def test_rebuild_keeps_what_does_not_change(node):
    assert rebuild[type(node)](node, lambda child: child) is node


def test_rebuild_lets_the_dtype_follow():
    vector = tir.Ramp(tir.Const(0), tir.Const(1), 8)
    assert rebuild[tir.Load](A[X], lambda _: vector).dtype == f32.vector(8)
    doubled = rebuild[tir.Add](X + Y, lambda _: vector)
    assert doubled.dtype.lanes == 8


@given(program=programs())
def test_free_variables_are_those_used_and_not_bound(program):
    for node in walk(program.func.body):
        assert free_vars(node) == _by_hand(node)


def _by_hand(node: Node) -> set[tir.Var]:
    nodes = list(walk(node))
    bound = {n.var for n in nodes if isinstance(n, tir.For | tir.Iter | tir.Let)}
    return {n for n in nodes if isinstance(n, tir.Var)} - bound
