"""An ONNX model becomes a graph: one walk over its nodes, a handler for each.

A node without a handler is replaced by the body of its ONNX function, if it has one; what is left
falls back to the ONNX reference implementation (`fallback.py`): by itself, or together with its
neighbours where what lies between them has no form before a run (`segments.py`). Nodes for which
that is no way either are noted (`notes.py`), and the walk goes on: one error names them all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Final

import onnx

from tilewright.dtypes import DType
from tilewright.errors import InternalError, TilewrightError
from tilewright.frontend.onnx import families
from tilewright.frontend.onnx.broadcasting import broadcasts
from tilewright.frontend.onnx.budget import Budget
from tilewright.frontend.onnx.check import (
    Found,
    below,
    contradiction,
    domain_of,
    graphs_of,
    left_out,
    mismatch,
    opsets_of,
    unknown,
)
from tilewright.frontend.onnx.control import Following, RanksDiffer
from tilewright.frontend.onnx.extent import expanded_nodes, is_about_limits
from tilewright.frontend.onnx.fallback import fall_back, reads_opaque, require_forms, waits
from tilewright.frontend.onnx.functions import CalledNodes, function_body
from tilewright.frontend.onnx.imported import Imported
from tilewright.frontend.onnx.named_sizes import dims_of
from tilewright.frontend.onnx.node import BuildGraph, OnnxNode, dtype_of_onnx
from tilewright.frontend.onnx.notes import (
    Notes,
    Refused,
    Stuck,
    about_model,
    reason_of,
)
from tilewright.frontend.onnx.reference.nodes import opaque_constant
from tilewright.frontend.onnx.registry import (
    HANDLERS,
    MODEL_PROBLEMS,
    TAKE_SEQUENCES,
    Declined,
    Unknown,
    called,
)
from tilewright.frontend.onnx.scope import (
    Grown,
    Item,
    Lost,
    Nested,
    Opaque,
    Scope,
    Stacked,
    Tensors,
)
from tilewright.frontend.onnx.settled import (
    TOLD,
    Dims,
    Form,
    Settled,
    element_type,
    length_of,
    named_parts,
    part_name,
)
from tilewright.frontend.onnx.sparse import paid_dense
from tilewright.frontend.onnx.spending import sequence_payer
from tilewright.frontend.onnx.tensors import array_of
from tilewright.frontend.onnx.typed import require_types
from tilewright.frontend.onnx.types import type_name
from tilewright.graph import Builder, Value
from tilewright.graph.claims import Claims
from tilewright.graph.guards import Guards
from tilewright.graph.sizes import variables
from tilewright.shown import quoted, shown
from tilewright.tensor import ir as tir

__all__ = ["Importer"]

LARGE: Final = 4096
"""Nodes of a model beyond which operators are looked at before any node is imported: what most
models that cannot run lack is known sooner then, though not everything that they lack."""

families.load()


class Importer:
    """Walks a model; `scope` holds the values of the names seen so far.

    Guards are `flipped` besides those that are settled.
    """

    def __init__(
        self,
        model: onnx.ModelProto,
        settled: Settled | None = None,
        flipped: Collection[str] = (),
    ) -> None:
        self.model, self.settled = model, settled
        self.opsets = {"": 1, **opsets_of(model.opset_import)}
        self.local_functions = {(f.domain, f.name): f for f in model.functions}
        self.builder, self.claims = Builder(model.graph.name or "model"), Claims()
        self.nodes = expanded_nodes(model)
        self.budget = Budget(model, self.nodes)
        self.notes = Notes(model)
        self.inside = ""  # the graph that is being walked, empty for the model's own
        self.has_opaque = False  # whether some value has no form before a run
        known = settled or Settled()
        self.builder.spreads, self.builder.claims = known.spreads, self.claims
        self.builder.guards = self.guards = Guards(known.flipped.union(flipped))
        self.size_vars: dict[str, tir.Expr] = dict.fromkeys(known.ones, tir.Const(1))

    def run(self) -> Imported:
        """Import the whole model; raises with everything that is in the way."""
        proto = self.model.graph
        scope: Scope = {}
        outputs: list[tuple[str, Item]] = []
        if self.nodes > LARGE:
            self.notes.require_operators()
        try:
            self._initializers(proto, scope)
            self._inputs(scope)
            names = [o.name for o in proto.output]
            outputs = list(zip(names, self.walk(proto.node, names, scope), strict=True))
            require_forms(self.notes, [item for _, item in outputs])
            if self.settled is None and not all(isinstance(v, Value) for _, v in outputs):
                raise Unknown("an output is not a tensor")
            if any(isinstance(v, Stacked | Grown) for _, v in outputs):
                raise Unknown("an output is a sequence of any length")
        except Stuck:
            pass  # what is behind it has been noted
        except Unknown as reason:
            self.notes.formless["", ""] = about_model(str(reason))
        self.notes.settle()
        flat = [pair for name, item in outputs for pair in named_parts(name, item)]
        graph = self.builder.graph([value for _, value in flat], [name for name, _ in flat])
        lengths = tuple(length_of(item) for _, item in outputs)
        nodes, equal = tuple(self.notes.by_reference.values()), frozenset(self.claims.equal)
        return Imported(graph, nodes, lengths, equal, self.guards.noted, self.notes.waits)

    def walk(
        self, nodes: Sequence[onnx.NodeProto], wanted: Sequence[str], scope: Scope
    ) -> Sequence[Item]:
        """Import nodes one after another into `scope`; gives the items with the `wanted` names.

        Where the branches of a condition differ in rank, what follows goes into both of them; if
        it cannot, the condition runs on the reference implementation.
        """
        for position, proto in enumerate(nodes):
            try:
                self._import_node(proto, scope)
            except RanksDiffer as differ:
                following = self._following(proto, nodes[position + 1 :], wanted, scope)
                try:
                    return differ.split(following)
                except Unknown as ranks:
                    self._import_node(proto, scope, str(ranks))
        for name in wanted:
            if name not in scope:
                reason = f"nothing computes the output {quoted(name)}"
                place = f" of {quoted(self.inside)}" if self.inside else ""
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
            inner = Nested(scope, outside, sequence_payer(builder.purse))
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
        for sparse in proto.sparse_initializer:
            scope[sparse.values.name] = self._dense(sparse)

    def _constant(self, tensor: onnx.TensorProto) -> Item:
        try:
            dtype_of_onnx(tensor.data_type)
        except Declined:
            self.has_opaque = True
            return opaque_constant(tensor)
        array = array_of(tensor)
        self.builder.purse.fill(array.size)
        return self.builder.constant(array, tensor.name)

    def _dense(self, sparse: onnx.SparseTensorProto) -> Item | Lost:
        name = sparse.values.name
        _known_type(sparse.values.data_type, quoted(name))
        array = paid_dense(sparse, self.builder.purse)
        if array is None:
            reason = f"sparse weights {quoted(name)} stand for {math.prod(sparse.dims)} elements"
            self.notes.broken[self.inside, name] = about_model(reason)
            return Lost()
        return self.builder.constant(array, name)

    def _import_node(self, proto: onnx.NodeProto, scope: Scope, formless: str = "") -> None:
        """Import a node; what is in the way is noted, and its results are lost then.

        One that is known to be `formless`, for this reason, has no other way than the reference.
        """
        self.budget.import_node()
        found = Found(proto, self.inside, self.opsets)
        builder, label, strict = self.builder, self.builder.label, self.builder.strict
        results: Sequence[Item | Lost] = [Lost()] * len(proto.output)
        try:
            before = len(builder.nodes)
            results = self._imported(found, scope, formless)
            require_types(builder.nodes[before:])
        except Stuck:
            pass  # what is behind it has been noted
        except Unknown as reason:
            place, node = self.notes.describe(found, scope, str(reason))
            self.notes.formless[place] = node
        except (Refused, TilewrightError, *MODEL_PROBLEMS) as problem:
            if isinstance(problem, InternalError) or is_about_limits(problem):
                raise
            self.notes.causes.append(problem)
            self.notes.add_broken(*self.notes.describe(found, scope, reason_of(problem)))
        finally:
            self.inside, self.builder = found.inside, builder
            builder.label, builder.strict = label, strict
        for name, value in zip(proto.output, results, strict=False):
            if name:
                scope[name] = value

    def _imported(self, found: Found, scope: Scope, formless: str) -> Sequence[Item]:
        proto, domain = found.proto, domain_of(found.proto)
        opset = self.opsets.get(domain, 1)
        wrong = unknown(proto.op_type, domain, opset, self.local_functions)
        wrong = wrong or contradiction(proto, opset)
        missing = [name for name in proto.input if name and name not in scope]
        if missing and not wrong:
            wrong = f"it reads {quoted(missing[0])}, which nothing computes before it"
        if wrong:
            raise Refused(wrong)
        inputs = [self._found(name, scope) if name else None for name in proto.input]
        types = [type_name(v.dtype) if isinstance(v, Value) else "" for v in inputs]
        given = [k for k, v in enumerate(inputs) if v is not None]
        wrong = left_out(proto, opset, given) or mismatch(proto, opset, types)
        if wrong:
            raise Refused(wrong)
        node = OnnxNode.of(proto, opset, self._building(found, scope))
        self.builder.label, self.guards.place = node.label, below(found.inside, found.name)
        self.builder.strict = not broadcasts(domain, proto.op_type)
        return self._results(found, node, inputs, scope, formless)

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
            inner = Nested(scope, outside, sequence_payer(builder.purse))
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
        self, found: Found, node: OnnxNode, inputs: list[Item], scope: Scope, formless: str
    ) -> Sequence[Item]:
        domain = domain_of(found.proto)
        handler = HANDLERS.get((domain, node.op))
        is_call = handler is None and (node.proto.domain, node.op) in self.local_functions
        if not (formless or is_call) and self.has_opaque and reads_opaque(found, inputs, scope):
            formless = "it reads what has no form before a run"
        if formless:
            return self._by_reference(found, inputs, scope, formless)
        values = [v for v in inputs if v is None or isinstance(v, Value)]
        before = self.notes.copy() if any(graphs_of(found.proto)) else self.notes
        why = "it has no kernel"
        try:
            if not is_call and len(values) < len(inputs) and node.op not in TAKE_SEQUENCES:
                raise Unknown(f"{shown(node.op)} of a sequence")
            if handler is not None:
                results = called(handler, self.builder, node, inputs)
                self.notes.waits |= node.op in TOLD and waits(self.builder, found, scope)
                return results
        except Declined as reason:
            why = str(reason)
            self.notes = before  # graphs inside run with the node
        except Unknown as reason:
            self.notes = before
            return self._by_reference(found, inputs, scope, str(reason))
        body = function_body(self.local_functions, domain, node, values)
        if body is not None:
            return self._inlined(body, found, inputs)
        return self._by_reference(found, inputs, scope, why)

    def _by_reference(
        self, found: Found, inputs: Sequence[Item], scope: Scope, why: str
    ) -> Sequence[Item]:
        made = fall_back(self.builder, self.notes, self.budget, found, inputs, scope, why)
        self.has_opaque |= any(isinstance(item, Opaque) for item in made)
        return made

    def _inlined(
        self, body: onnx.FunctionProto, found: Found, inputs: Sequence[Item]
    ) -> Sequence[Item]:
        """The nodes of an ONNX function in place of its call."""
        scope: Scope = dict.fromkeys(body.input)
        scope.update(zip(body.input, inputs, strict=False))
        opsets, self.opsets = self.opsets, {**self.opsets, **opsets_of(body.opset_import)}
        self.inside = below(found.inside, found.name)
        try:
            nodes = CalledNodes(found.proto, body, body.node)
            self.budget.copy(nodes.size_bytes)
            made = {name for proto in body.node for name in proto.output} | set(scope)
            wanted = [name for name in body.output if name in made]  # a call may want fewer
            made_of = dict(zip(wanted, self.walk(nodes, wanted, scope), strict=True))
        finally:
            self.opsets, self.inside = opsets, found.inside
        return [made_of.get(name) for name in body.output]

    def _inputs(self, scope: Scope) -> None:
        """The inputs, those first whose values are settled: they tell sizes."""
        settled = self.settled or Settled()
        infos = [info for info in self.model.graph.input if info.name not in scope]
        for info in infos:
            if info.name in settled.values:
                array = settled.values[info.name]
                scope[info.name] = self.builder.constant(array, info.name)
                for dim, extent in zip(dims_of(info, settled.apart), array.shape, strict=False):
                    if isinstance(dim, str):
                        self.size_vars[dim] = tir.Const(extent)
        for info in infos:
            if info.name in settled.forms:
                scope[info.name] = self._formed(info, settled.forms[info.name])
            elif info.name not in settled.values:
                scope[info.name] = self._input(info, settled.apart)
        self.guards.named.update(variables(d for v in self.builder.inputs for d in v.shape))

    def _formed(self, info: onnx.ValueInfoProto, form: Form) -> Item:
        """An input of which only the form is settled."""
        if form is None:
            return None
        dtype = dtype_of_onnx(element_type(info.type) or 0)

        def tensor(name: str, dims: Dims) -> Value:
            labels = enumerate(dims)
            shape = [tir.Var(f"{name}_{k}") if d is None else tir.Const(d) for k, d in labels]
            return self.builder.input(name, dtype, shape)

        if not isinstance(form, list):
            return tensor(info.name, form)
        return Tensors(tuple(tensor(part_name(info.name, k), d) for k, d in enumerate(form)))

    def _input(self, info: onnx.ValueInfoProto, apart: Collection[str]) -> Value:
        kind = info.type.WhichOneof("value") or "nothing"
        tensor = info.type.tensor_type
        if kind != "tensor_type" or not tensor.HasField("shape"):
            other = kind.removesuffix("_type").replace("optional", "optional value")
            problem = "a tensor of any rank" if kind == "tensor_type" else f"a {other}"
            raise Unknown(f"the input {quoted(info.name)} is {problem}")
        dtype = _known_type(tensor.elem_type, f"the input {quoted(info.name)}")
        dims = [
            tir.Const(d) if isinstance(d, int) else self.size_vars.setdefault(d, tir.Var(d))
            for d in dims_of(info, apart)
        ]
        return self.builder.input(info.name, dtype, dims)

    def _found(self, name: str, scope: Scope) -> Item:
        """What a name stands for; `Stuck` if that is lost, or nothing gives it."""
        item = scope[name] if name in scope else Lost()
        if isinstance(item, Lost):
            raise Stuck(name)
        return item


def _known_type(number: int, what: str) -> DType:
    """The element type of a number of ONNX; `Unknown` if `what` has none that arrays have."""
    try:
        return dtype_of_onnx(number)
    except Declined as problem:
        raise Unknown(f"{what}: {problem}") from None
