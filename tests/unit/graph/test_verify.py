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
