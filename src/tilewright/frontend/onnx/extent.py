"""How large a model is: what it lists, and its nodes when every call stands for a function's body.

Lists are counted before anything walks along them: a message of two bytes takes a hundred bytes of
memory, and whoever looks at it a hundred more. A few functions that call each other ten times each
stand for billions of nodes; one that leads back to itself for endlessly many. Both are found by
counting, without replacing anything. Lists of what is still to be visited take the place of
recursion, so that no model can nest the count too deeply.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from tilewright.errors import Code, ModelError
from tilewright.frontend.onnx.limits import (
    MAX_ATTRIBUTES,
    MAX_DEPTH,
    MAX_EDGES,
    MAX_EXPANDED,
    MAX_LISTED,
    MAX_NODES,
)
from tilewright.frontend.onnx.tensors import M002
from tilewright.shown import shown

__all__ = ["expanded_nodes", "graphs_in", "is_about_limits", "too_large"]

M005 = Code("M005", "`{model}` is too large: {problem}")

Key = tuple[str, str, str]
"""A function: its domain, name and overload."""


def _is_list(field: FieldDescriptor) -> bool:
    """Older versions of protobuf have a label, newer ones say it plainly."""
    return bool(getattr(field, "is_repeated", False) or getattr(field, "label", 0) == 3)


_LISTS: Final = {
    kind.DESCRIPTOR.name: tuple(
        field.name for field in kind.DESCRIPTOR.fields if _is_list(field) and field.name != "node"
    )
    for kind in (onnx.ModelProto, onnx.GraphProto, onnx.FunctionProto)
}
"""Fields of messages that are lists; nodes are counted by themselves."""

TOO_DEEP = f"graphs or functions are nested more than {MAX_DEPTH} deep"


def _key(function: onnx.FunctionProto) -> Key:
    return function.domain, function.name, function.overload


@dataclass
class _Body:
    """Nodes without calls, how deep their graphs are nested, and calls with the depth of each."""

    nodes: int = 0
    depth: int = 0
    calls: list[tuple[Key, int]] = field(default_factory=list)


def expanded_nodes(model: onnx.ModelProto) -> int:
    """Nodes, those of a function once for each call (M005: too many; M002: endlessly many)."""
    _require_short(model, model)
    local = {_key(f) for f in model.functions}
    count = _Count(model, local)
    whole = count.body(model.graph)
    bodies = {_key(f): count.body(f) for f in model.functions}
    written = count.nodes
    known = dict[Key, _Body]()
    for _ in range(MAX_DEPTH + 1):
        ready = [k for k, body in bodies.items() if all(call in known for call, _ in body.calls)]
        if bodies and not ready:
            place = f"the function `{shown(next(iter(bodies))[1])}`"
            facts = {"place": place, "problem": "its calls lead back to where they began"}
            raise ModelError(M002, facts, hint="no function can stand for itself")
        known |= {key: _expanded(bodies.pop(key), known) for key in ready}
    whole = whole if bodies else _expanded(whole, known)
    if bodies or whole.depth > MAX_DEPTH:
        raise too_large(model, TOO_DEEP)
    if whole.nodes > max(MAX_EXPANDED, written):
        problem = f"its functions stand for {whole.nodes} nodes, {MAX_EXPANDED} are the most"
        raise too_large(model, problem)
    return whole.nodes


@dataclass
class _Count:
    """Counts the nodes of a model while it looks at its graphs and functions."""

    model: onnx.ModelProto
    local: set[Key]
    nodes: int = 0

    def body(self, whole: onnx.GraphProto | onnx.FunctionProto) -> _Body:
        found = _Body()
        waiting: list[tuple[onnx.GraphProto | onnx.FunctionProto, int]] = [(whole, 0)]
        if isinstance(whole, onnx.FunctionProto):
            waiting += [(inner, 1) for inner in graphs_in(whole.attribute_proto)]
        while waiting:
            graph, depth = waiting.pop()
            _require_short(self.model, graph)
            found.depth = max(found.depth, depth)
            found.nodes += len(graph.node)
            self.nodes += len(graph.node)
            if self.nodes > MAX_NODES:
                raise too_large(self.model, f"it has more than {MAX_NODES} nodes")
            for node in graph.node:
                self._require_small(node)
                if self.local:
                    called = node.domain, node.op_type, node.overload
                    if called in self.local:
                        found.calls.append((called, depth))
                waiting += [(inner, depth + 1) for inner in graphs_in(node.attribute)]
        return found

    def _require_small(self, node: onnx.NodeProto) -> None:
        if len(node.attribute) > MAX_ATTRIBUTES:
            raise too_large(self.model, f"a node has more than {MAX_ATTRIBUTES} attributes")
        if len(node.input) + len(node.output) > MAX_EDGES:
            raise too_large(self.model, f"a node has more than {MAX_EDGES} inputs and outputs")


def _require_short(model: onnx.ModelProto, message: Message) -> None:
    """Refuse a message with a list that nobody should have to walk along."""
    for name in _LISTS.get(message.DESCRIPTOR.name, ()):
        if len(getattr(message, name)) > MAX_LISTED:
            raise too_large(model, f"its list `{name}` has more than {MAX_LISTED} entries")


def graphs_in(attributes: Iterable[onnx.AttributeProto]) -> Iterator[onnx.GraphProto]:
    """The graphs in attributes: of a node, or the ones that a function has unless it is told."""
    for attribute in attributes:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _expanded(body: _Body, known: dict[Key, _Body]) -> _Body:
    nodes = body.nodes + sum(known[key].nodes for key, _ in body.calls)
    return _Body(nodes, max([body.depth, *(d + 1 + known[key].depth for key, d in body.calls)]))


def is_about_limits(problem: BaseException) -> bool:
    """Whether an error ends an import, whichever node it came up at."""
    return isinstance(problem, ModelError) and problem.code is M005


def too_large(model: onnx.ModelProto, problem: str) -> ModelError:
    """The error for a model that exceeds a limit."""
    name = shown(model.graph.name) or "model"
    hint = "export it again in a simpler form; SECURITY.md lists all limits"
    return ModelError(M005, {"model": name, "problem": problem}, hint=hint)
