"""What a graph means, node by node, and which arrays it takes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.expect import raises_code
from tilewright.dtypes import f32
from tilewright.graph import Builder, Graph, interpret
from tilewright.graph.interpret import bind_sizes
from tilewright.graph.ir import Node, Value
from tilewright.graph.ops.host import Host
from tilewright.tensor import ir as tir

N, S = tir.Var("n"), tir.Var("s")


def sums() -> Graph:
    b = Builder("sums")
    x, y = b.input("x", f32, (N, S, 4)), b.input("y", f32, (S, 4))
    both = b.map(lambda p, q: p + q, x, y)
    flat = b.reshape(both, (N * S, 4))
    return b.graph([b.reduce(tir.Fold.ADD, flat, (0,)), b.sizes((N, S))], ["total", "shape"])


def arrays(n: int, s: int) -> dict[str, np.ndarray]:
    return {"x": np.ones((n, s, 4), np.float32), "y": np.ones((s, 4), np.float32)}


@pytest.mark.parametrize(("n", "s"), [(1, 1), (2, 5), (0, 3)])
def test_symbolic_sizes_come_from_the_arrays(n, s):
    total, shape = interpret(sums(), arrays(n, s))
    assert total.tolist() == [[2.0 * n * s] * 4]
    assert shape.tolist() == [n, s]
    assert bind_sizes(sums(), arrays(n, s)) == {N: n, S: s}


WRONG = {
    "a number": {"x": np.ones((2, 3, 5), np.float32)},
    "a size that another input told": {"y": np.ones((4, 4), np.float32)},
    "the rank": {"y": np.ones((3, 4, 1), np.float32)},
    "fewer dimensions": {"y": np.ones(4, np.float32)},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_arrays_of_other_shapes_are_refused(wrong):
    (name,) = wrong
    with raises_code("G201", facts={"value": name}):
        interpret(sums(), {**arrays(2, 3), **wrong})


def test_every_value_is_watched_in_order():
    seen = []
    graph = sums()
    interpret(graph, arrays(2, 3), watch=lambda value, array: seen.append((value, array.shape)))
    assert [value for value, _ in seen] == [v for node in graph.nodes for v in node.outputs]
    assert (2, 3, 4) in [shape for _, shape in seen]


def test_a_result_of_another_shape_than_its_operator_says_is_refused():
    """Such as that of a Python function: its size must be the same wherever it is named."""
    b = Builder("host")
    x = b.input("x", f32, (N,))
    kind = x.type
    op = Host("onnx", b"", "half", (kind,), lambda a: [a[::2]])
    graph = Graph("host", (x,), (out := Value("y", kind),), (Node(op, (x,), (out,)),))
    assert interpret(graph, {"x": np.ones(1, np.float32)})[0].shape == (1,)
    with raises_code("G201", facts={"value": "y", "found": [2]}):
        interpret(graph, {"x": np.ones(4, np.float32)})


def test_sizes_of_the_outside_are_asked_for():
    b = Builder("inner")
    x = b.input("x", f32, (2,))
    graph = b.graph([b.expand(x, (S, 2))])
    found = interpret(graph, {"x": np.ones(2, np.float32)}, outer={S: 3}.__getitem__)
    assert found[0].shape == (3, 2)
