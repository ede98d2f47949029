"""The parts of a model that can be changed, and numbers to put there."""

from __future__ import annotations

from typing import Final

import onnx
from onnx import AttributeProto, TensorProto

__all__ = ["EXTREMES", "NUMBERS", "attributes", "graphs", "infos", "nodes", "tensors"]

NUMBERS: Final = (0, 1, 2, 3, 7, 17, 255, 4096, 65536, 10**6, 10**9, 10**12, 2**31 - 1, 2**31)
EXTREMES: Final = (-1, -2, -(2**31), -(2**63), 2**32, 2**40, 2**62, 2**63 - 1)


def graphs(model: onnx.ModelProto) -> list[onnx.GraphProto]:
    """All graphs, those inside of nodes included."""
    found, waiting = [], [model.graph]
    while waiting:
        graph = waiting.pop()
        found.append(graph)
        for node in graph.node:
            for attribute in node.attribute:
                waiting += [attribute.g] if attribute.HasField("g") else []
    return found


def nodes(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    """All nodes, those of functions included."""
    own = [node for graph in graphs(model) for node in graph.node]
    return own + [node for function in model.functions for node in function.node]


def tensors(model: onnx.ModelProto) -> list[TensorProto]:
    """Weights, and tensors in attributes."""
    own = [tensor for graph in graphs(model) for tensor in graph.initializer]
    return own + [a.t for n in nodes(model) for a in n.attribute if a.HasField("t")]


def infos(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """What is said of values."""
    return [i for g in graphs(model) for i in (*g.input, *g.output, *g.value_info)]


def attributes(model: onnx.ModelProto) -> list[AttributeProto]:
    """Attributes of all nodes."""
    return [attribute for node in nodes(model) for attribute in node.attribute]
