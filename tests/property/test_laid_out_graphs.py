"""Whatever layouts the inner values of a graph have, compiled it computes what it means."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given, note
from hypothesis import strategies as st

from tests.examples import examples
from tests.graphs import RandomGraph, graphs
from tests.laid_out import compiled, images, random_layouts, with_layouts
from tilewright.graph import interpret


def check(random: RandomGraph, data: st.DataObject, seed: int, threads: int) -> None:
    graph = with_layouts(random.graph, data.draw(random_layouts(random.graph)))
    note(str(graph))
    feeds = random.feeds(seed)
    expected = interpret(graph, feeds)
    module, _ = compiled(graph, threads)
    for got, want in zip(module.run(feeds), expected, strict=True):
        assert got.shape == want.shape
        scale = max(1.0, float(np.abs(want).max(initial=0.0)))
        rounding = 1e-5 if want.dtype == np.float32 else 1e-2  # values inside of kernels are wide
        np.testing.assert_allclose(got, want, rtol=10 * rounding, atol=rounding * scale)


@given(random=images(), data=st.data(), seed=st.integers(0, 9), threads=st.sampled_from([1, 2]))
@examples(20)
def test_networks_on_images(random, data, seed, threads):
    check(random, data, seed, threads)


@given(random=graphs(), data=st.data(), seed=st.integers(0, 9), threads=st.sampled_from([1, 2]))
@examples(15)
def test_graphs_of_every_kind(random, data, seed, threads):
    assume(min(random.sizes.values()) > 0)  # the edge of an array without elements has no meaning
    check(random, data, seed, threads)
