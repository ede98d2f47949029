"""An ONNX model becomes a graph: one walk over its nodes, a handler for each.

A node without a handler is replaced by the body of its ONNX function, if it has one; what is left runs
on the ONNX reference implementation (`reference.py`) as a node of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import onnx
from onnx import numpy_helper

from tilewright.errors import Code, ModelError, TilewrightError
from tilewright.frontend.onnx import families
from tilewright.frontend.onnx.functions import function_body
from tilewright.frontend.onnx.node import OnnxNode, dtype_of_onnx
from tilewright.frontend.onnx.reference import reference_node
from tilewright.frontend.onnx.registry import HANDLERS, Declined
from tilewright.graph import Builder, Graph, Value
from tilewright.tensor import ir as tir

__all__ = ["Imported", "import_model", "read_model"]

M001 = Code("M001", "`{what}` is not an ONNX model: {problem}")
M002 = Code("M002", "node `{node}` reads `{value}`, which nothing computes before it")
M003 = Code("M003", "`{input}` of the model is not a tensor: {problem}")
M004 = Code("M004", "node `{node}` ({op}, opset {opset}) cannot be understood: {problem}")

families.load()


@dataclass
class Imported:
    """The graph of a model, and which of its nodes run on the reference implementation and why."""

    graph: Graph
    by_reference: dict[str, str] = field(default_factory=dict)


def read_model(source: str | Path | bytes | onnx.ModelProto) -> onnx.ModelProto:
    """The model in a file, in bytes, or as it is."""
    if isinstance(source, onnx.ModelProto):
        return source
    try:
        if isinstance(source, bytes):
            return onnx.load_model_from_string(source)
        return onnx.load(str(source))
    except FileNotFoundError:
        facts = {"what": source, "problem": "there is no such file"}
        raise ModelError(M001, facts) from None
    except Exception as problem:  # noqa: BLE001  (whatever the parser raises, the file is not a model)
        shown = source if not isinstance(source, bytes) else f"{len(source)} bytes"
        raise ModelError(M001, {"what": shown, "problem": problem}) from problem


def import_model(model: onnx.ModelProto) -> Imported:
    """The graph of a model."""
    importer = Importer(model)
    return importer.run()


class Importer:
    """Walks a model; `scope` holds the values of the names seen so far."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = model
        self.opsets = {o.domain or "": int(o.version) for o in model.opset_import}
        self.opsets.setdefault("", self.opsets.pop("ai.onnx", 1))
        self.local_functions = {(f.domain, f.name): f for f in model.functions}
        self.builder = Builder(model.graph.name or "model")
        self.by_reference: dict[str, str] = {}
        self.size_vars: dict[str, tir.Var] = {}

    def run(self) -> Imported:
        """Import the whole model."""
        proto = self.model.graph
        scope: dict[str, Value] = {}
        constants = {t.name for t in proto.initializer}
        for tensor in proto.initializer:
            scope[tensor.name] = self.builder.constant(numpy_helper.to_array(tensor), tensor.name)
        for info in proto.input:
            if info.name not in constants:
                scope[info.name] = self._input(info)
        self.walk(proto.node, scope)
        names = [o.name for o in proto.output]
        outputs = [self._found(name, "the model's outputs", scope) for name in names]
        return Imported(self.builder.graph(outputs, names), self.by_reference)

    def walk(self, nodes: Sequence[onnx.NodeProto], scope: dict[str, Value]) -> None:
        """Import nodes one after another; their results enter `scope`."""
        for proto in nodes:
            self._import_node(proto, scope)

    def _import_node(self, proto: onnx.NodeProto, scope: dict[str, Value]) -> None:
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        node = OnnxNode.of(proto, self.opsets.get(domain, 1))
        inputs = [self._found(n, node.label, scope) if n else None for n in proto.input]
        before, self.builder.label = self.builder.label, node.label
        try:
            results = self._results(domain, node, inputs, scope)
        finally:
            self.builder.label = before
        for name, value in zip(proto.output, results, strict=False):
            if name:
                scope[name] = value

    def _results(
        self, domain: str, node: OnnxNode, inputs: list[Value | None], scope: dict[str, Value]
    ) -> Sequence[Value]:
        handler = HANDLERS.get((domain, node.op))
        if handler is not None:
            try:
                made = handler(self.builder, node, *inputs)
                return (made,) if isinstance(made, Value) else tuple(made)
            except Declined as reason:
                why = str(reason)
            except TilewrightError as problem:
                facts = {"node": node.label, "op": node.op, "opset": node.opset}
                shown = ", ".join("none" if v is None else str(v) for v in inputs)
                raise ModelError(
                    M004, {**facts, "problem": problem, "inputs": shown}
                ) from problem
        else:
            why = "no handler"
        body = function_body(self.local_functions, domain, node, inputs)
        if body is not None:
            return self._inlined(body, node, inputs)
        self.by_reference[node.label] = f"{node.op}: {why}"
        return reference_node(self.builder, node, domain, inputs, self.opsets)

    def _inlined(
        self, body: onnx.FunctionProto, node: OnnxNode, inputs: Sequence[Value | None]
    ) -> Sequence[Value]:
        """The nodes of an ONNX function in place of its call."""
        scope = {n: v for n, v in zip(body.input, inputs, strict=False) if v is not None}
        opsets, self.opsets = self.opsets, dict(self.opsets)
        self.opsets.update({o.domain or "": int(o.version) for o in body.opset_import})
        missing = {name for name in body.input if name not in scope}
        try:
            for proto in body.node:
                made = _with_attributes(proto, node.proto, body)
                made.input[:] = ["" if name in missing else name for name in made.input]
                self._import_node(made, scope)
        finally:
            self.opsets = opsets
        return [scope[name] for name in body.output if name in scope]

    def _input(self, info: onnx.ValueInfoProto) -> Value:
        if info.type.WhichOneof("value") != "tensor_type":
            kind = info.type.WhichOneof("value") or "nothing"
            raise ModelError(M003, {"input": info.name, "problem": kind})
        tensor = info.type.tensor_type
        try:
            dtype = dtype_of_onnx(tensor.elem_type)
        except Declined as problem:
            raise ModelError(M003, {"input": info.name, "problem": problem}) from None
        dims = [
            tir.Const(int(d.dim_value))
            if d.HasField("dim_value")
            else self._size(d.dim_param or f"{info.name}_{position}")
            for position, d in enumerate(tensor.shape.dim)
        ]
        return self.builder.input(info.name, dtype, dims)

    def _size(self, name: str) -> tir.Var:
        return self.size_vars.setdefault(name, tir.Var(name))

    def _found(self, name: str, node: str, scope: Mapping[str, Value]) -> Value:
        if name not in scope:
            raise ModelError(M002, {"node": node, "value": name})
        return scope[name]


def _with_attributes(
    proto: onnx.NodeProto, call: onnx.NodeProto, body: onnx.FunctionProto
) -> onnx.NodeProto:
    """A node of a function with the attributes that it takes from the call."""
    given = {a.name: a for a in body.attribute_proto} | {a.name: a for a in call.attribute}
    made = onnx.NodeProto()
    made.CopyFrom(proto)
    del made.attribute[:]
    for attribute in proto.attribute:
        if not attribute.ref_attr_name:
            made.attribute.append(attribute)
        elif attribute.ref_attr_name in given:
            copy = made.attribute.add()
            copy.CopyFrom(given[attribute.ref_attr_name])
            copy.name = attribute.name
    return made
