"""The bodies of ONNX functions: those of the model, and those of the standard's own operators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, overload

import onnx
from onnx import defs

from tilewright.frontend.onnx.extent import graphs_in
from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.types import type_proto
from tilewright.graph import Value

__all__ = ["CalledNodes", "LocalFunctions", "body_of", "function_body"]

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
    types = [type_proto(v) if v is not None else onnx.TypeProto() for v in inputs]
    return body_of(node.proto, domain, node.opset, types)


def body_of(
    proto: onnx.NodeProto, domain: str, opset: int, types: Sequence[onnx.TypeProto]
) -> onnx.FunctionProto | None:
    """The function by which ONNX defines an operator for inputs of these types; None for none."""
    domain, opset = STANDARD.get((domain, proto.op_type), (domain, opset))
    try:
        schema = defs.get_schema(proto.op_type, opset, domain)
    except defs.SchemaError:
        return None
    if schema.has_function:
        return _with_defaults(schema.function_body, schema)
    if schema.has_context_dependent_function:
        given = [kind.SerializeToString() for kind in types]
        body = schema.get_context_dependent_function(proto.SerializeToString(), given)
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


class CalledNodes(Sequence[onnx.NodeProto]):
    """The nodes of a function with the attributes that they take from a call, made one by one."""

    def __init__(
        self, call: onnx.NodeProto, body: onnx.FunctionProto, nodes: Sequence[onnx.NodeProto]
    ) -> None:
        self.body, self.nodes, self.call = body, nodes, call
        self.given = {a.name: a for a in body.attribute_proto} | {a.name: a for a in call.attribute}

    def __len__(self) -> int:
        return len(self.nodes)

    @overload
    def __getitem__(self, place: int) -> onnx.NodeProto: ...
    @overload
    def __getitem__(self, place: slice) -> CalledNodes: ...

    def __getitem__(self, place: int | slice) -> onnx.NodeProto | CalledNodes:
        if isinstance(place, slice):
            return CalledNodes(self.call, self.body, self.nodes[place])
        return _with_attributes(self.nodes[place], self.given)

    @property
    def size_bytes(self) -> int:
        """What the call copies: the function, and what it hands over wherever that is used."""
        sizes: dict[str, int] = {name: given.ByteSize() for name, given in self.given.items()}
        used = (sizes.get(name, 0) for node in self.nodes for name in _references(node))
        return sum(used, int(self.body.ByteSize()))


def _references(proto: onnx.NodeProto) -> Iterator[str]:
    """The attributes of a call that a node takes, also in graphs inside of it."""
    for attribute in proto.attribute:
        if attribute.ref_attr_name:
            yield attribute.ref_attr_name
        for graph in graphs_in([attribute]):
            for node in graph.node:
                yield from _references(node)


def _with_attributes(
    proto: onnx.NodeProto, given: Mapping[str, onnx.AttributeProto]
) -> onnx.NodeProto:
    """A node of a function with the attributes that are given; itself if it takes none."""
    if not any(_references(proto)):
        return proto
    made = onnx.NodeProto()
    made.CopyFrom(proto)
    del made.attribute[:]
    for attribute in proto.attribute:
        if not attribute.ref_attr_name:
            copy = made.attribute.add()
            copy.CopyFrom(attribute)
            for graph in graphs_in([copy]):
                inner = [_with_attributes(n, given) for n in graph.node]
                del graph.node[:]
                graph.node.extend(inner)
        elif attribute.ref_attr_name in given:
            copy = made.attribute.add()
            copy.CopyFrom(given[attribute.ref_attr_name])
            copy.name = attribute.name
    return made
