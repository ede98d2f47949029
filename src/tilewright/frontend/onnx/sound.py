"""Whether a model is what it says, before anything believes it: names, tensors, types.

Every graph names a value once, names are texts, tensors hold what their dimensions ask for. What
operators mean is not looked at here, and how large the model is was counted before (`extent.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import NoReturn

import onnx

from tilewright.errors import ModelError
from tilewright.frontend.onnx.extent import graphs_in
from tilewright.frontend.onnx.limits import MAX_NAME, MAX_RANK
from tilewright.frontend.onnx.tensors import (
    M002,
    is_external,
    is_type,
    problem_of,
    sparse_problem_of,
)
from tilewright.graph.folding import MAX_ELEMENTS
from tilewright.shown import shown

__all__ = ["require_sound"]

_INNER: Mapping[str | None, Callable[[onnx.TypeProto], onnx.TypeProto]] = {
    "sequence_type": lambda proto: proto.sequence_type.elem_type,
    "optional_type": lambda proto: proto.optional_type.elem_type,
    "map_type": lambda proto: proto.map_type.value_type,
}
"""What a type is made of, where it is not that of a tensor."""

HINT = "export the model again; `onnx.checker` may say more"


def require_sound(model: onnx.ModelProto) -> list[onnx.TensorProto]:
    """Refuse a model that contradicts itself (M002); gives the tensors with data elsewhere."""
    walk = _Walk()
    walk.opsets("the model", model.opset_import)
    walk.names("the model", [model.graph.name])
    walk.unique("the model", "function", map(_function_name, model.functions))
    walk.nodes("the model", model.graph.node, walk.graph("the model", model.graph))
    for function in model.functions:
        walk.function(function)
    return walk.external


class _Walk:
    def __init__(self) -> None:
        self.external: list[onnx.TensorProto] = []

    def function(self, function: onnx.FunctionProto) -> None:
        place = f"the function `{shown(function.name)}`"
        names = (function.name, function.domain, function.overload)
        names += (*function.input, *function.output)
        defaults = [attribute.name for attribute in function.attribute_proto]
        self.names(place, (*names, *function.attribute))
        self.unique(place, "attribute", (*function.attribute, *defaults))
        self.opsets(place, function.opset_import)
        self.unique(place, "input", function.input)
        for attribute in function.attribute_proto:
            self.attribute(place, attribute)
        for inner in graphs_in(function.attribute_proto):
            at = f"a graph that {place} has unless it is told"
            self.nodes(at, inner.node, self.graph(at, inner))
        self.nodes(place, function.node, set(function.input))

    def opsets(self, place: str, imports: Iterable[onnx.OperatorSetIdProto]) -> None:
        for entry in imports:
            self.names(place, [entry.domain])
            if not 0 <= entry.version < 1 << 31:
                domain = shown(entry.domain or "ai.onnx")
                self.fail(place, f"it asks for version {entry.version} of `{domain}`")

    def nodes(self, place: str, nodes: Iterable[onnx.NodeProto], taken: set[str]) -> None:
        """Look at nodes, and at all graphs inside of them; `taken` are names of their graph."""
        waiting = [(place, nodes, taken)]
        while waiting:
            here, members, names = waiting.pop()
            for node in members:
                self.node(here, node, names)
                for inner in graphs_in(node.attribute):
                    at = f"the graph in `{shown(node.name or node.op_type)}`"
                    waiting.append((at, inner.node, self.graph(at, inner)))

    def graph(self, place: str, graph: onnx.GraphProto) -> set[str]:
        """Look at what stands in a graph beside its nodes; the names that are taken."""
        weights = [tensor.name for tensor in graph.initializer]
        weights += [tensor.values.name for tensor in graph.sparse_initializer]
        inputs = [info.name for info in graph.input]
        self.names(place, weights)
        self.unique(place, "weight", weights)
        self.unique(place, "input", inputs)
        self.unique(place, "output", (info.name for info in graph.output))
        for tensor in graph.initializer:
            self.tensor(tensor)
        for sparse in graph.sparse_initializer:
            self.sparse(sparse)
        for info in chain(graph.input, graph.output, graph.value_info):
            self.names(place, (info.name,))
            self.type(info)
        return {*weights, *inputs}

    def node(self, place: str, node: onnx.NodeProto, names: set[str]) -> None:
        self.names(place, (node.name, node.op_type, node.domain, *node.input, *node.output))
        if node.overload:
            self.names(place, [node.overload])
        for name in node.output:
            if name and name in names:
                self.fail(_called(node), f"its result `{shown(name)}` has a name that is taken")
            names.add(name)
        if not node.attribute:
            return
        at = _called(node)
        self.unique(at, "attribute", [attribute.name for attribute in node.attribute])
        for attribute in node.attribute:
            self.attribute(at, attribute)

    def attribute(self, place: str, attribute: onnx.AttributeProto) -> None:
        self.names(place, (attribute.name, attribute.ref_attr_name))
        if attribute.type == onnx.AttributeProto.UNDEFINED and not attribute.ref_attr_name:
            self.fail(place, f"its attribute `{shown(attribute.name)}` has no type")
        for tensor in (*([attribute.t] if attribute.HasField("t") else ()), *attribute.tensors):
            self.tensor(tensor)
        if attribute.HasField("sparse_tensor"):
            self.sparse(attribute.sparse_tensor)
        for sparse in attribute.sparse_tensors:
            self.sparse(sparse)

    def tensor(self, tensor: onnx.TensorProto) -> None:
        self.names("a tensor", [tensor.name])
        problem = problem_of(tensor)
        if problem:
            self.fail(f"the tensor `{shown(tensor.name)}`", problem)
        if is_external(tensor):
            for entry in tensor.external_data:
                self.names(f"the tensor `{shown(tensor.name)}`", (entry.key, entry.value))
            self.external.append(tensor)

    def sparse(self, tensor: onnx.SparseTensorProto) -> None:
        self.names("a tensor", [tensor.values.name])
        problem = sparse_problem_of(tensor)
        if problem:
            self.fail(f"the sparse tensor `{shown(tensor.values.name)}`", problem)

    def type(self, info: onnx.ValueInfoProto) -> None:
        """Dimensions that make sense; protobuf itself bounds how deep types are nested."""
        proto = info.type
        while (kind := proto.WhichOneof("value")) in _INNER:
            proto = _INNER[kind](proto)
        if kind != "tensor_type":
            return
        number, dims = proto.tensor_type.elem_type, proto.tensor_type.shape.dim
        if number and not is_type(number):  # zero says nothing, as many outputs do
            problem = f"its element type is number {number}, which has no meaning"
            self.fail(f"`{shown(info.name)}`", problem)
        if len(dims) > MAX_RANK:
            problem = f"it has {len(dims)} dimensions, and {MAX_RANK} are the most"
            self.fail(f"`{shown(info.name)}`", problem)
        self.names("a dimension", (d.dim_param for d in dims))
        known = [d.dim_value for d in dims if d.dim_value > 0]
        if math.prod(known) > MAX_ELEMENTS:
            problem = f"its dimensions {known} ask for more than fits into memory"
            self.fail(f"`{shown(info.name)}`", problem)

    def names(self, place: str, names: Iterable[object]) -> None:
        for name in names:
            if not isinstance(name, str):  # protobuf gives bytes where a text is none
                self.fail(place, f"`{shown(name)}` is not a text in UTF-8")
            if len(name) > MAX_NAME:
                self.fail(place, f"`{shown(name)}` has {len(name)} characters")

    def unique(self, place: str, what: str, names: Iterable[str]) -> None:
        taken: set[str] = set()
        for name in names:
            if name and name in taken:
                self.fail(place, f"there are two {what}s named `{shown(name)}`")
            taken.add(name)

    def fail(self, place: str, problem: str) -> NoReturn:
        raise ModelError(M002, {"place": place, "problem": problem}, hint=HINT)


def _function_name(function: onnx.FunctionProto) -> str:
    name = f"{function.domain}::{function.name}"
    return f"{name} with the overload {function.overload}" if function.overload else name


def _called(node: onnx.NodeProto) -> str:
    return f"the node `{shown(node.name or next(iter(node.output), node.op_type))}`"
