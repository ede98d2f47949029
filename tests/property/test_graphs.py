"""Random graphs keep their meaning through every pass, and compiled they compute what they mean."""

from __future__ import annotations

import numpy as np
from hypothesis import given, note
from hypothesis import strategies as st

from tests.examples import examples
from tests.graphs import RandomGraph, graphs
from tests.levels import targets
from tilewright.graph import interpret, verify_graph
from tilewright.graph.grouping import group_nodes
from tilewright.graph.ops.op import Role
from tilewright.graph.passes.pipeline import GRAPH_PASSES, optimise
from tilewright.graph.passes.rewrite import rewrite_graph
from tilewright.model.assemble import assemble
from tilewright.model.module import Module, parts_of
from tilewright.schedule.recipes.context import NOMINAL_THREADS


def assert_same(random: RandomGraph, found: list[np.ndarray], expected: list[np.ndarray]) -> None:
    note(str(random.graph))
    for got, want in zip(found, expected, strict=True):
        assert got.shape == want.shape
        scale = max(1.0, float(np.abs(want).max(initial=0.0)))
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5 * scale)


@given(random=graphs(), seed=st.integers(0, 9))
def test_every_pass_preserves_meaning(random, seed):
    feeds = random.feeds(seed)
    expected = interpret(random.graph, feeds)
    for rule in GRAPH_PASSES:
        changed = verify_graph(rewrite_graph(random.graph, rule))
        note(f"{rule.__name__}\n{changed}")
        assert_same(random, interpret(changed, feeds), expected)


@given(random=graphs(nodes=12), seed=st.integers(0, 9))
def test_all_passes_together_preserve_meaning_and_come_to_an_end(random, seed):
    feeds = random.feeds(seed)
    changed = optimise(random.graph)
    assert_same(random, interpret(changed, feeds), interpret(random.graph, feeds))
    again = optimise(changed)
    assert [str(n.op) for n in again.nodes] == [str(n.op) for n in changed.nodes]


@given(random=graphs(nodes=12))
def test_groups_can_run_one_after_another(random):
    graph = optimise(random.graph)
    known = {*graph.inputs, *graph.constants}
    done = 0
    for group in group_nodes(graph):
        for value in group.inputs():
            assert _root(graph, value) in known
        for node in group.nodes:
            known.update(node.outputs)
            done += 1
    assert done == sum(node.op.role is not Role.VIEW for node in graph.nodes)


def _root(graph, value):
    producers = graph.producers()
    while value in producers and producers[value].op.role is Role.VIEW:
        (value,) = producers[value].inputs
    return value


@given(random=graphs(), seed=st.integers(0, 9), target=targets())
@examples(20)
def test_compiled_graphs_compute_what_they_mean(random, seed, target):
    """On any number of threads, with equal bits."""
    feeds = random.feeds(seed)
    graph = optimise(random.graph)
    made = assemble(graph, target, NOMINAL_THREADS)
    parts = parts_of(made, target, {})
    found = Module.of(made, parts, 1, graph).run(feeds)
    assert_same(random, found, interpret(random.graph, feeds))
    for threads in (1, 2, 5, 33):
        again = Module.of(made, parts, threads, graph).run(feeds)
        assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(found, again, strict=True))
