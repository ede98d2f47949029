"""Nodes that no output needs are dropped, with the constants that only they read."""

from __future__ import annotations

import numpy as np

from tests.rewriting import assert_same_meaning
from tilewright.dtypes import f32, i64
from tilewright.frontend.onnx.sorting import chosen_places
from tilewright.graph import Builder, Graph, verify_graph
from tilewright.graph.interpret import interpret
from tilewright.graph.loops import Turn, loop
from tilewright.graph.passes.dead import drop_dead
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call


def half_dead() -> Graph:
    """`b` and the two nodes in front of it are needed by nobody."""
    b = Builder("half")
    x = b.input("x", f32, (2, 3))
    b.input("unused", f32, (4,))
    kept = b.map(lambda v: call("exp", v), x)
    dead = b.map(lambda v, w: v * w, x, b.constant(np.ones(3, np.float32), "w"))
    b.map(lambda v: v + 1.0, dead)
    return Graph("half", tuple(b.inputs), (kept,), tuple(b.nodes), b.constants, ("y",))


def test_nodes_and_constants_that_nobody_needs_go_and_inputs_stay(golden):
    before = half_dead()
    after = verify_graph(drop_dead(before))
    assert_same_meaning(before, after)
    assert golden == f"Before: {before}\n\nAfter: {after}"


def test_what_an_output_needs_stays():
    b = Builder("chain")
    x = b.input("x", f32, (2, 3))
    total = b.reduce(tir.Fold.ADD, b.map(lambda v: v * v, x), (1,))
    graph = b.graph([b.map(lambda v, s: v / s, x, total), x])
    again = drop_dead(graph)
    assert again.nodes == graph.nodes
    assert again.constants == graph.constants


def test_a_node_with_one_needed_result_keeps_all_of_them():
    b = Builder("loop")
    x, limit = b.input("x", f32, (2,)), b.input("limit", i64, ())

    def body(inner, _step, carried, _outside):
        twice = inner.map(lambda v: v + v, carried[0])
        return Turn([twice], [twice])

    last, _ = loop(b, body, limit, [x])
    graph = b.graph([last])
    assert len(graph.nodes[-1].outputs) == 2


def test_what_tells_a_size_stays():
    """The diagonal reads no place of what is not zero, and has as many rows as there are."""
    b = Builder("diagonal")
    x = b.input("x", f32, (6,))
    places = chosen_places(b, b.map(lambda v: v.ne(0.0), x))
    one = b.constant(np.float32(1), "one")
    square = (places.shape[0], places.shape[0])
    graph = b.graph([b.remap(one, square, lambda *_: (), inside=lambda i, j: i.eq(j))])
    (y,) = interpret(graph, {"x": np.array([0, 2, 0, 1, 3, 0], np.float32)})
    np.testing.assert_array_equal(y, np.eye(3, dtype=np.float32))
    assert_same_meaning(graph, drop_dead(graph))
