"""An image in front of a classifier is flattened in the order in which it is stored.

Where a product with constant weights is all that reads the elements of an image in a row, their
order is free: the weights are put into the order of the layout that the image has, and flattening
it is no work, whatever the layout.

Before:  x [n, h, w, c] as nchw; y = reshape x [n, h·w·c] (a copy); z = contract(mk,nk->mn) y, w
After:   y = reshape x [n, c·h·w] (the same memory);                z = contract(mk,nk->mn) y, w′
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from tilewright.graph.ir import Array, Graph, Node, TensorType, Value, array_type
from tilewright.graph.ops import Contract, Reshape, Transpose
from tilewright.graph.sizes import as_shape, same_shape, sized
from tilewright.tensor.layout import Reorder, Split

__all__ = ["flatten_as_stored", "is_free_order"]

Order = NDArray[np.intp]


def is_free_order(graph: Graph, node: Node, readers: Sequence[Node]) -> bool:
    """Whether a node puts the elements of images in a row whose order only weights have to know."""
    if not isinstance(node.op, Reshape) or node.output in graph.outputs or not readers:
        return False
    x, flat = node.inputs[0], node.output
    joined = flat.rank == 2 and x.rank > 2 and same_shape(x.shape[:1], flat.shape[:1])
    known = sized(x.shape[1:]) is not None
    return joined and known and all(_place(graph, r, flat) is not None for r in readers)


def _place(graph: Graph, reader: Node, flat: Value) -> tuple[int, int] | None:
    """(operand, dimension) of the weights that meet the elements of a row in a product."""
    op = reader.op
    if not isinstance(op, Contract) or reader.inputs.count(flat) != 1:
        return None
    side = reader.inputs.index(flat)
    letters = (op.left, op.right)
    summed, weights = letters[side][-1], reader.inputs[1 - side]
    if summed in op.result or weights not in graph.constants:
        return None
    at = letters[1 - side].find(summed)
    return None if at < 0 else (1 - side, at)


def flatten_as_stored(graph: Graph) -> Graph:
    """The graph with images flattened as they lie in memory: see the picture above."""
    consumers = graph.consumers()
    nodes: list[Node] = []
    constants: dict[Value, Array] = dict(graph.constants)
    orders: dict[Value, Order] = {}
    for node in graph.nodes:
        readers = consumers.get(node.outputs[0], [])
        if is_free_order(graph, node, readers) and _is_in_order(node.inputs[0]):
            orders[node.output] = _order(node.inputs[0])
            nodes += _in_place(node, node.inputs[0])
        else:
            nodes.append(_with_weights(graph, node, orders, constants))
    if not orders:
        return graph
    made = Graph(
        graph.name, graph.inputs, graph.outputs, tuple(nodes), constants, graph.output_names
    )
    return made.with_nodes(nodes)


def _is_in_order(x: Value) -> bool:
    """Whether a value is stored in another order, and nothing else."""
    return bool(x.layout) and all(isinstance(step, Split | Reorder) for step in x.layout)


def _order(x: Value) -> Order:
    """For each element of a row in memory, its place in the row that is meant."""
    sizes = sized(x.shape[1:]) or ()
    places: Array = np.arange(prod(sizes)).reshape(1, *sizes)
    for step in x.layout:
        places = step.pack(places)
    return places.ravel()


def _in_place(node: Node, x: Value) -> list[Node]:
    """Views from an image to its row in memory: one for each step of its layout, and the row."""
    found: list[Node] = []
    for k, step in enumerate(x.layout):
        shape = as_shape(step.shape(x.shape))
        op = Transpose(step.order) if isinstance(step, Reorder) else Reshape(shape)
        name = f"{node.output.name}_{k}"
        part = Value(name, TensorType(x.dtype, shape, x.layout[1:]))
        found.append(Node(op, (x,), (part,), node.label))
        x = part
    return [*found, replace(node, inputs=(x,))]


def _with_weights(
    graph: Graph, node: Node, orders: Mapping[Value, Order], constants: dict[Value, Array]
) -> Node:
    """A reader of rows with its weights in their order; any other node as it is."""
    flat = next((v for v in node.inputs if v in orders), None)
    place = None if flat is None else _place(graph, node, flat)
    if flat is None or place is None:
        return node
    side, at = place
    weights = node.inputs[side]
    held = graph.constants[weights].take(orders[flat], at)
    made = Value(f"{weights.name}_{flat.name}", array_type(held))
    constants[made] = held
    inputs = tuple(made if k == side else v for k, v in enumerate(node.inputs))
    return replace(node, inputs=inputs)
