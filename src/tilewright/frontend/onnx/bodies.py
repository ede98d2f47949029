"""All bodies of nodes that a model has: its graph, its functions, and graphs inside of nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import onnx

from tilewright.frontend.onnx.extent import graphs_in

__all__ = ["Body", "bodies_of"]

Body: TypeAlias = onnx.GraphProto | onnx.FunctionProto


def bodies_of(model: onnx.ModelProto) -> Iterator[Body]:
    """Each body before those inside of it; a body may be changed before the next is asked for."""
    waiting: list[Body] = [model.graph]
    for function in model.functions:
        waiting += [function, *graphs_in(function.attribute_proto)]
    while waiting:
        body = waiting.pop()
        yield body
        for node in body.node:
            if node.attribute:
                waiting += graphs_in(node.attribute)
