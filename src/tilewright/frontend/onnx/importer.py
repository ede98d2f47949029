"""An ONNX model becomes a graph: one walk over its nodes, a handler for each.

A node without a handler is replaced by the body of its ONNX function, if it has one; what is left
runs on the ONNX reference implementation (`reference.py`) as a node of its own. Nodes for which
that is no way either are noted (`notes.py`), and the walk goes on: one error names them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx
from onnx import numpy_helper

from tilewright.errors import Code, InternalError, ModelError, TilewrightError
from tilewright.frontend.onnx import families
from tilewright.frontend.onnx.check import (
    Found,
    below,
    contradiction,
    domain_of,
    graphs_of,
    nested,
    opsets_of,
    unknown,
)
from tilewright.frontend.onnx.control import Following, RanksDiffer
from tilewright.frontend.onnx.functions import function_body
from tilewright.frontend.onnx.node import BuildGraph, OnnxNode, dtype_of_onnx
from tilewright.frontend.onnx.notes import Notes, Stuck, about_model, reference_refuses
from tilewright.frontend.onnx.reference import reference_node
from tilewright.frontend.onnx.registry import HANDLERS, TAKE_SEQUENCES, Declined, Unknown
from tilewright.frontend.onnx.scope import Item, Lost, Nested, Scope, Tensors
from tilewright.graph import Builder, Graph, Value
from tilewright.tensor import ir as tir
from tilewright.unsupported import Unsupported

__all__ = ["Imported", "external_files", "import_model", "read_model"]

M001 = Code("M001", "`{what}` is not an ONNX model: {problem}")

MODEL_PROBLEMS = (ValueError, TypeError, LookupError, ArithmeticError)
"""What handlers may run into when a model contradicts itself; anything else is a bug of theirs."""

families.load()


class Refused(Exception):  # noqa: N818  (a signal, noted with its node)
    """Nothing can run a node; the text says why."""


@dataclass
class Imported:
    """The graph of a model, and which of its nodes run on the reference implementation and why."""

    graph: Graph
    by_reference: tuple[Unsupported, ...] = ()


def read_model(source: str | Path | bytes | onnx.ModelProto) -> onnx.ModelProto:
    """The model in a file, in bytes, or as it is."""
    if isinstance(source, onnx.ModelProto):
        return source
    shown = source if not isinstance(source, bytes) else f"{len(source)} bytes"
    hint = "give a file that an exporter for ONNX wrote"
    try:
        if isinstance(source, bytes):
            model = onnx.load_model_from_string(source)
        else:
            model = onnx.load(str(source))
    except FileNotFoundError:
        facts = {"what": source, "problem": "there is no such file"}
        raise ModelError(M001, facts, hint="check the path") from None
    except Exception as problem:  # whatever the parser raises, the file is not a model
        raise ModelError(M001, {"what": shown, "problem": problem}, hint=hint) from problem
    if not model.HasField("graph"):  # as an empty file, which the parser takes for a message
        raise ModelError(M001, {"what": shown, "problem": "it has no graph"}, hint=hint)
    return model


def import_model(model: onnx.ModelProto) -> Imported:
    """The graph of a model; `Unknown` if it has none."""
    importer = Importer(model)
    return importer.run()


class Importer:
    """Walks a model; `scope` holds the values of the names seen so far."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = model
        self.opsets = {"": 1, **opsets_of(model.opset_import)}
        self.local_functions = {(f.domain, f.name): f for f in model.functions}
        self.builder = Builder(model.graph.name or "model")
        self.notes = Notes(model)
        self.inside = ""  # the graph that is being walked, empty for the model's own
        self.size_vars: dict[str, tir.Var] = {}

    def run(self) -> Imported:
        """Import the whole model; raises with everything that is in the way."""
        proto = self.model.graph
        scope: Scope = {}
        outputs: list[Value] = []
        try:
            self._initializers(proto, scope)
            for info in proto.input:
                if info.name not in scope:
                    scope[info.name] = self._input(info)
            found = self.walk(proto.node, [o.name for o in proto.output], scope)
            outputs = [v for v in found if isinstance(v, Value)]
            if len(outputs) < len(found):
                raise Unknown("an output is not a tensor")
        except Stuck:
            pass  # what is behind it has been noted
        except Unknown as reason:
            self.notes.formless["", ""] = about_model(str(reason))
        self.notes.settle()
        graph = self.builder.graph(outputs, [o.name for o in proto.output])
        return Imported(graph, tuple(self.notes.by_reference.values()))

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
        for name in wanted:
            if name not in scope:
                reason = f"nothing computes the output `{name}`"
                place = f" of `{self.inside}`" if self.inside else ""
                self.notes.broken[self.inside, name] = about_model(f"{reason}{place}")
        return [self._found(name, scope) for name in wanted]

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
            before = self.notes.copy()
            try:
                found = self._walked(nodes, wanted, inner)
            except Exception:
                self.notes = before
                raise
            finally:
                self.builder = around
            if found is None or self.notes.obstacles > before.obstacles:
                reason, self.notes = self.notes.obstacle_since(before), before
                raise Unknown(reason)
            return found

        return go_on

    def _walked(
        self, nodes: Sequence[onnx.NodeProto], wanted: Sequence[str], scope: Scope
    ) -> Sequence[Item] | None:
        """`walk`, or None if something that is wanted is lost."""
        try:
            return self.walk(nodes, wanted, scope)
        except Stuck:
            return None

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
        """Import a node; what is in the way is noted, and its results are lost then."""
        found = Found(proto, self.inside, self.opsets)
        builder, label = self.builder, self.builder.label
        results: Sequence[Item | Lost] = [Lost()] * len(proto.output)
        try:
            results = self._imported(found, scope)
        except Stuck:
            pass  # what is behind it has been noted
        except Unknown as reason:
            place, node = self.notes.describe(found, scope, str(reason))
            self.notes.formless[place] = node
        except (Refused, TilewrightError, *MODEL_PROBLEMS) as problem:
            if isinstance(problem, InternalError):
                raise
            place, node = self.notes.describe(found, scope, _reason(problem))
            self.notes.broken[place] = node
            self.notes.causes.append(problem)
        finally:
            self.inside, self.builder, builder.label = found.inside, builder, label
        for name, value in zip(proto.output, results, strict=False):
            if name:
                scope[name] = value

    def _imported(self, found: Found, scope: Scope) -> Sequence[Item]:
        proto, domain = found.proto, domain_of(found.proto)
        opset = self.opsets.get(domain, 1)
        wrong = unknown(proto.op_type, domain, opset, self.local_functions)
        wrong = wrong or contradiction(proto, opset)
        missing = [name for name in proto.input if name and name not in scope]
        if missing and not wrong:
            wrong = f"it reads `{missing[0]}`, which nothing computes before it"
        if wrong:
            raise Refused(wrong)
        inputs = [self._found(name, scope) if name else None for name in proto.input]
        node = OnnxNode.of(proto, opset, self._building(found, scope))
        self.builder.label = node.label
        return self._results(found, node, inputs, scope)

    def _building(self, found: Found, scope: Scope) -> BuildGraph:
        """How the graphs inside of a node are imported where it stands."""
        names = list(graphs_of(found.proto))
        here = below(found.inside, found.name)

        def build(
            graph: onnx.GraphProto,
            builder: Builder,
            outside: Callable[[Value], Value],
            inputs: Sequence[Item],
        ) -> Sequence[Item]:
            inner = Nested(scope, outside)
            around, self.builder = self.builder, builder
            attribute = next((name for name, own in names if own is graph), graph.name)
            inside, self.inside = self.inside, f"{here}.{attribute}"
            try:
                self._initializers(graph, inner)
                inner.update(zip((i.name for i in graph.input), inputs, strict=False))
                return self.walk(graph.node, [o.name for o in graph.output], inner)
            finally:
                self.builder, self.inside = around, inside

        return build

    def _results(
        self, found: Found, node: OnnxNode, inputs: list[Item], scope: Scope
    ) -> Sequence[Item]:
        domain = domain_of(found.proto)
        if node.op not in TAKE_SEQUENCES and any(isinstance(v, Tensors) for v in inputs):
            raise Unknown(f"{node.op} of a sequence")
        handler = HANDLERS.get((domain, node.op))
        why = "it has no kernel"
        if handler is not None:
            before = self.notes.copy() if any(graphs_of(found.proto)) else self.notes
            try:
                made = handler(self.builder, node, *inputs)
                return made if isinstance(made, list | tuple) else (made,)
            except Declined as reason:
                why = str(reason)
                self.notes = before  # graphs inside run with the node
        values = [v for v in inputs if not isinstance(v, Tensors)]
        body = function_body(self.local_functions, domain, node, values)
        if body is not None:
            return self._inlined(body, found, inputs)
        if len(values) < len(inputs):
            raise Unknown(f"{node.op} of a sequence: {why}")
        self._require_reference(found, scope, why)
        names = [n for n in _captured_names(node.proto) if n in scope]
        captured = {n: v for n in names if isinstance(v := scope[n], Value)}
        results = reference_node(self.builder, node, domain, values, self.opsets, captured)
        place, noted = self.notes.describe(found, scope, why)
        self.notes.by_reference[place] = noted
        return results

    def _require_reference(self, found: Found, scope: Scope, why: str) -> None:
        """Refuse a node that the reference implementation cannot run, with all inside of it."""
        refused = [(f, reference_refuses(f.proto, f.opsets)) for f in nested(found, {})]
        for inner, reason in refused:
            if reason:
                place, node = self.notes.describe(inner, scope, f"{why}, and {reason}")
                self.notes.broken[place] = node
        if any(reason for _, reason in refused):
            raise Stuck(found.name)

    def _inlined(
        self, body: onnx.FunctionProto, found: Found, inputs: Sequence[Item]
    ) -> Sequence[Item]:
        """The nodes of an ONNX function in place of its call."""
        scope: Scope = dict.fromkeys(body.input)
        scope.update(zip(body.input, inputs, strict=False))
        opsets, self.opsets = self.opsets, {**self.opsets, **opsets_of(body.opset_import)}
        self.inside = below(found.inside, found.name)
        try:
            nodes = [_with_attributes(proto, found.proto, body) for proto in body.node]
            made = {name for proto in nodes for name in proto.output} | set(scope)
            wanted = [name for name in body.output if name in made]  # a call may want fewer
            made_of = dict(zip(wanted, self.walk(nodes, wanted, scope), strict=True))
        finally:
            self.opsets, self.inside = opsets, found.inside
        return [made_of.get(name) for name in body.output]

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

    def _found(self, name: str, scope: Scope) -> Item:
        """What a name stands for; `Stuck` if that is lost, or nothing gives it."""
        item = scope[name] if name in scope else Lost()
        if isinstance(item, Lost):
            raise Stuck(name)
        return item


def _reason(problem: BaseException) -> str:
    if isinstance(problem, TilewrightError):
        return problem.summary()
    return str(problem) if isinstance(problem, Refused) else f"{type(problem).__name__}: {problem}"


def _captured_names(node: onnx.NodeProto) -> Iterator[str]:
    """The names that graphs inside of a node read from around it, each once."""
    free: dict[str, None] = {}
    for _, graph in graphs_of(node):
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
