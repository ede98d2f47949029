"""The layouts of a site by number, and those that records add to the choice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.layouts.test_sites import SETTINGS, Network, residual, same_results, site_with
from tilewright.graph import Graph
from tilewright.graph.ops.window import Conv, Pool
from tilewright.layouts.choose import choose, decide
from tilewright.layouts.forms import FIRST, LAST, Form, blocked
from tilewright.layouts.sites import Site, sites_of
from tilewright.layouts.template import LayoutSpace
from tilewright.schedule.measured import Measured, SiteTimes, site_key
from tilewright.tensor import ir as tir

MACHINE = SETTINGS.machine
CUT = Form(first=True, block=4, tiles=(4, 8))


def pooled() -> Graph:
    """A window between two convolutions."""
    n = Network()
    inside = n.b.transpose(n.relu(n.conv(n.x, 16)), (0, 2, 3, 1))
    window = Pool(tir.Fold.MAX, (3, 3), (2, 2), (1, 1), (1,) * 4)
    return n.graph(n.conv(n.b.transpose(n.b.add(window, inside), (0, 3, 1, 2)), 16))


def space_of(graph: Graph, kind: type) -> LayoutSpace:
    return LayoutSpace.of(site_with(graph, kind), MACHINE)


@pytest.mark.parametrize("kind", [Conv, Pool])
def test_numbers_stand_for_alternatives(kind):
    space = space_of(pooled(), kind)
    for alternative in space.site.alternatives:
        number = space.number(alternative)
        assert number is not None
        assert space.alternative(number) == alternative
    rows = space.sample(np.random.default_rng(1), 100)
    assert len({tuple(row) for row in rows}) == 100
    assert space.followed(rows).all()
    for row in rows:
        found = space.at(row)
        assert found is not None
        assert space.digits(found) == tuple(row)
        number = space.number(found)
        assert number is not None
        assert 0 <= number < space.size
        assert space.alternative(number) == found


def test_data_and_results_have_every_block_and_tile():
    space = space_of(pooled(), Conv)
    assert space.result is not None
    assert space.result.orders == (LAST, FIRST, *map(blocked, (4, 8, 16, 2)))
    assert space.result.tiles == ((0, 1, 2, 4, 8, *(t for t in range(16) if 16 % max(t, 1))),) * 2
    assert space.result.lengths == (6, 16, 16, 1)


def test_windows_of_data_may_overlap():
    site = next(s for s in reversed(sites_of(pooled(), SETTINGS)) if s.conv is not None)
    space = LayoutSpace.of(site, MACHINE)
    assert space.source is not None
    assert space.source.overlap == (2, 2)
    assert space.source.form((0, 3, 0, 1)) == Form(tiles=(4, 0), overlap=(2, 0))
    assert space.source.form((0, 0, 0, 1)) is None, "there is nothing to overlap"


def test_what_reads_as_it_writes_has_one_form():
    space = space_of(pooled(), Pool)
    rows = space.sample(np.random.default_rng(2), 50)
    found = [a for row in rows if (a := space.at(row)) is not None]
    assert {a.source.plain == a.result.plain for a in found} == {True}
    assert any(a.result.tiles for a in found)


def test_tiles_that_do_not_fit_are_none():
    space = space_of(pooled(), Conv)
    way = space.algorithms[0]
    assert space.made(way, LAST, Form(tiles=(17, 0)), halo=False) is None
    assert space.made(way, LAST, blocked(3), halo=False) is None
    assert space.number(replace(space.site.alternatives[0], result=blocked(3))) is None


@pytest.mark.parametrize("kind", [Conv, Pool])
def test_keys_are_read_back(kind):
    space = space_of(pooled(), kind)
    for row in space.sample(np.random.default_rng(3), 50):
        found = space.at(row)
        assert found is not None
        assert space.named(found.key(4)) == found
    for key in ("", "direct", "direct nhwc", "F(9, 3) nhwc→nhwc", "direct nhwc→nhwc/99x0"):
        assert space.named(key) is None


def with_record(site: Site, key: str, ratio: float) -> Measured:
    reference = min(site.alternatives, key=lambda a: a.cycles).key(4)
    times = SiteTimes(reference, 100.0, {reference: 100.0, key: 100.0 * ratio})
    return Measured({site_key(site.workload): times})


def test_a_recorded_layout_is_offered_and_followed():
    """A layer that is fast in tiles writes them, and the window behind it reads them."""
    graph = pooled()
    site = site_with(graph, Conv)
    space = LayoutSpace.of(site, MACHINE)
    fast = space.made(space.algorithms[0], LAST, CUT, halo=False)
    assert fast is not None
    settings = replace(SETTINGS, times=with_record(site, fast.key(4), 1e-6))
    chosen, _ = decide(graph, settings)
    taken = {s.nodes: a for s, a in chosen}
    assert taken[site.nodes].result == CUT
    window = next(a for s, a in chosen if any(isinstance(n.op, Pool) for n in s.nodes))
    assert (window.source.plain, window.result.plain) == (CUT, CUT)
    same_results(graph, choose(graph, settings).graph)


def test_tiles_that_overlap_are_converted_with_their_border():
    """The convolution reads its windows inside of them, in a model as where it was measured."""
    graph = pooled()
    site = next(s for s in reversed(sites_of(graph, SETTINGS)) if s.conv is not None)
    space = LayoutSpace.of(site, MACHINE)
    direct = next(a for a in space.algorithms if a.tiles is None)
    fast = space.made(direct, Form(tiles=(4, 4), overlap=(2, 2)), LAST, halo=False)
    assert fast is not None
    made = choose(graph, replace(SETTINGS, times=with_record(site, fast.key(4), 1e-6)))
    (copy,) = (c for c in made.conversions if c.after.overlap)
    assert copy.after == fast.source
    assert copy.after.halo == ((1, 1), (1, 1))
    same_results(graph, made.graph)


def test_tiles_are_priced_by_what_they_move():
    site = next(s for s in reversed(sites_of(pooled(), SETTINGS)) if s.conv is not None)
    space = LayoutSpace.of(site, MACHINE)
    direct = next(a for a in space.algorithms if a.tiles is None)

    def source_and_ratio(*overlap: int) -> tuple[Form, float]:
        made = space.made(direct, Form(tiles=(4, 4), overlap=overlap), LAST, halo=False)
        kin = space.made(direct, LAST, LAST, halo=False)
        assert made is not None
        assert kin is not None
        return made.source, made.cycles / kin.cycles

    inside, held_twice = source_and_ratio(2, 2)
    across, copied = source_and_ratio()
    assert inside.halo
    assert not across.halo, "the copy has the border"
    assert 1 < held_twice < 1.2, "these tiles hold more than twice the places"
    assert 1 < copied < 1.2


def test_slower_layouts_are_not_offered():
    graph = residual()
    site = site_with(graph, Conv)
    fast = LayoutSpace.of(site, MACHINE).made(site.alternatives[0].algorithm, LAST, CUT, halo=False)
    assert fast is not None
    settings = replace(SETTINGS, times=with_record(site, fast.key(4), 1.5))
    assert not any(a.result.tiles for s in sites_of(graph, settings) for a in s.alternatives)


@pytest.mark.parametrize("text", ["nchw4c/4x8", "nhwc/5x0", "nchw/3x3~1x1"])
def test_tiles_may_be_asked_for(text):
    graph = pooled()
    choice = choose(graph, replace(SETTINGS, fixed=Form.named(text)))
    assert any(a.result.plain == Form.named(text) for _, a in choice.sites)
    same_results(graph, choice.graph)
