"""One rule of a graph pass on one small graph: the picture, and that the meaning stays."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tilewright.graph import Graph, interpret, verify_graph
from tilewright.graph.ir import Array
from tilewright.graph.passes.rewrite import Rule, rewrite_graph
from tilewright.graph.sizes import evaluate_size
from tilewright.tensor import ir as tir

__all__ = ["assert_same_meaning", "feeds_of", "keeps", "operators", "picture", "rewritten"]


def feeds_of(graph: Graph, sizes: Mapping[tir.Var, int] | None = None) -> dict[str, Array]:
    """Numbers for the inputs of a graph; sizes that are not given are three."""
    rng = np.random.default_rng(7)
    feeds: dict[str, Array] = {}
    for value in graph.inputs:
        known = {v: 3 for dim in value.shape for v in _variables(dim)} | dict(sizes or {})
        shape = [evaluate_size(dim, known) for dim in value.shape]
        feeds[value.name] = rng.uniform(-2, 2, shape).astype(value.dtype.numpy)
    return feeds


def _variables(dim: tir.Expr) -> tuple[tir.Var, ...]:
    from tilewright.graph.sizes import variables

    return variables([dim])


def assert_same_meaning(before: Graph, after: Graph) -> None:
    """Both graphs give the same outputs, by the same names."""
    assert after.output_names == before.output_names
    feeds = feeds_of(before)
    for found, wanted in zip(interpret(after, feeds), interpret(before, feeds), strict=True):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def rewritten(graph: Graph, rule: Rule) -> Graph:
    """The graph after one walk, well formed and of the same meaning."""
    after = verify_graph(rewrite_graph(verify_graph(graph), rule))
    assert_same_meaning(graph, after)
    return after


def keeps(graph: Graph, rule: Rule) -> bool:
    """Whether a rule leaves every node as it is."""
    return operators(rewritten(graph, rule)) == operators(graph)


def operators(graph: Graph) -> list[str]:
    """The operators of a graph with their attributes, in order."""
    return [str(node.op) for node in graph.nodes]


def picture(graph: Graph, rule: Rule) -> str:
    """Before and after, as text."""
    return f"Before: {graph}\n\nAfter: {rewritten(graph, rule)}"
