"""ONNX models as text, for people: what was read, before anything is made of it."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from tilewright.frontend.onnx.extent import graphs_in
from tilewright.shown import shown

__all__ = ["print_model"]


def print_model(model: onnx.ModelProto) -> str:
    """The listing of a model: types of inputs and weights, and a line for each node."""
    domains = ", ".join(f"{shown(o.domain) or 'ai.onnx'} {o.version}" for o in model.opset_import)
    lines = [f"model {shown(model.graph.name)} (IR version {model.ir_version}; opset {domains})"]
    lines += _graph(model.graph, "  ")
    for function in model.functions:
        inputs = ", ".join(map(shown, function.input))
        lines.append(f"function {shown(function.domain)}.{shown(function.name)}({inputs})")
        lines += (line for node in function.node for line in _node(node, "  "))
        lines.append(f"  output   {', '.join(map(shown, function.output))}")
    return "\n".join(lines)


def _graph(graph: onnx.GraphProto, indent: str) -> Iterator[str]:
    for value in graph.input:
        yield f"{indent}input    {shown(value.name)}: {_type(value.type)}"
    for tensor in graph.initializer:
        dims = ", ".join(map(str, tensor.dims))
        yield f"{indent}constant {shown(tensor.name)}: {_element(tensor.data_type)}[{dims}]"
    for sparse in graph.sparse_initializer:
        yield f"{indent}constant {shown(sparse.values.name)}: sparse{list(sparse.dims)}"
    for node in graph.node:
        yield from _node(node, indent)
    for value in graph.output:
        yield f"{indent}output   {shown(value.name)}: {_type(value.type)}"


def _node(node: onnx.NodeProto, indent: str) -> Iterator[str]:
    domain = f"{shown(node.domain)}." if node.domain else ""
    results = ", ".join(map(shown, node.output))
    inputs = ", ".join(map(shown, node.input))
    attributes = ", ".join(map(_attribute, node.attribute))
    label = f"  # {shown(node.name)}" if node.name else ""
    written = f" [{attributes}]" if attributes else ""
    yield f"{indent}{results} = {domain}{shown(node.op_type)}({inputs}){written}{label}"
    for body in graphs_in(node.attribute):
        yield f"{indent}  graph {shown(body.name)}"
        yield from _graph(body, f"{indent}    ")


def _attribute(attribute: onnx.AttributeProto) -> str:
    kinds = onnx.AttributeProto
    name, kind = shown(attribute.name), attribute.type
    if kind == kinds.TENSOR:
        tensor = attribute.t
        return f"{name}={_element(tensor.data_type)}{list(tensor.dims)}"
    plain = (kinds.INT, kinds.FLOAT, kinds.INTS, kinds.FLOATS, kinds.STRING, kinds.STRINGS)
    if kind not in plain:
        return name
    value = onnx.helper.get_attribute_value(attribute)
    return f"{name}={shown(value if isinstance(value, int | float | bytes) else list(value))}"


def _element(kind: int) -> str:
    known = onnx.TensorProto.DataType.values()
    return onnx.TensorProto.DataType.Name(kind).lower() if kind in known else str(kind)


def _type(kind: onnx.TypeProto) -> str:
    if kind.HasField("tensor_type"):
        tensor = kind.tensor_type
        if not tensor.HasField("shape"):
            return f"{_element(tensor.elem_type)}[…]"
        dims = ", ".join(shown(d.dim_param) or str(d.dim_value) for d in tensor.shape.dim)
        return f"{_element(tensor.elem_type)}[{dims}]"
    return str(kind.WhichOneof("value") or "of no type").removesuffix("_type")
