"""Nodes in an order in which they can run: behind everything that they read.

Files must have such an order, and some have not; engines that sort them run them all the same. What
stands right already is not touched, and nodes that wait for each other in a circle end in an error
(M004). Linear in the nodes and what they read, times the depth of graphs inside of graphs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NoReturn

import onnx

from tilewright.frontend.onnx.bodies import Body, bodies_of
from tilewright.frontend.onnx.check import Found
from tilewright.frontend.onnx.notes import Notes

__all__ = ["in_order"]

_GRAPH: Final = onnx.AttributeProto.GRAPH
_GRAPHS: Final = onnx.AttributeProto.GRAPHS


def in_order(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with sorted nodes, also inside of nodes; the same one if there is nothing to do."""
    if _is_ordered(model):
        return model
    own = onnx.ModelProto()
    own.CopyFrom(model)
    for body in bodies_of(own):
        _sort(own, body)
    return own


def _is_ordered(model: onnx.ModelProto) -> bool:
    """Whether no name is read before it is made; on the way of every model, so in one walk."""
    waiting: list[Sequence[onnx.NodeProto]] = [model.graph.node]
    waiting += [function.node for function in model.functions]
    waiting += [g.node for f in model.functions for g in _graphs(f.attribute_proto)]
    while waiting:
        read: set[str] = set()
        for node in waiting.pop():
            read.update(node.input)
            if node.attribute:
                for graph in _graphs(node.attribute):
                    waiting.append(graph.node)
                    read.update(_read_inside(graph))
            if not read.isdisjoint(node.output) and any(n and n in read for n in node.output):
                return False
    return True


def _graphs(attributes: Sequence[onnx.AttributeProto]) -> Iterator[onnx.GraphProto]:
    """The graphs of attributes that say that they are some: no others are ever imported."""
    for attribute in attributes:
        kind = attribute.type
        if kind == _GRAPH:
            yield attribute.g
        elif kind == _GRAPHS:
            yield from attribute.graphs


def _read_inside(graph: onnx.GraphProto) -> Iterator[str]:
    """The names that a graph inside of a node takes from around it."""
    own = {info.name for info in (*graph.input, *graph.initializer)}
    own |= {tensor.values.name for tensor in graph.sparse_initializer}
    own |= {"", *(name for node in graph.node for name in node.output)}
    for node in graph.node:
        yield from (name for name in node.input if name not in own)
        for inner in _graphs(node.attribute):
            yield from (name for name in _read_inside(inner) if name not in own)
    yield from (info.name for info in graph.output if info.name not in own)


def _sort(model: onnx.ModelProto, body: Body) -> None:
    nodes = list(body.node)
    order = _order(model, nodes)
    if order != list(range(len(nodes))):
        turned = onnx.GraphProto()
        turned.node.extend(nodes[k] for k in order)
        del body.node[:]
        body.node.extend(turned.node)


def _order(model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto]) -> list[int]:
    """Each node behind those that it needs, and else as it stood."""
    makers = {name: k for k, node in enumerate(nodes) for name in node.output if name}
    order: list[int] = []
    is_open, is_done = bytearray(len(nodes)), bytearray(len(nodes))
    for first in range(len(nodes)):
        waiting = [first]
        while waiting:
            k = waiting[-1]
            if is_open[k]:  # all that it needs stands before it now
                waiting.pop()
                if not is_done[k]:
                    is_done[k] = True
                    order.append(k)
                continue
            is_open[k] = True
            needs = _needs(nodes[k], makers)
            if any(is_open[need] and not is_done[need] for need in needs):
                _refuse(model, nodes[k])
            waiting += [need for need in reversed(needs) if not is_done[need]]
    return order


def _needs(node: onnx.NodeProto, makers: dict[str, int]) -> list[int]:
    read = dict.fromkeys(node.input)
    for graph in _graphs(node.attribute):
        read.update(dict.fromkeys(_read_inside(graph)))
    return [makers[name] for name in read if name in makers]


def _refuse(model: onnx.ModelProto, node: onnx.NodeProto) -> NoReturn:
    notes, opsets = Notes(model), {o.domain: int(o.version) for o in model.opset_import}
    reason = "it needs a result that needs its own"
    notes.add_broken(*notes.describe(Found(node, "", opsets), {}, reason))
    notes.fail()
