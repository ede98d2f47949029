"""Whatever layouts of the template the sites of a network get, it computes what it means."""

from __future__ import annotations

import numpy as np
from hypothesis import event, given, note
from hypothesis import strategies as st

from tests.examples import examples
from tests.graphs import RandomGraph
from tests.laid_out import compiled, images
from tilewright.graph import interpret, verify_graph
from tilewright.graph.grouping import group_nodes
from tilewright.graph.ops.winograd import WinogradConv, WinogradTransposed
from tilewright.graph.passes.pipeline import optimise
from tilewright.layouts.apply import apply
from tilewright.layouts.costs import Machine
from tilewright.layouts.flatten import flatten_as_stored
from tilewright.layouts.sites import Alternative, Settings, Site, sites_of
from tilewright.layouts.template import LayoutSpace
from tilewright.target import Target

SETTINGS = Settings(Machine(Target.host(), 1))
MACHINE = SETTINGS.machine


def drawn(site: Site, rng: np.random.Generator) -> Alternative:
    """Any alternative of the template; its number stands for it."""
    space = LayoutSpace.of(site, MACHINE)
    rows = space.sample(rng, 1)
    assert len(rows) == 1
    found = space.at(rows[0])
    assert found is not None
    number = space.number(found)
    assert number is not None
    assert space.alternative(number) == found
    return found


@given(
    random=images(), seed=st.integers(0, 1 << 30), feeds=st.integers(0, 9),
    threads=st.sampled_from([1, 2]),
)  # fmt: skip
@examples(20)
def test_networks_with_forced_layouts(random: RandomGraph, seed, feeds, threads):
    graph, rng = optimise(random.graph), np.random.default_rng(seed)
    chosen = [(site, drawn(site, rng)) for site in sites_of(graph, SETTINGS)]
    if any(a.result.tiles for _, a in chosen):
        event("tiles")
    if any(a.source.overlap for _, a in chosen):
        event("overlap")
    applied = apply(graph, chosen)
    made = verify_graph(flatten_as_stored(applied.graph))
    note(str(made))
    given = random.feeds(feeds)
    module, _ = compiled(made, threads, group_nodes(made, applied.kernels))
    tiled = WinogradConv | WinogradTransposed
    rounding = 1e-3 if any(isinstance(n.op, tiled) for n in made.nodes) else 1e-5
    for got, want in zip(module.run(given), interpret(random.graph, given), strict=True):
        rounding = 1e-2 if want.dtype == np.float16 else rounding
        assert got.shape == want.shape
        scale = max(1.0, float(np.abs(want).max(initial=0.0)))
        np.testing.assert_allclose(got, want, rtol=10 * rounding, atol=rounding * scale)
