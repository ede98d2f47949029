"""Drop nodes whose results nobody needs.

Before:  a = exp x; b = log x; output b
After:   b = log x; output b

A result may be needed for its size alone: the diagonal of as many rows as there are elements that
are not zero reads none of their places. What tells such a size stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from tilewright.graph.abstract import expressions
from tilewright.graph.ir import Graph, Node
from tilewright.graph.ops.compact import Compact
from tilewright.graph.ops.control import If, Loop
from tilewright.graph.ops.count import Count
from tilewright.graph.ops.host import Host
from tilewright.graph.sizes import variables
from tilewright.tensor import ir as tir

__all__ = ["drop_dead"]


def drop_dead(graph: Graph) -> Graph:
    """The graph without nodes and constants that no output depends on."""
    needed = set(graph.outputs)
    tells = _tellers(graph)
    sizes = set(variables(dim for value in graph.outputs for dim in value.shape))
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if any(value in needed for value in node.outputs) or sizes & tells.get(node, set()):
            kept.append(node)
            needed.update(node.inputs)
            if tells:
                sizes.update(variables(_read_sizes(node)))
    return graph.with_nodes(kept[::-1])


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
