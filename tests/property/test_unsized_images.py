"""Convolutions of images of unknown size: whatever computes large and small ones is right."""

from __future__ import annotations

import dataclasses

import numpy as np
from hypothesis import assume, given, note
from hypothesis import strategies as st

from tests.examples import examples
from tests.laid_out import compiled
from tilewright.dtypes import f32
from tilewright.graph import Builder, Graph, Value, interpret, verify_graph
from tilewright.graph.ops.window import Conv, ConvTranspose
from tilewright.layouts.algorithms import DIRECT, algorithms_of
from tilewright.layouts.apply import apply
from tilewright.layouts.costs import Machine
from tilewright.layouts.sites import Alternative, Settings, Site, sites_of
from tilewright.target import Target
from tilewright.tensor import ir as tir

SETTINGS = Settings(Machine(Target.host(), 1))
LEAST, MOST = 6, 14  # of every dimension: windows of 3 with gaps of 2 fit


@st.composite
def networks(draw: st.DrawFn) -> Graph:
    """One or two convolutions of any kind along one to three dimensions, and a sum of both."""
    b, rank = Builder("images"), draw(st.sampled_from((1, 2, 2, 3)))
    names = "dhw"[-rank:]
    unknown = draw(st.sets(st.sampled_from(names), min_size=1))
    space = [tir.Var(n) if n in unknown else draw(st.integers(LEAST, MOST)) for n in names]
    batch = draw(st.sampled_from((1, 2, tir.Var("n"))))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    x = b.input("x", f32, (batch, *space, draw(st.sampled_from((3, 8, 17)))))
    y = _convolved(draw, b, x, rng)
    if draw(st.booleans()):
        z = _convolved(draw, b, b.map(lambda v: tir.maximum(v, 0.0), y), rng, keeps=True)
        y = b.map(lambda v, w: v - w, z, y)
    return b.graph([y], ["y"])


def _convolved(
    draw: st.DrawFn, b: Builder, x: Value, rng: np.random.Generator, *, keeps: bool = False
) -> Value:
    rank, channels = x.rank - 2, tir.int_value(x.shape[-1]) or 1
    filters = channels if keeps else draw(st.sampled_from((1, 8, 16, 20)))
    ones = (1,) * rank
    many = lambda *of: tuple(draw(st.sampled_from(of)) for _ in range(rank))  # noqa: E731
    if not keeps and draw(st.integers(0, 3)) == 0:
        weights = rng.uniform(
            -1, 1, (channels, filters, *(draw(st.sampled_from((2, 3, 4))),) * rank)
        )
        spread = ConvTranspose(many(1, 2), ones, (0,) * (2 * rank), (0,) * rank, 1, f32)
        return b.add(spread, x, b.constant(weights.astype(np.float32), "t"))
    taps = (3,) * rank if keeps else many(1, 2, 3)
    pads = ones * 2 if keeps else (*many(0, 1), *many(0, 1))
    steps = (ones, ones) if keeps else (many(1, 1, 2), many(1, 1, 2))
    weights = rng.uniform(-1, 1, (filters, channels, *taps)) / channels
    return b.add(Conv(*steps, pads, 1, f32), x, b.constant(weights.astype(np.float32), "w"))


def drawn(data: st.DataObject, graph: Graph, site: Site) -> Alternative:
    """Any two ways for large and small results, taken from any size on."""
    node = next((n for n in site.nodes if isinstance(n.op, Conv | ConvTranspose)), None)
    if node is None or not isinstance(node.op, Conv | ConvTranspose):
        return site.alternatives[0]
    ways = list(algorithms_of(node.op, graph.constants[node.inputs[1]], strict=False))
    large = data.draw(st.sampled_from(ways), label="large")
    small = data.draw(st.sampled_from(ways), label="small")
    places = data.draw(st.sampled_from((0, 1, 50, 150, 10**6)), label="places")
    way = dataclasses.replace(large, places=places, below=small.tiles) if large.tiles else DIRECT
    return Alternative(algorithm=way)


@given(graph=networks(), data=st.data(), threads=st.sampled_from([1, 2]))
@examples(4)
def test_large_and_small_images(graph, data, threads):
    sites = sites_of(graph, SETTINGS)
    assume(any(len(site.alternatives) > 1 for site in sites))
    applied = apply(graph, [(site, drawn(data, graph, site)) for site in sites])
    assert not applied.conversions
    made = applied.graph
    note(str(made))
    module, _ = compiled(verify_graph(made), threads)
    for seed in range(3):
        sizes = data.draw(st.lists(st.integers(LEAST, MOST), min_size=3, max_size=3), label="sizes")
        known = dict(zip("dhwn", [*sizes, 2], strict=True))
        shape = [known.get(getattr(d, "name", ""), tir.int_value(d)) for d in made.inputs[0].shape]
        x = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
        (got,), (want,) = module.run({"x": x}), interpret(graph, {"x": x})
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-2, atol=1e-3 * max(1.0, np.abs(want).max()))
