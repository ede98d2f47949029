"""An ONNX model becomes a graph: one walk over its nodes, a handler for each.

A node without a handler is replaced by the body of its ONNX function, if it has one; what is left
runs on the ONNX reference implementation (`reference.py`) as a node of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import onnx
from onnx import numpy_helper

from tilewright.errors import Code, ModelError, TilewrightError
from tilewright.frontend.onnx import families
from tilewright.frontend.onnx.control import Following, RanksDiffer
from tilewright.frontend.onnx.functions import function_body
from tilewright.frontend.onnx.node import BuildGraph, OnnxNode, dtype_of_onnx
from tilewright.frontend.onnx.reference import reference_node
from tilewright.frontend.onnx.registry import HANDLERS, TAKE_SEQUENCES, Declined, Unknown
from tilewright.frontend.onnx.scope import Item, Nested, Scope, Tensors
from tilewright.graph import Builder, Graph, Value
from tilewright.tensor import ir as tir

__all__ = ["Imported", "external_files", "import_model", "read_model"]

M001 = Code("M001", "`{what}` is not an ONNX model: {problem}")
M002 = Code("M002", "node `{node}` reads `{value}`, which nothing computes before it")
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
        raise ModelError(M001, facts, hint="check the path") from None
    except Exception as problem:  # whatever the parser raises, the file is not a model
        shown = source if not isinstance(source, bytes) else f"{len(source)} bytes"
        hint = "give a file that an exporter for ONNX wrote"
        raise ModelError(M001, {"what": shown, "problem": problem}, hint=hint) from problem


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
        """Import the whole model; `Unknown` if it has no graph."""
        proto = self.model.graph
        scope: Scope = {}
        self._initializers(proto, scope)
        for info in proto.input:
            if info.name not in scope:
                scope[info.name] = self._input(info)
        names = [o.name for o in proto.output]
        found = self.walk(proto.node, names, scope)
        outputs = [v for v in found if isinstance(v, Value)]
        if len(outputs) < len(found):
            raise Unknown("an output is not a tensor")
        return Imported(self.builder.graph(outputs, names), self.by_reference)

    def walk(
        self, nodes: Sequence[onnx.NodeProto], wanted: Sequence[str], scope: Scope
    ) -> Sequence[Item]:
        """Import nodes one after another into `scope`; gives the items with the `wanted` names.

        Where the branches of a condition differ in rank, what follows goes into both of them.
        """
        for position, proto in enumerate(nodes):
            try:
                self._import_node(proto, scope)
            except RanksDiffer as differ:
                return differ.split(self._following(proto, nodes[position + 1 :], wanted, scope))
        return [self._found(name, "the outputs", scope) for name in wanted]

    def _following(
        self,
        proto: onnx.NodeProto,
        nodes: Sequence[onnx.NodeProto],
        wanted: Sequence[str],
        scope: Scope,
    ) -> Following:
        """How the rest of a graph goes on inside of a branch that gives the results of `proto`."""

        def go_on(
            builder: Builder, outside: Callable[[Value], Value], results: Sequence[Item]
        ) -> Sequence[Item]:
            inner = Nested(scope, outside)
            inner.update(zip(proto.output, results, strict=False))
            around, self.builder = self.builder, builder
            before = dict(self.by_reference)
            try:
                return self.walk(nodes, wanted, inner)
            except Exception:
                self.by_reference = before
                raise
            finally:
                self.builder = around

        return go_on

    def _initializers(self, proto: onnx.GraphProto, scope: Scope) -> None:
        for tensor in proto.initializer:
            scope[tensor.name] = self._constant(tensor)
        if proto.sparse_initializer:
            raise Unknown("sparse weights")

    def _constant(self, tensor: onnx.TensorProto) -> Value:
        try:
            dtype_of_onnx(tensor.data_type)
        except Declined as problem:
            raise Unknown(f"`{tensor.name}`: {problem}") from None
        return self.builder.constant(numpy_helper.to_array(tensor), tensor.name)

    def _import_node(self, proto: onnx.NodeProto, scope: Scope) -> None:
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        node = OnnxNode.of(proto, self.opsets.get(domain, 1), self._inside(scope))
        inputs = [self._found(n, node.label, scope) if n else None for n in proto.input]
        before, self.builder.label = self.builder.label, node.label
        try:
            results = self._results(domain, node, inputs, scope)
        finally:
            self.builder.label = before
        for name, value in zip(proto.output, results, strict=False):
            if name:
                scope[name] = value

    def _inside(self, scope: Scope) -> BuildGraph:
        """How the graphs inside of a node are imported where it stands."""

        def build(
            graph: onnx.GraphProto,
            builder: Builder,
            outside: Callable[[Value], Value],
            inputs: Sequence[Item],
        ) -> Sequence[Item]:
            inner = Nested(scope, outside)
            around, self.builder = self.builder, builder
            try:
                self._initializers(graph, inner)
                inner.update(zip((i.name for i in graph.input), inputs, strict=False))
                return self.walk(graph.node, [o.name for o in graph.output], inner)
            finally:
                self.builder = around

        return build

    def _results(
        self, domain: str, node: OnnxNode, inputs: list[Item], scope: Scope
    ) -> Sequence[Item]:
        if node.op not in TAKE_SEQUENCES and any(isinstance(v, Tensors) for v in inputs):
            raise Unknown(f"{node.op} of a sequence")
        handler = HANDLERS.get((domain, node.op))
        why = "no handler"
        if handler is not None:
            try:
                made = handler(self.builder, node, *inputs)
                return made if isinstance(made, list | tuple) else (made,)
            except Declined as reason:
                why = str(reason)
            except ModelError:
                raise
            except TilewrightError as problem:
                shown = ", ".join("none" if v is None else str(v) for v in inputs)
                facts = {"node": node.label, "op": node.op, "opset": node.opset}
                facts |= {"problem": problem.summary(), "inputs": shown}
                hint = "check the shapes around this node in the model"
                raise ModelError(M004, facts, hint=hint) from problem
        values = [v for v in inputs if not isinstance(v, Tensors)]
        body = function_body(self.local_functions, domain, node, values)
        if body is not None:
            return self._inlined(body, node, inputs)
        if len(values) < len(inputs):
            raise Unknown(f"{node.op} of a sequence: {why}")
        self.by_reference[node.label] = f"{node.op}: {why}"
        names = [n for n in _captured_names(node.proto) if n in scope]
        captured = {n: v for n in names if isinstance(v := scope[n], Value)}
        return reference_node(self.builder, node, domain, values, self.opsets, captured)

    def _inlined(
        self, body: onnx.FunctionProto, node: OnnxNode, inputs: Sequence[Item]
    ) -> Sequence[Item]:
        """The nodes of an ONNX function in place of its call."""
        scope: Scope = dict.fromkeys(body.input)
        scope.update(zip(body.input, inputs, strict=False))
        opsets, self.opsets = self.opsets, dict(self.opsets)
        self.opsets.update({o.domain or "": int(o.version) for o in body.opset_import})
        try:
            nodes = [_with_attributes(proto, node.proto, body) for proto in body.node]
            made = {name for proto in nodes for name in proto.output} | set(scope)
            wanted = [name for name in body.output if name in made]  # a call may want fewer
            found = dict(zip(wanted, self.walk(nodes, wanted, scope), strict=True))
        finally:
            self.opsets = opsets
        return [found.get(name) for name in body.output]

    def _input(self, info: onnx.ValueInfoProto) -> Value:
        kind = info.type.WhichOneof("value") or "nothing"
        tensor = info.type.tensor_type
        if kind != "tensor_type" or not tensor.HasField("shape"):
            other = kind.removesuffix("_type").replace("optional", "optional value")
            problem = "a tensor of any rank" if kind == "tensor_type" else f"a {other}"
            raise Unknown(f"the input `{info.name}` is {problem}")
        try:
            dtype = dtype_of_onnx(tensor.elem_type)
        except Declined as problem:
            raise Unknown(f"the input `{info.name}`: {problem}") from None
        dims = [
            tir.Const(int(d.dim_value))
            if d.HasField("dim_value")
            else self._size(d.dim_param or f"{info.name}_{position}")
            for position, d in enumerate(tensor.shape.dim)
        ]
        return self.builder.input(info.name, dtype, dims)

    def _size(self, name: str) -> tir.Var:
        return self.size_vars.setdefault(name, tir.Var(name))

    def _found(self, name: str, node: str, scope: Scope) -> Item:
        if name not in scope:
            hint = "export the model again; `onnx.checker` says more"
            raise ModelError(M002, {"node": node, "value": name}, hint=hint)
        return scope[name]


def _captured_names(node: onnx.NodeProto) -> Iterator[str]:
    """The names that graphs inside of a node read from around it, each once."""
    free: dict[str, None] = {}
    for attribute in node.attribute:
        for graph in _graphs(attribute):
            own = {i.name for i in (*graph.input, *graph.initializer)}
            for inner in graph.node:
                read = (*inner.input, *_captured_names(inner))
                free.update(dict.fromkeys(n for n in read if n and n not in own))
                own.update(inner.output)
            free.update(dict.fromkeys(o.name for o in graph.output if o.name not in own))
    yield from free


def _graphs(attribute: onnx.AttributeProto) -> list[onnx.GraphProto]:
    return [attribute.g] if attribute.HasField("g") else list(attribute.graphs)


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
            copy = made.attribute.add()
            copy.CopyFrom(attribute)
            for graph in _graphs(copy):
                inner = [_with_attributes(n, call, body) for n in graph.node]
                del graph.node[:]
                graph.node.extend(inner)
        elif attribute.ref_attr_name in given:
            copy = made.attribute.add()
            copy.CopyFrom(given[attribute.ref_attr_name])
            copy.name = attribute.name
    return made


def external_files(path: Path) -> list[Path]:
    """The files in which a model keeps large tensors, beside its own."""
    from onnx.external_data_helper import ExternalDataInfo, uses_external_data

    try:
        model = onnx.load(str(path), load_external_data=False)
    except Exception:  # noqa: BLE001  (reading it says what is wrong)
        return []
    tensors = (t for t in model.graph.initializer if uses_external_data(t))
    names = dict.fromkeys(ExternalDataInfo(t).location for t in tensors)
    return [path.parent / name for name in names]
