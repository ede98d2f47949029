"""A graph without what its constants hold: what is left to look at once weights are packed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tilewright.graph.ir import Array, Graph, Node
from tilewright.graph.ops.control import If, Loop

__all__ = ["outline"]


def outline(graph: Graph) -> Graph:
    """The same values and operators; constants keep their types, and single numbers themselves."""
    constants = {value: _outlined(array) for value, array in graph.constants.items()}
    return replace(graph, nodes=tuple(map(_without, graph.nodes)), constants=constants)


def _outlined(array: Array) -> Array:
    return array if array.size <= 1 else np.broadcast_to(np.zeros((), array.dtype), array.shape)


def _without(node: Node) -> Node:
    match node.op:
        case If(then=then, otherwise=otherwise) as op:
            return replace(node, op=replace(op, then=outline(then), otherwise=outline(otherwise)))
        case Loop(body=body) as op:
            return replace(node, op=replace(op, body=outline(body)))
    return node
