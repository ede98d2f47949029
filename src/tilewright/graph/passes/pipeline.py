"""The graph passes in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tilewright.graph.ir import Graph
from tilewright.graph.passes.reshapes import sink_reshapes
from tilewright.graph.passes.rewrite import Rule, rewrite_graph
from tilewright.graph.passes.scalars import embed_scalars
from tilewright.graph.passes.transposes import sink_transposes
from tilewright.graph.verify import verify_graph

__all__ = ["GRAPH_PASSES", "optimise"]

GRAPH_PASSES: Final[tuple[Rule, ...]] = (
    embed_scalars,  # fewer operands before anything is matched
    sink_transposes,  # channels-last networks, letters of products
    sink_reshapes,  # epilogues in the shape of their product
)

Watch = Callable[[str, Graph], None]


def optimise(graph: Graph, watch: Watch | None = None) -> Graph:
    """Run all passes until nothing changes any more, at most a few rounds."""
    for _ in range(4):
        before = len(graph.nodes), [str(n.op) for n in graph.nodes]
        for rule in GRAPH_PASSES:
            graph = verify_graph(rewrite_graph(graph, rule))
            if watch is not None:
                watch(rule.__name__, graph)
        if before == (len(graph.nodes), [str(n.op) for n in graph.nodes]):
            break
    return graph
