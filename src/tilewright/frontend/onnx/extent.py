"""How large a model is when every call of its functions is replaced by their bodies.

A few functions that call each other ten times each stand for billions of nodes; one that leads back
to itself for endlessly many. Both are found by counting, without replacing anything. Lists of what
is still to be visited take the place of recursion, so that no model can nest the count too deeply.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import onnx

from tilewright.errors import Code, ModelError
from tilewright.frontend.onnx.limits import MAX_DEPTH, MAX_EXPANDED, MAX_NODES
from tilewright.frontend.onnx.tensors import M002
from tilewright.shown import shown

__all__ = ["expanded_nodes", "graphs_in", "too_large"]

M005 = Code("M005", "`{model}` is too large: {problem}")

Key = tuple[str, str]
TOO_DEEP = f"graphs or functions are nested more than {MAX_DEPTH} deep"


@dataclass
class _Body:
    """Nodes without calls, how deep their graphs are nested, and calls with the depth of each."""

    nodes: int = 0
    depth: int = 0
    calls: list[tuple[Key, int]] = field(default_factory=list)


def expanded_nodes(model: onnx.ModelProto) -> int:
    """Nodes, those of a function once for each call (M005: too many; M002: endlessly many)."""
    local = {(f.domain, f.name) for f in model.functions}
    whole = _body(model.graph.node, local)
    bodies = {(f.domain, f.name): _body(f.node, local) for f in model.functions}
    written = whole.nodes + sum(body.nodes for body in bodies.values())
    if written > MAX_NODES:
        raise too_large(model, f"it has {written} nodes, {MAX_NODES} are the most")
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


def _body(nodes: Iterable[onnx.NodeProto], local: set[Key]) -> _Body:
    found = _Body()
    waiting = [(nodes, 0)]
    while waiting:
        members, depth = waiting.pop()
        found.depth = max(found.depth, depth)
        for node in members:
            found.nodes += 1
            if local and (node.domain, node.op_type) in local:
                found.calls.append(((node.domain, node.op_type), depth))
            waiting += [(graph.node, depth + 1) for graph in graphs_in(node)]
    return found


def graphs_in(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs in the attributes of a node."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _expanded(body: _Body, known: dict[Key, _Body]) -> _Body:
    nodes = body.nodes + sum(known[key].nodes for key, _ in body.calls)
    return _Body(nodes, max([body.depth, *(d + 1 + known[key].depth for key, d in body.calls)]))


def too_large(model: onnx.ModelProto, problem: str) -> ModelError:
    """The error for a model that exceeds a limit."""
    name = shown(model.graph.name) or "model"
    hint = "export it again in a simpler form; SECURITY.md lists all limits"
    return ModelError(M005, {"model": name, "problem": problem}, hint=hint)
