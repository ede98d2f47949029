"""What every graph must satisfy; passes are checked against it."""

from __future__ import annotations

from tilewright.errors import Code, GraphError, InternalError
from tilewright.graph.ir import Graph, Node, Value, array_type
from tilewright.graph.ops.compact import Compact
from tilewright.graph.ops.control import If, Loop
from tilewright.graph.ops.count import Count
from tilewright.graph.ops.host import Host
from tilewright.graph.sizes import same_shape
from tilewright.tensor.stored import misfit

__all__ = ["verify_graph"]

G101 = Code("G101", "`{value}` is read before it is computed")
G102 = Code("G102", "`{value}` is computed twice")
G103 = Code("G103", "the {what} of `{value}` is {found}, its operator gives {expected}")
G104 = Code("G104", "`{value}` cannot be stored so: {reason}")

BEFORE = "put what computes it before its readers"
INFERRED = "give the value the type that `infer` of its operator says"
FITTING = "choose steps that fit its shape, or none"


def verify_graph(graph: Graph) -> Graph:
    """The graph itself; an error if it is not well formed."""
    known: set[Value] = set()
    for value in (*graph.inputs, *graph.constants):
        _define(value, known)
    for value in (*graph.inputs, *graph.constants, *graph.outputs):
        _require_plain(value, "inputs, constants and outputs are stored as they are")
    for value, array in graph.constants.items():
        _require_type(value, array_type(array))
    for node in graph.nodes:
        _verify_node(node, known)
    for value in graph.outputs:
        if value not in known:
            raise GraphError(G101, {"value": value.name}, hint=BEFORE)
    return graph


def _verify_node(node: Node, known: set[Value]) -> None:
    for value in node.inputs:
        if value not in known:
            facts = {"value": value.name, "read by": str(node.op)}
            raise GraphError(G101, facts, hint=BEFORE)
    expected = node.op.infer([value.type for value in node.inputs])
    if len(expected) != len(node.outputs):
        facts = {"what": "number of results", "value": node.op.name}
        counts = {"expected": len(expected), "found": len(node.outputs)}
        raise GraphError(G103, {**facts, **counts}, hint=INFERRED)
    for value, kind in zip(node.outputs, expected, strict=True):
        _define(value, known)
        _require_type(value, kind)
        reason = misfit(value.shape, value.layout)
        if reason is not None:
            raise GraphError(G104, {"value": value.name, "reason": reason}, hint=FITTING)
    if isinstance(node.op, Compact | Count | Host | If | Loop):
        for value in (*node.inputs, *node.outputs):
            _require_plain(value, f"`{node.op.name}` takes and gives values as they are")


def _define(value: Value, known: set[Value]) -> None:
    if value in known:
        raise GraphError(G102, {"value": value.name}, hint="give each result a value of its own")
    known.add(value)


def _require_plain(value: Value, reason: str) -> None:
    if value.layout:
        raise GraphError(G104, {"value": value.name, "reason": reason}, hint=FITTING)


def _require_type(value: Value, expected: object) -> None:
    from tilewright.graph.ir import TensorType

    if not isinstance(expected, TensorType):
        raise InternalError(G103, {"what": "type", "value": value.name})
    if value.dtype != expected.dtype:
        facts = {"what": "element type", "value": value.name, "found": value.dtype}
        raise GraphError(G103, {**facts, "expected": expected.dtype}, hint=INFERRED)
    if not same_shape(value.shape, expected.shape):
        facts = {"what": "shape", "value": value.name, "found": str(value.type)}
        raise GraphError(G103, {**facts, "expected": str(expected)}, hint=INFERRED)
