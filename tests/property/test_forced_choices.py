"""Whatever algorithms, layouts and loops the sites of a network get, it computes what it means."""

from __future__ import annotations

import dataclasses
from random import Random

import numpy as np
from hypothesis import given, note
from hypothesis import strategies as st

from tests.examples import examples
from tests.graphs import RandomGraph
from tests.laid_out import compiled, images
from tilewright.graph import interpret, verify_graph
from tilewright.graph.grouping import group_nodes
from tilewright.graph.groups import Group
from tilewright.graph.ir import Graph
from tilewright.graph.ops.winograd import WinogradConv, WinogradTransposed
from tilewright.graph.passes.pipeline import optimise
from tilewright.layouts.apply import apply
from tilewright.layouts.choose import choose
from tilewright.layouts.costs import Machine
from tilewright.layouts.flatten import flatten_as_stored
from tilewright.layouts.forms import FIRST, LAST, blocked
from tilewright.layouts.sites import Alternative, Settings, Site, sites_of
from tilewright.layouts.space import Space
from tilewright.model.kernels import task_of
from tilewright.schedule.draft import draft
from tilewright.target import Target


@dataclasses.dataclass(frozen=True)
class SmallBlocks(Settings):
    """Also blocks that small images have."""

    @property
    def forms(self):
        return (*super().forms, blocked(2), blocked(3), blocked(4))


SETTINGS = SmallBlocks(Machine(Target.host(), 1))


def drawn(data: st.DataObject, site: Site) -> Alternative:
    """Any alternative of a site, with any loops."""
    alternative = data.draw(st.sampled_from(site.alternatives), label=site.nodes[-1].op.name)
    if not data.draw(st.booleans(), label="with loops of its own"):
        return alternative
    points = list(Space(site, SETTINGS).loops(alternative))
    if data.draw(st.booleans(), label="that no draft looks at"):
        alone = dataclasses.replace(site, alternatives=(alternative,))
        points = Space(alone, SETTINGS).sample(Random(len(points)), 10)
    return points[data.draw(st.integers(0, len(points) - 1), label="loops")]


def forced(data: st.DataObject, graph: Graph) -> tuple[Graph, list[Group]]:
    """The graph with an alternative for each site that nobody would choose, and its kernels."""
    chosen = [(site, drawn(data, site)) for site in sites_of(graph, SETTINGS)]
    applied = apply(graph, chosen)
    for conversion in applied.conversions:
        assert conversion.before != conversion.after
    made = verify_graph(flatten_as_stored(applied.graph))
    return made, group_nodes(made, applied.kernels)


@given(random=images(), data=st.data(), seed=st.integers(0, 9), threads=st.sampled_from([1, 2]))
@examples(20)
def test_networks_with_forced_choices(random: RandomGraph, data, seed, threads):
    graph, groups = forced(data, optimise(random.graph))
    note(str(graph))
    feeds = random.feeds(seed)
    expected = interpret(random.graph, feeds)
    module, _ = compiled(graph, threads, groups)
    tiled = WinogradConv | WinogradTransposed
    rounding = 1e-3 if any(isinstance(n.op, tiled) for n in graph.nodes) else 1e-5
    for got, want in zip(module.run(feeds), expected, strict=True):
        rounding = 1e-2 if want.dtype == np.float16 else rounding  # stored between kernels only
        assert got.shape == want.shape
        scale = max(1.0, float(np.abs(want).max(initial=0.0)))
        np.testing.assert_allclose(got, want, rtol=10 * rounding, atol=rounding * scale)


@given(random=images(6))
@examples(100)
def test_results_of_a_graph_are_stored_as_they_are(random: RandomGraph):
    """Also if sites inside of the graph read them and would like another form, or a border."""
    graph = optimise(random.graph)
    for site in sites_of(graph, SETTINGS):
        if set(site.results) & set(graph.outputs):
            assert {a.result for a in site.alternatives} == {LAST}


@given(random=images(), threads=st.sampled_from([1, 2, 4]), form=st.sampled_from([None, FIRST]))
@examples(40)
def test_no_kernel_of_a_network_is_left_unscheduled(random: RandomGraph, threads, form):
    """A recipe that gives up leaves code that is right, and slower by far."""
    target = Target.host()
    settings = Settings(Machine(target, threads), fixed=form)
    choice = choose(optimise(random.graph), settings)
    graph = choice.graph
    note(str(graph))
    consumers = graph.consumers()
    for group in choice.groups:
        task = task_of(group, group.outputs(graph, consumers), graph.constants, threads)
        drafted = draft(task.program, target, threads, task.constants, task.loops)
        alone = [r for r in drafted.remarks if "not scheduled together" not in r]
        assert alone == []  # what cannot run together with others still has a schedule of its own
