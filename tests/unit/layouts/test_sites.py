"""What sites a network has, what they offer, and what the choice makes of them."""

from __future__ import annotations

import dataclasses
import random

import numpy as np
import pytest

from tests.laid_out import compiled
from tilewright.dtypes import f32
from tilewright.graph import Builder, Graph, Value, interpret
from tilewright.graph.groups import is_view
from tilewright.graph.ops import Concat, Reduce, Remap, Transpose
from tilewright.graph.ops.window import Conv, Pool
from tilewright.graph.passes.pipeline import optimise
from tilewright.layouts.choose import choose
from tilewright.layouts.costs import Machine
from tilewright.layouts.forms import FIRST, LAST, blocked
from tilewright.layouts.sites import Settings, Site, sites_of
from tilewright.layouts.space import Space, measured
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.layout import Split

MACHINE = Machine(Target.named("x86-64-v3"), 1)
SETTINGS = Settings(MACHINE)


class Network:
    """Layers as models write them: channels first outside, channels last inside."""

    def __init__(self, size: int = 16, channels: int = 16) -> None:
        self.b = Builder("network")
        self.rng = np.random.default_rng(1)
        self.x = self.b.input("x", f32, (1, channels, size, size))

    def conv(
        self, x: Value, filters: int, taps: int = 3, groups: int = 1, stride: int = 1
    ) -> Value:
        channels = tir.int_value(x.shape[1]) or 1
        w = self.rng.uniform(-1, 1, (filters, channels // groups, taps, taps)) / taps
        op = Conv((stride,) * 2, (1, 1), (taps // 2,) * 4, groups, f32)
        inside = self.b.transpose(x, (0, 2, 3, 1))
        made = self.b.add(op, inside, self.b.constant(w.astype(np.float32), "w"))
        return self.b.transpose(made, (0, 3, 1, 2))

    def relu(self, x: Value) -> Value:
        return self.b.map(lambda v: tir.maximum(v, 0.0), x)

    def graph(self, y: Value) -> Graph:
        return optimise(self.b.graph([y], ["y"]))


def residual() -> Graph:
    n = Network()
    first = n.relu(n.conv(n.x, 16))
    second = n.conv(first, 16)
    return n.graph(n.relu(n.b.map(lambda v, w: v + w, second, first)))


def site_with(graph: Graph, kind: type) -> Site:
    return next(
        s for s in sites_of(graph, SETTINGS) if any(isinstance(n.op, kind) for n in s.nodes)
    )


def same_results(graph: Graph, made: Graph) -> None:
    x = np.random.default_rng(3).uniform(-1, 1, (1, 16, 16, 16)).astype(np.float32)
    found = compiled(made)[0].run({"x": x})
    np.testing.assert_allclose(found[0], interpret(graph, {"x": x})[0], atol=1e-4)


def test_a_convolution_offers_algorithms_and_forms():
    site = site_with(residual(), Conv)
    names = {a.algorithm.name for a in site.alternatives}
    assert names == {
        "direct",
        *(f"{beside}F({m}, 3)" for m in range(2, 7) for beside in ("", "3×")),
    }
    assert {a.result.plain for a in site.alternatives} == {LAST, FIRST, blocked(8), blocked(16)}
    assert {a.source.plain for a in site.alternatives} == {LAST, FIRST, blocked(8), blocked(16)}


def test_what_others_pad_may_be_written_inside_of_zeros():
    first = site_with(residual(), Conv)
    assert {bool(a.result.halo) for a in first.alternatives} == {True, False}


def test_elementwise_reads_and_pools_follow():
    n = Network()
    pooled = n.b.transpose(
        n.b.add(
            Pool(tir.Fold.MAX, (2, 2), (2, 2), (1, 1), (0,) * 4),
            n.b.transpose(n.conv(n.x, 16), (0, 2, 3, 1)),
        ),
        (0, 3, 1, 2),
    )
    site = site_with(n.graph(n.conv(pooled, 8)), Pool)
    assert all(a.source == a.result.plain for a in site.alternatives)
    assert len(site.alternatives) >= 4


def test_odd_channels_have_no_blocks():
    n = Network(channels=17)
    site = site_with(n.graph(n.relu(n.conv(n.x, 255, 1))), Conv)
    assert {a.result for a in site.alternatives} == {LAST, FIRST}


def test_transposes_at_the_border_cost_nothing_if_forms_agree():
    n = Network()
    graph = n.graph(n.relu(n.conv(n.x, 16, taps=3, groups=16)))
    choice = choose(graph, Settings(MACHINE, fixed=FIRST))
    moves = [node for node in choice.graph.nodes if isinstance(node.op, Transpose)]
    assert len(moves) == 2
    assert all(map(is_view, moves))
    same_results(graph, choice.graph)


@pytest.mark.parametrize("form", [None, LAST, FIRST, blocked(8)])
def test_every_fixed_form_means_the_same(form):
    graph = residual()
    choice = choose(graph, Settings(MACHINE, fixed=form))
    assert choice.exact
    same_results(graph, choice.graph)
    if form is not None:
        convs = [a for s, a in choice.sites if any(isinstance(n.op, Conv) for n in s.nodes)]
        assert {a.source.plain for a in convs} == {form}


def test_padding_bias_activation_and_another_convolution_need_no_conversion():
    """Between the layers of a network nothing is copied from one layout to another."""
    n = Network(56, 32)
    hidden = n.relu(n.conv(n.x, 64))
    graph = n.graph(n.relu(n.conv(hidden, 64, taps=1)))
    assert choose(graph, SETTINGS).conversions == ()


@pytest.mark.parametrize("name", ["x86-64-v3", "x86-64-v4"])
def test_small_images_of_channels_a_page_apart_are_blocked(name):
    """Columns would share one set of the first cache; the transposes at both ends do the work."""
    n = Network(7, 1024)
    graph = n.graph(n.conv(n.x, 1024, groups=1024))
    found = choose(graph, Settings(Machine(Target.named(name), 1)))
    (conv,) = (node for node in found.graph.nodes if isinstance(node.op, Conv))
    assert any(isinstance(step, Split) for step in conv.output.layout)
    assert found.conversions == ()
    assert len(found.graph.nodes) == 3


def test_conversions_say_for_whom():
    n = Network()
    hidden = n.relu(n.conv(n.x, 16))
    flat = n.b.reshape(hidden, (1, 4096))
    choice = choose(n.graph(flat), Settings(MACHINE, fixed=blocked(8)))
    assert [c.after for c in choice.conversions] == [LAST]
    (conversion,) = choice.conversions
    assert conversion.before == blocked(8)


def test_the_joint_space_has_algorithms_layouts_and_loops():
    site = site_with(residual(), Conv)
    space = Space(site, SETTINGS)
    points = list(space.joint())
    assert len(points) > 10 * len(site.alternatives)
    assert len({(p.algorithm, p.source, p.result) for p in points}) == len(site.alternatives)
    best = min(points, key=lambda p: p.cycles)
    assert best.cycles == pytest.approx(min(a.cycles for a in site.alternatives))
    only = list(space.loops(site.alternatives[0]))
    assert {(p.algorithm, p.source, p.result) for p in only} == {
        (site.alternatives[0].algorithm, site.alternatives[0].source, site.alternatives[0].result)
    }
    drawn = space.sample(random.Random(1), 12)
    assert len({p.key(4) for p in drawn}) == 12


def test_what_was_measured_decides():
    """A tuner that says otherwise than the model is believed, loops included."""
    graph = residual()
    site = site_with(graph, Conv)
    slowest = max(site.alternatives, key=lambda a: a.cycles)
    point = list(Space(site, SETTINGS).loops(slowest))[-1]
    found = measured(site, {point: 1.0, dataclasses.replace(point, loops=None): 2.0})
    choice = choose(graph, Settings(MACHINE, measured=found))
    (taken,) = [a for s, a in choice.sites if s.workload == site.workload]
    assert (taken.algorithm, taken.loops) == (slowest.algorithm, point.loops)
    assert any(node.loops == point.loops for node in choice.graph.nodes)
    same_results(graph, choice.graph)


def test_what_is_a_result_has_no_zeros_around_it():
    """Also if another convolution would like them: results are stored as they are."""
    n = Network()
    inside = n.b.transpose(n.conv(n.x, 16), (0, 2, 3, 1))
    graph = optimise(n.b.graph([inside, n.conv(n.b.transpose(inside, (0, 3, 1, 2)), 16)]))
    for site in sites_of(graph, SETTINGS):
        if set(site.results) & set(graph.outputs):
            assert not any(a.result.halo for a in site.alternatives)
    same_results(graph, choose(graph, SETTINGS).graph)


def test_channels_first_of_one_image_are_joined_for_nothing():
    n = Network()
    whole = n.b.concat([n.conv(n.x, 16), n.conv(n.x, 16)], 1)
    site = site_with(n.graph(n.conv(whole, 16)), Concat)
    free = {a.result.plain for a in site.alternatives if a.cycles == 0}
    assert free == {FIRST, blocked(8), blocked(16)}
    halos = [a.cycles for a in site.alternatives if a.result.halo]
    assert halos
    assert min(halos) > 0


def test_what_has_no_space_has_one_form():
    """A mean of an image is read as the image is stored, and is not converted for its readers."""
    n = Network()
    mean = n.b.map(lambda v: v / 256, n.b.reduce(tir.Fold.ADD, n.conv(n.x, 16), (2, 3)))
    gate = n.conv(n.relu(n.conv(mean, 8, taps=1)), 16, taps=1)
    y = n.b.map(lambda v, w: v * w, n.conv(n.x, 16), gate)
    graph = n.graph(n.conv(y, 16))
    site = site_with(graph, Reduce)
    assert {a.source for a in site.alternatives} == {LAST, FIRST, blocked(8), blocked(16)}
    assert {a.result for a in site.alternatives} == {LAST}
    choice = choose(graph, Settings(MACHINE, fixed=blocked(8)))
    assert choice.conversions == ()
    same_results(graph, choice.graph)


@pytest.mark.parametrize(
    ("begin", "forms"), [(16, {LAST, FIRST, blocked(8), blocked(16)}), (4, {LAST, FIRST})]
)
def test_slices_of_channels_follow_where_they_take_whole_blocks(begin, forms):
    n = Network(8, 16)
    y = n.conv(n.x, 64)
    part = n.b.remap(y, (1, 32, 8, 8), lambda b, c, *place: [b, c + begin, *place])
    graph = optimise(n.b.graph([n.conv(part, 16)], ["y"]))
    (site,) = [
        s for s in sites_of(graph, SETTINGS) if any(isinstance(m.op, Remap) for m in s.nodes)
    ]
    assert {a.result.plain for a in site.alternatives} == forms
    x = np.random.default_rng(2).uniform(-1, 1, (1, 16, 8, 8)).astype(np.float32)
    (want,) = interpret(graph, {"x": x})
    for form in forms:
        made = choose(graph, Settings(MACHINE, fixed=form)).graph
        np.testing.assert_allclose(compiled(made)[0].run({"x": x})[0], want, atol=1e-4)
