"""The graph passes in order."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Final

from tilewright.graph.ir import Graph
from tilewright.graph.ops import Op
from tilewright.graph.ops.control import If, Loop
from tilewright.graph.passes.attention import find_attention
from tilewright.graph.passes.global_pools import reduce_global_pools
from tilewright.graph.passes.movements import join_movements
from tilewright.graph.passes.pointwise import pointwise_products
from tilewright.graph.passes.reshapes import sink_reshapes
from tilewright.graph.passes.rewrite import Rule, rewrite_graph
from tilewright.graph.passes.scalars import embed_scalars
from tilewright.graph.passes.scales import fold_scales
from tilewright.graph.passes.shuffles import sink_shuffles
from tilewright.graph.passes.transposed_products import transposed_products
from tilewright.graph.passes.transposes import sink_transposes
from tilewright.graph.passes.upsampling import multiply_before_upsampling
from tilewright.graph.verify import verify_graph

__all__ = ["GRAPH_PASSES", "optimise"]

GRAPH_PASSES: Final[tuple[Rule, ...]] = (
    embed_scalars,  # fewer operands before anything is matched
    find_attention,  # as models write it, before anything moves
    join_movements,  # nothing in the way of transposes
    sink_transposes,  # channels-last networks, letters of products
    sink_reshapes,  # epilogues in the shape of their product
    reduce_global_pools,
    multiply_before_upsampling,  # once channels are last
    pointwise_products,  # behind the transposes: its reshapes would stop them
    transposed_products,  # for the same reason
    fold_scales,  # batch normalisations, once they stand behind their weights
    sink_shuffles,  # orders of channels, once nothing else wants to go into the weights
)

Watch = Callable[[str, Graph], None]


ROUNDING_OTHERWISE: Final[tuple[Rule, ...]] = (fold_scales, multiply_before_upsampling)
"""What rounds weights once more, or sums before they are weighted: exact products and sums would
not stay exact."""


def _with_inner(graph: Graph, watch: Watch | None, *, strict: bool) -> Graph:
    """Graphs inside of branches and loops are optimised on their own."""

    def inner(op: Op) -> Op:
        match op:
            case If():
                ways = [optimise(way, watch, strict=strict) for way in (op.then, op.otherwise)]
                return dataclasses.replace(op, then=ways[0], otherwise=ways[1])
            case Loop():
                return dataclasses.replace(op, body=optimise(op.body, watch, strict=strict))
        return op

    return graph.with_nodes([dataclasses.replace(node, op=inner(node.op)) for node in graph.nodes])


def optimise(graph: Graph, watch: Watch | None = None, *, strict: bool = False) -> Graph:
    """Run all passes until nothing changes any more, at most a few rounds.

    If `strict`, weights stay as they are given, but for their order.
    """
    graph = _with_inner(graph, watch, strict=strict)
    rules = [rule for rule in GRAPH_PASSES if not (strict and rule in ROUNDING_OTHERWISE)]
    for _ in range(4):
        before = len(graph.nodes), [str(n.op) for n in graph.nodes]
        for rule in rules:
            graph = verify_graph(rewrite_graph(graph, rule))
            if watch is not None:
                watch(rule.__name__, graph)
        if before == (len(graph.nodes), [str(n.op) for n in graph.nodes]):
            break
    return graph
