"""The graph passes in order."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tilewright.graph.ir import Graph
from tilewright.graph.ops import Op
from tilewright.graph.ops.control import If, Loop
from tilewright.graph.passes.attention import find_attention
from tilewright.graph.passes.global_pools import reduce_global_pools
from tilewright.graph.passes.integer_products import integer_products
from tilewright.graph.passes.movements import join_movements
from tilewright.graph.passes.pointwise import pointwise_products
from tilewright.graph.passes.reshapes import sink_reshapes
from tilewright.graph.passes.rewrite import Rule, rewrite_graph
from tilewright.graph.passes.scalars import embed_scalars
from tilewright.graph.passes.scales import fold_scales
from tilewright.graph.passes.shuffles import sink_shuffles
from tilewright.graph.passes.signs import Pairs, fit_signs
from tilewright.graph.passes.transposed_products import transposed_products
from tilewright.graph.passes.transposes import sink_transposes
from tilewright.graph.passes.upsampling import multiply_before_upsampling
from tilewright.graph.verify import verify_graph

__all__ = ["GRAPH_PASSES", "SmallIntegers", "optimise"]

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


@dataclass(frozen=True)
class SmallIntegers:
    """What a machine does with integers of 8 bits.

    `pairs` are types of data and weights that its instructions multiply, and `gain` is how many
    times as many products it makes of them as of floats.
    """

    pairs: Pairs = frozenset()
    gain: float = 0.0


NOTHING_SMALL: Final = SmallIntegers()


def _with_inner(graph: Graph, watch: Watch | None, *, strict: bool, small: SmallIntegers) -> Graph:
    """Graphs inside of branches and loops are optimised on their own."""

    def inner(op: Op) -> Op:
        match op:
            case If():
                ways = [
                    optimise(way, watch, strict=strict, small=small)
                    for way in (op.then, op.otherwise)
                ]
                return dataclasses.replace(op, then=ways[0], otherwise=ways[1])
            case Loop():
                body = optimise(op.body, watch, strict=strict, small=small)
                return dataclasses.replace(op, body=body)
        return op

    return graph.with_nodes([dataclasses.replace(node, op=inner(node.op)) for node in graph.nodes])


def optimise(
    graph: Graph,
    watch: Watch | None = None,
    *,
    strict: bool = False,
    small: SmallIntegers = NOTHING_SMALL,
) -> Graph:
    """Run all passes until nothing changes any more, at most a few rounds.

    If `strict`, weights stay as they are given, but for their order, and floats are rounded as they
    are written.
    """
    graph = _with_inner(graph, watch, strict=strict, small=small)
    rules = [rule for rule in GRAPH_PASSES if not (strict and rule in ROUNDING_OTHERWISE)]
    # Before weights are folded into floats; then signs, as soon as there are products of integers.
    first = [integer_products(0.0 if strict else small.gain)]
    first += [fit_signs(small.pairs)] if small.pairs else []
    rules = [*first, *rules]
    for _ in range(4):
        before = len(graph.nodes), [str(n.op) for n in graph.nodes]
        for rule in rules:
            graph = verify_graph(rewrite_graph(graph, rule))
            if watch is not None:
                watch(rule.__name__, graph)
        if before == (len(graph.nodes), [str(n.op) for n in graph.nodes]):
            break
    return graph
