"""Drop nodes whose results nobody needs.

Before:  a = exp x; b = log x; output b
After:   b = log x; output b

A result may be needed for its size alone: the diagonal of as many rows as there are elements that
are not zero reads none of their places. What tells such a size stays. So does what is broadcast, if
nothing else asks whether its sizes are equal: the shape of a result may be all that a model wants.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from tilewright.graph.abstract import expressions
from tilewright.graph.ir import Graph, Node, Value
from tilewright.graph.ops.compact import Compact
from tilewright.graph.ops.control import If, Loop
from tilewright.graph.ops.count import Count
from tilewright.graph.ops.host import Host
from tilewright.graph.sizes import dims_equal, fixed, variables
from tilewright.tensor import ir as tir

__all__ = ["drop_dead"]


def drop_dead(graph: Graph) -> Graph:
    """The graph without nodes and constants that no output depends on."""
    kept = _needed(graph, set(graph.outputs))
    if len(kept) == len(graph.nodes):
        return graph.with_nodes(kept)
    asked = {meeting for node in kept for meeting in _meetings(node)}
    alone = [node for node in graph.nodes if not asked.issuperset(_meetings(node))]
    if alone:
        values = {value for node in alone for value in node.outputs}
        kept = _needed(graph, values.union(graph.outputs))
    return graph.with_nodes(kept)


def _needed(graph: Graph, needed: set[Value]) -> list[Node]:
    """The nodes that these values depend on, in order."""
    tells = _tellers(graph)
    sizes = set(variables(dim for value in needed for dim in value.shape))
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if any(value in needed for value in node.outputs) or sizes & tells.get(node, set()):
            kept.append(node)
            needed.update(node.inputs)
            if tells:
                sizes.update(variables(_read_sizes(node)))
    return kept[::-1]


def _meetings(node: Node) -> Iterator[frozenset[tir.Expr]]:
    """Pairs of sizes that a node takes for equal, though nobody knows it."""
    types = [v.type for v in node.inputs], [v.type for v in node.outputs]
    for pair in node.op.meetings(*types):
        if not dims_equal(*pair) and not any(fixed(dim) == 1 for dim in pair):
            yield frozenset(pair)


def _tellers(graph: Graph) -> dict[Node, set[tir.Var]]:
    """The nodes that tell sizes which nothing before them has, and these."""
    known = set(variables(dim for value in graph.inputs for dim in value.shape))
    found: dict[Node, set[tir.Var]] = {}
    for node in graph.nodes:
        if isinstance(node.op, Compact | Count | Host | If | Loop):
            own = set(variables(dim for value in node.outputs for dim in value.shape)) - known
            found.update({node: own} if own else {})
            known |= own
    return found


def _read_sizes(node: Node) -> Iterator[tir.Expr]:
    """What a node reads of sizes: in shapes, in its attributes, in graphs inside of it."""
    yield from (dim for value in (*node.inputs, *node.outputs) for dim in value.shape)
    yield from expressions(node.op)
    for graph in (getattr(node.op, f.name) for f in fields(node.op)):
        if isinstance(graph, Graph):
            yield from (dim for value in graph.outputs for dim in value.shape)
            for inner in graph.nodes:
                yield from _read_sizes(inner)
