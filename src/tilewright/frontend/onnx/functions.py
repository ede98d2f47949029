"""The bodies of ONNX functions: those of the model, and those of the standard's own operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx
from onnx import defs

from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.types import type_proto
from tilewright.graph import Value

__all__ = ["function_body"]

LocalFunctions = Mapping[tuple[str, str], onnx.FunctionProto]


def function_body(
    local: LocalFunctions, domain: str, node: OnnxNode, inputs: Sequence[Value | None]
) -> onnx.FunctionProto | None:
    """The function that an operator stands for, None if it is primitive."""
    if (node.proto.domain, node.op) in local:
        return local[node.proto.domain, node.op]
    try:
        schema = defs.get_schema(node.op, node.opset, domain)
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
