"""What an import finds in the way, noted node by node instead of ending at the first.

A node is `broken` if nothing can run it, `formless` if it has no form that is known before it runs
(`Unknown`: the model then runs by reference as a whole), or runs `by_reference` by itself. What a
node would have given is lost for those behind it, which are looked at by their operators alone.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final, NoReturn

import onnx

from tilewright.errors import Code, Lines, ModelError, TilewrightError
from tilewright.frontend.onnx.check import Found, contradiction, domain_of, sweep, unknown
from tilewright.frontend.onnx.node import dtype_of_onnx
from tilewright.frontend.onnx.registry import Declined, Unknown
from tilewright.frontend.onnx.scope import Grown, Lost, Scope, Stacked, Tensors
from tilewright.frontend.onnx.segments import Place
from tilewright.graph import Value
from tilewright.graph.sizes import fixed
from tilewright.tensor.printer import print_node
from tilewright.unsupported import Operand, Unsupported, listing

__all__ = ["Notes", "Refused", "Stuck", "about_model", "reason_of", "require_reference"]

M004 = Code("M004", "`{model}` cannot run: {count} in the way")

MAX_BROKEN: Final = 1000
"""Nodes that nothing can run, after which no others are looked for."""


class Refused(Exception):  # noqa: N818  (a signal, noted with its node)
    """Nothing can run a node; the text says why."""


class Stuck(Exception):  # noqa: N818  (a signal: the problem itself has been noted)
    """A value that is needed comes from a node that could not be imported."""


@dataclass
class Notes:
    """Nodes by place; `causes` are the exceptions behind broken ones.

    `waits`: some shapes are numbers that only a run tells, though they might be known before.
    """

    model: onnx.ModelProto
    by_reference: dict[Place, Unsupported] = field(default_factory=dict)
    formless: dict[Place, Unsupported] = field(default_factory=dict)
    broken: dict[Place, Unsupported] = field(default_factory=dict)
    causes: list[BaseException] = field(default_factory=list)
    waits: bool = False

    def copy(self) -> Notes:
        """What is noted now, to return to."""
        by_reference, formless = dict(self.by_reference), dict(self.formless)
        return replace(
            self,
            by_reference=by_reference,
            formless=formless,
            broken=dict(self.broken),
            causes=list(self.causes),
        )

    @property
    def obstacles(self) -> int:
        """How many nodes keep the model from being a graph."""
        return len(self.broken) + len(self.formless)

    def obstacle_since(self, before: Notes) -> str:
        """The first one that was not there `before`."""
        known = {**before.broken, **before.formless}
        now = {**self.broken, **self.formless}
        new = (str(node) for place, node in now.items() if place not in known)
        return next(new, "what comes before it could not be imported")

    def describe(self, found: Found, scope: Scope, reason: str) -> tuple[Place, Unsupported]:
        """A node with what is known of its inputs."""
        proto, domain = found.proto, domain_of(found.proto)
        inputs = tuple(self._operand(name, scope) for name in proto.input)
        opset = found.opsets.get(domain, 1)
        node = Unsupported(found.name, proto.op_type, domain, opset, inputs, reason, found.inside)
        return (found.inside, next(iter(proto.output), found.name)), node

    def _operand(self, name: str, scope: Scope) -> Operand:
        match scope[name] if name and name in scope else Lost():
            case Value(type=kind):
                dims = [(d, fixed(d)) for d in kind.shape]
                shape = tuple(print_node(d) if number is None else number for d, number in dims)
                return Operand(name, kind.dtype.name, shape)
            case Tensors(items=items):
                return Operand(name, "sequence", (len(items),))
            case Stacked() | Grown():
                return Operand(name, "sequence", ("n",))
        declared = self.declared.get(name)
        return Operand(name) if declared is None else _declared_operand(declared)

    @functools.cached_property
    def declared(self) -> Mapping[str, onnx.ValueInfoProto]:
        """What the model itself says of values."""
        graph = self.model.graph
        return {i.name: i for i in chain(graph.input, graph.value_info, graph.output)}

    def settle(self) -> None:
        """Raise if the model cannot be a graph: an error for what nothing can run, or `Unknown`."""
        if not self.broken and not self.formless:
            return
        self._sweep()
        if self.broken:
            self.fail()
        nodes = tuple(self.formless.values())
        raise Unknown("; ".join(dict.fromkeys(node.reason for node in nodes)), nodes)

    def require_operators(self) -> None:
        """Raise if nothing can run some of the nodes, whatever their inputs are."""
        self._sweep()
        if self.broken:
            self.fail()

    def add_broken(self, place: Place, node: Unsupported) -> None:
        """Note a node that nothing can run; when there are very many, that is enough to know."""
        self.broken.setdefault(place, node)
        if len(self.broken) >= MAX_BROKEN:
            self.fail()

    def _sweep(self) -> None:
        """Note the nodes that nothing can run among those that were not reached."""
        local = {(f.domain, f.name): f for f in self.model.functions}
        for found in sweep(self.model):
            domain = domain_of(found.proto)
            opset = found.opsets.get(domain, 1)
            reason = unknown(found.proto.op_type, domain, opset, local)
            reason = reason or contradiction(found.proto, opset)
            if reason:
                self.add_broken(*self.describe(found, {}, reason))

    def fail(self) -> NoReturn:
        """Raise the error that names all broken nodes."""
        nodes = tuple(self.broken.values())
        lines = "".join(f"\n    {line}" for line in listing(nodes, groups=16, each=8))
        name = self.model.graph.name or "model"
        count = "1 node is" if len(nodes) == 1 else f"{len(nodes)} nodes are"
        count = count if len(nodes) < MAX_BROKEN else f"{len(nodes)} nodes, perhaps more, are"
        error = ModelError(
            M004,
            {"model": name, "count": count, "nodes": Lines(lines)},
            hint="export the model again, or replace these nodes; `onnx.checker` may say more",
        )
        error.nodes = nodes
        raise error from next(iter(self.causes), None)


def about_model(reason: str) -> Unsupported:
    """A reason that concerns no single node."""
    return Unsupported("the model", "", "", 0, (), reason)


def require_reference(model: onnx.ModelProto) -> None:
    """Refuse a model that must run by reference as a whole, but has operators unknown there."""
    notes, refused = Notes(model), dict[tuple[str, str, int], str]()
    local = {(f.domain, f.name) for f in model.functions}
    for found in sweep(model):
        domain = domain_of(found.proto)
        if (found.proto.domain, found.proto.op_type) in local:
            continue  # what stands inside is looked at by itself
        key = domain, found.proto.op_type, found.opsets.get(domain, 1)
        if key not in refused:
            refused[key] = reference_refuses(found.proto, found.opsets)
        if refused[key]:
            notes.add_broken(*notes.describe(found, {}, refused[key]))
    if notes.broken:
        notes.fail()


def reference_refuses(
    proto: onnx.NodeProto, opsets: Mapping[str, int], *, declined: bool = False
) -> str:
    """Why nothing can run a node by value; empty if something can.

    One that its handler has `declined` needs the reference implementation.
    """
    from tilewright.frontend.onnx.reference.evaluator import is_known

    if is_known(proto, opsets, declined=declined):
        return ""
    return "the ONNX reference implementation does not know it"


def _declared_operand(info: onnx.ValueInfoProto) -> Operand:
    tensor = info.type.tensor_type
    try:
        dtype = dtype_of_onnx(tensor.elem_type).name
    except Declined:
        return Operand(info.name)
    if not tensor.HasField("shape"):
        return Operand(info.name, dtype)
    dims = (
        d.dim_value if d.HasField("dim_value") else d.dim_param or "?" for d in tensor.shape.dim
    )
    return Operand(info.name, dtype, tuple(dims))


def reason_of(problem: BaseException) -> str:
    """What stands in the way, in words."""
    if isinstance(problem, TilewrightError):
        return problem.summary()
    return str(problem) if isinstance(problem, Refused) else f"{type(problem).__name__}: {problem}"
