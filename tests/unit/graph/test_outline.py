"""Outlines: all that a listing shows, and nothing of the weights."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tilewright.dtypes import boolean, f32, i64
from tilewright.graph import Builder, Graph, verify_graph
from tilewright.graph.loops import Turn, branch, loop
from tilewright.graph.ops.control import If, Loop
from tilewright.graph.outline import outline

SIDE = 16


def _nested() -> Graph:
    """Weights outside, in a branch and in a loop."""
    b = Builder("nested")
    x, flag = b.input("x", f32, (SIDE, SIDE)), b.input("flag", boolean, ())
    limit = b.input("limit", i64, ())

    def weights(inner, name):
        return inner.constant(np.full((SIDE, SIDE), 2, np.float32), name)

    def body(inner, _step, carried, _outside):
        return Turn([inner.matmul(carried[0], weights(inner, "in loop"))], [], None)

    (y,) = branch(
        b,
        flag,
        lambda way, seen: [way.matmul(seen(x), weights(way, "in branch"))],
        lambda _way, seen: [seen(x)],
    )
    (z,) = loop(b, body, limit, [b.matmul(y, weights(b, "outside"))])
    return verify_graph(b.graph([z]))


def _graphs(graph: Graph) -> Iterator[Graph]:
    yield graph
    for node in graph.nodes:
        match node.op:
            case If(then=then, otherwise=otherwise):
                yield from (*_graphs(then), *_graphs(otherwise))
            case Loop(body=body):
                yield from _graphs(body)


def test_constants_keep_their_types_and_hold_nothing():
    graph = _nested()
    held = [array for part in _graphs(graph) for array in part.constants.values()]
    assert sum(array.nbytes for array in held if array.base is None) >= 3 * SIDE * SIDE * 4
    outlined = verify_graph(outline(graph))
    assert str(outlined) == str(graph)
    for part in _graphs(outlined):
        for array in part.constants.values():
            assert array.size <= 1 or not any(array.strides)
