"""Drop nodes whose results nobody needs.

Before:  a = exp x; b = log x; output b
After:   b = log x; output b
"""

from __future__ import annotations

from tilewright.graph.ir import Graph, Node

__all__ = ["drop_dead"]


def drop_dead(graph: Graph) -> Graph:
    """The graph without nodes and constants that no output depends on."""
    needed = set(graph.outputs)
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if any(value in needed for value in node.outputs):
            kept.append(node)
            needed.update(node.inputs)
    return graph.with_nodes(kept[::-1])
