"""Graphs that are not well formed are refused."""

from __future__ import annotations

import dataclasses

import numpy as np

from tests.expect import raises_code
from tilewright.dtypes import f32, f64
from tilewright.graph import Builder, Graph, Node, Value, verify_graph
from tilewright.graph.ir import TensorType
from tilewright.graph.sizes import as_shape
from tilewright.tensor import ir as tir
from tilewright.tensor.layout import Reorder, Split

N = tir.Var("n")


def chain() -> Graph:
    """Two maps in a row, and a constant."""
    b = Builder("chain")
    x, c = b.input("x", f32, (N, 3)), b.constant(np.ones(3, np.float32), "c")
    return b.graph([b.map(lambda v: v + 1.0, b.map(lambda v, k: v * k, x, c))])


def with_type(graph: Graph, dtype=f32, shape=(N, 3)) -> Graph:
    """The last node says another type than its operator gives."""
    *front, last = graph.nodes
    value = Value("wrong", TensorType(dtype, as_shape(shape)))
    return graph.with_nodes([*front, dataclasses.replace(last, outputs=(value,))], [value])


def test_well_formed_graphs_are_given_back():
    graph = chain()
    assert verify_graph(graph) is graph


def test_values_are_computed_before_they_are_read():
    graph = chain()
    with raises_code("G101", facts={"value": "map"}):
        verify_graph(graph.with_nodes(graph.nodes[::-1]))


def test_outputs_are_computed():
    graph = chain()
    with raises_code("G101", facts={"value": "map_1"}):
        verify_graph(graph.with_nodes(graph.nodes[:-1]))


def test_values_are_computed_once():
    graph = chain()
    with raises_code("G102", facts={"value": "map"}):
        verify_graph(graph.with_nodes([graph.nodes[0], *graph.nodes]))


def test_inputs_are_not_computed():
    graph = chain()
    first = dataclasses.replace(graph.nodes[0], outputs=graph.inputs)
    with raises_code("G102", facts={"value": "x"}):
        verify_graph(graph.with_nodes([first, graph.nodes[1]]))


def test_an_element_type_is_that_of_the_operator():
    with raises_code("G103", text="the element type of `wrong` is f64", facts={"expected": f32}):
        verify_graph(with_type(chain(), dtype=f64))


def test_a_shape_is_that_of_the_operator():
    verify_graph(with_type(chain(), shape=(N * 2 // 2, 3)))
    with raises_code("G103", facts={"what": "shape", "expected": "f32[n, 3]"}):
        verify_graph(with_type(chain(), shape=(N + 1, 3)))


def test_an_operator_has_its_number_of_results():
    graph = chain()
    *front, last = graph.nodes
    more = Node(last.op, last.inputs, (*last.outputs, Value("more", last.output.type)))
    with raises_code("G103", facts={"expected": 1, "found": 2}):
        verify_graph(graph.with_nodes([*front, more]))


def test_a_constant_has_the_type_of_its_array():
    graph = chain()
    (value,) = graph.constants
    for array in (np.ones(3), np.ones(4, np.float32)):
        with raises_code("G103", facts={"value": "c"}):
            verify_graph(dataclasses.replace(graph, constants={value: array}))


def with_layout(graph: Graph, name: str, *steps) -> Graph:
    def stored(value: Value) -> Value:
        return Value(name, dataclasses.replace(value.type, layout=steps))

    chosen = {v: stored(v) for n in graph.nodes for v in (*n.inputs, *n.outputs) if v.name == name}
    nodes = [
        dataclasses.replace(
            n,
            inputs=tuple(chosen.get(v, v) for v in n.inputs),
            outputs=tuple(chosen.get(v, v) for v in n.outputs),
        )
        for n in graph.nodes
    ]
    inputs = tuple(chosen.get(v, v) for v in graph.inputs)
    constants = {chosen.get(v, v): a for v, a in graph.constants.items()}
    outputs = tuple(chosen.get(v, v) for v in graph.outputs)
    return Graph(graph.name, inputs, outputs, tuple(nodes), constants)


def test_layouts_fit_and_are_printed():
    graph = verify_graph(with_layout(chain(), "map", Split(1, 3), Reorder((1, 0, 2))))
    (value,) = graph.nodes[0].outputs
    assert str(value) == "map: f32[n, 3] as split(1, 3) reorder([1, 0, 2])"
    assert value.stored_shape == (tir.Const(1), N, tir.Const(3))


def test_layouts_that_do_not_fit():
    for step, reason in (
        (Split(2, 3), "split(2, 3): there is no dimension 2"),
        (Split(1, 2), "split(1, 2): 2 does not divide 3"),
        (Reorder((0, 0)), "reorder([0, 0]): not an order of 2 dimensions"),
    ):
        with raises_code("G104", facts={"value": "map", "reason": reason}):
            verify_graph(with_layout(chain(), "map", step))


def test_what_comes_in_and_goes_out_is_stored_as_it_is():
    for name in ("x", "c", "map_1"):
        with raises_code("G104", facts={"value": name}):
            verify_graph(with_layout(chain(), name, Split(0, 1)))
