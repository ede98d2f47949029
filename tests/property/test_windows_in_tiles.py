"""Convolutions whose tiles of data and result match compute the same, and copy nothing.

A tile of data has the step of the windows times as many places as one of results, and reaches as
far into the next one as windows do.
"""

from __future__ import annotations

import numpy as np
from hypothesis import assume, event, given, note
from hypothesis import strategies as st

from tests.examples import examples
from tests.property.test_joint_points import SETTINGS, Layer, assert_right
from tilewright.dtypes import f32
from tilewright.graph import Builder, interpret
from tilewright.graph.ops.window import Conv
from tilewright.layouts.apply import apply
from tilewright.layouts.forms import FIRST, LAST, Form, blocked
from tilewright.layouts.sites import sites_of
from tilewright.layouts.template import LayoutSpace
from tilewright.model.site_kernels import kernel_of
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import walk_stmts

ORDERS = (LAST, FIRST, blocked(4), blocked(8))


@st.composite
def layers(draw: st.DrawFn) -> Layer:
    """A convolution whose result has places for two tiles at least."""
    rank = draw(st.sampled_from([1, 2, 2]))
    each = {"taps": (1, 3), "strides": (1, 2), "dilations": (1, 2)}
    own = {
        name: tuple(draw(st.integers(*ends)) for _ in range(rank)) for name, ends in each.items()
    }
    space = tuple(draw(st.integers(8, 14)) for _ in range(rank))
    pads = draw(st.integers(0, 1)) if min(own["taps"]) > 1 else 0
    filters = draw(st.sampled_from([8, 16]))
    return Layer(space, 8, filters, groups=draw(st.sampled_from([1, 1, 2])), pads=pads, **own)


def with_tiles(draw: st.DrawFn, layer: Layer, counts: list[int]) -> tuple[Form, Form]:
    """Forms of data and result that are cut alike."""
    tiles = [draw(st.sampled_from([0, *range(1, count)])) for count in counts]
    cut = [t * s for t, s in zip(tiles, layer.strides, strict=True)]
    windows = zip(layer.taps, layer.dilations, layer.strides, cut, strict=True)
    more = [max(0, (k - 1) * d + 1 - s) if t else 0 for k, d, s, t in windows]
    data, result = draw(st.sampled_from(ORDERS)), draw(st.sampled_from(ORDERS))
    return (
        Form(data.first, data.block, (), tuple(cut), tuple(more)),
        Form(result.first, result.block, (), tuple(tiles)),
    )


@given(layer=layers(), data=st.data(), seed=st.integers(0, 1 << 30))
@examples(40)
def test_tiles_that_match_compute_what_the_layer_means(
    layer: Layer, data: st.DataObject, seed: int
):
    graph, site = layer.site()
    (made,) = site.results
    counts = [tir.int_value(size) or 0 for size in made.shape[1:-1]]
    source, result = with_tiles(data.draw, layer, counts)
    space = LayoutSpace.of(site, SETTINGS.machine)
    direct = next(a for a in space.algorithms if a.tiles is None and not a.lines)
    alternative = space.made(direct, source, result, halo=False)
    assume(alternative is not None)
    assert alternative is not None
    note(alternative.key(len(counts) + 2))
    event(f"data {'in tiles' if source.tiles else 'whole'}{' that overlap' * bool(source.overlap)}")
    kernel = kernel_of(graph, site, alternative)
    assert kernel is not None
    if alternative.source.tiles and alternative.source.halo:
        blocks = [stmt for stmt in walk_stmts(kernel.program) if isinstance(stmt, tir.Block)]
        assert not any("border" in block.name for block in blocks)
    assert_right(graph, site, alternative, kernel, np.random.default_rng(seed))


def test_readers_with_other_borders_have_copies_of_their_own():
    """Of the same tiles: zeros are where the windows of each reader want them."""
    b = Builder("two")
    x = b.map(lambda v: v * 2.0, b.input("x", f32, (1, 12, 12, 8)))
    weights = np.random.default_rng(0).uniform(-1, 1, (8, 8, 3, 3)).astype(np.float32)
    w = b.constant(weights, "w")
    graph = b.graph([b.add(Conv((1, 1), (1, 1), (pad,) * 4, 1, f32), x, w) for pad in (1, 0)])
    tiles = Form(tiles=(4, 4), overlap=(2, 2))
    chosen = []
    for site in sites_of(graph, SETTINGS):
        space = LayoutSpace.of(site, SETTINGS.machine)
        plain = next((a for a in space.algorithms if a.tiles is None and not a.lines), None)
        cut = space.made(plain, tiles, LAST, halo=False) if plain and site.conv else None
        chosen.append((site, cut or site.alternatives[0]))
    applied = apply(graph, chosen)
    halos = {conversion.after.halo for conversion in applied.conversions if conversion.after.tiles}
    assert len(halos) == 2
    feeds = {"x": np.random.default_rng(1).uniform(-1, 1, (1, 12, 12, 8)).astype(np.float32)}
    for found, wanted in zip(interpret(applied.graph, feeds), interpret(graph, feeds), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
