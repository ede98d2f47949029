"""The bodies of ONNX functions: those of the model, and those of the standard's own operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import onnx
from onnx import defs

from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.types import type_proto
from tilewright.graph import Value

__all__ = ["LocalFunctions", "function_body", "with_attributes"]

LocalFunctions = Mapping[tuple[str, str], onnx.FunctionProto]

STANDARD: Final = {
    ("com.microsoft", "CausalConvWithState"): ("", 27),
    ("com.microsoft", "LinearAttention"): ("", 27),
}
"""Operators that became ones of the standard as they were: its domain, and the opset."""


def function_body(
    local: LocalFunctions, domain: str, node: OnnxNode, inputs: Sequence[Value | None]
) -> onnx.FunctionProto | None:
    """The function that an operator stands for, None if it is primitive."""
    if (node.proto.domain, node.op) in local:
        return local[node.proto.domain, node.op]
    domain, opset = STANDARD.get((domain, node.op), (domain, node.opset))
    try:
        schema = defs.get_schema(node.op, opset, domain)
    except defs.SchemaError:
        return None
    if schema.has_function:
        return _with_defaults(schema.function_body, schema)
    if schema.has_context_dependent_function:
        types = [type_proto(v).SerializeToString() if v is not None else b"" for v in inputs]
        body = schema.get_context_dependent_function(node.proto.SerializeToString(), types)
        if body:
            made = onnx.FunctionProto()
            made.ParseFromString(body)
            return _with_defaults(made, schema)
    return None


def _with_defaults(body: onnx.FunctionProto, schema: defs.OpSchema) -> onnx.FunctionProto:
    """A body that knows the attributes which a call may leave out."""
    made = onnx.FunctionProto()
    made.CopyFrom(body)
    defaults = [a.default_value for a in schema.attributes.values()]
    made.attribute_proto.extend(value for value in defaults if value.name)
    return made


def _graphs(attribute: onnx.AttributeProto) -> list[onnx.GraphProto]:
    return [attribute.g] if attribute.HasField("g") else list(attribute.graphs)


def with_attributes(
    proto: onnx.NodeProto, call: onnx.NodeProto, body: onnx.FunctionProto
) -> onnx.NodeProto:
    """A node of a function with the attributes that it takes from the call."""
    given = {a.name: a for a in body.attribute_proto} | {a.name: a for a in call.attribute}
    made = onnx.NodeProto()
    made.CopyFrom(proto)
    del made.attribute[:]
    for attribute in proto.attribute:
        if not attribute.ref_attr_name:
            copy = made.attribute.add()
            copy.CopyFrom(attribute)
            for graph in _graphs(copy):
                inner = [with_attributes(n, call, body) for n in graph.node]
                del graph.node[:]
                graph.node.extend(inner)
        elif attribute.ref_attr_name in given:
            copy = made.attribute.add()
            copy.CopyFrom(given[attribute.ref_attr_name])
            copy.name = attribute.name
    return made
