"""Measured times take the place of predictions, in units that can be added to them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.layouts.test_sites import MACHINE, SETTINGS, residual, same_results, site_with
from tilewright.graph.ops.window import Conv
from tilewright.layouts.choose import choose, decide
from tilewright.layouts.costs import Machine
from tilewright.layouts.forms import FIRST, LAST, Form, blocked
from tilewright.layouts.sharing import Price
from tilewright.layouts.sites import Settings, Site, sites_of
from tilewright.layouts.timing import Timing, converted_kind
from tilewright.schedule.measured import Measured, SiteTimes, conversion_key, site_key


def chosen_for(graph, site: Site, settings: Settings = SETTINGS):
    return next(a for s, a in decide(graph, settings)[0] if s.nodes == site.nodes)


def timed(site: Site, reference, times: dict, rate: float = 0.5) -> Measured:
    """Times of a site whose reference takes `rate` nanoseconds for each predicted cycle."""
    plain = next(a for a in site.alternatives if (a.key(4)) == reference.removesuffix("+halo"))
    time_ns = plain.cycles * rate
    known = {reference: time_ns} | {key: time_ns * ratio for key, ratio in times.items()}
    return Measured({site_key(site.workload): SiteTimes(reference, time_ns, known)})


def test_what_was_measured_to_be_fast_is_chosen():
    graph = residual()
    site = site_with(graph, Conv)
    drafted = chosen_for(graph, site)
    slowest = max(site.alternatives, key=lambda a: a.cycles)
    times = timed(site, drafted.key(4), {slowest.key(4): 1e-3})
    settings = replace(SETTINGS, times=times)
    taken = chosen_for(graph, site, settings)
    assert (taken.algorithm, taken.result) == (slowest.algorithm, slowest.result)
    assert taken.algorithm != drafted.algorithm
    same_results(graph, choose(graph, settings).graph)


@pytest.mark.parametrize("rate", [0.01, 1.0, 300.0])
def test_units_do_not_matter(rate):
    """Neither the clock nor the number of threads: the choice is that of the predictions."""
    graph = residual()
    site = site_with(graph, Conv)
    drafted, _ = decide(graph, SETTINGS)
    key = chosen_for(graph, site).key(4)
    again, _ = decide(graph, replace(SETTINGS, times=timed(site, key, {}, rate)))
    assert [a.key(4) for _, a in again] == [a.key(4) for _, a in drafted]
    if not key.endswith("+halo"):
        assert [a.cycles for _, a in again] == pytest.approx([a.cycles for _, a in drafted])


def test_what_was_not_measured_is_as_wrong_as_the_reference():
    graph = residual()
    first, second = (s for s in sites_of(graph, SETTINGS) if s.conv is not None)
    plain = [a for a in first.alternatives if not a.result.halo]
    # One site is three times as slow as predicted, beside the other: the rate is that of both.
    times = timed(first, plain[0].key(4), {}, 3.0)
    times = Measured({**times.sites, **timed(second, plain[0].key(4), {}, 1.0).sites})
    found = sites_of(graph, replace(SETTINGS, times=times))
    slower, faster = (s for s in found if s.conv is not None)
    ratios = [
        {round(a.cycles / b.cycles, 6) for a, b in zip(s.alternatives, o.alternatives, strict=True)
         if not a.result.halo}
        for s, o in ((slower, first), (faster, second))
    ]  # fmt: skip
    ((of_slower,), (of_faster,)) = ratios
    assert of_slower == pytest.approx(3 * of_faster)
    assert of_slower > 1 > of_faster


def test_an_algorithm_that_rounds_more_must_be_faster_by_its_margin():
    """That is policy, whether times are predicted or measured."""
    graph = residual()
    site = site_with(graph, Conv)
    plain = [a for a in site.alternatives if a.source.plain == a.result == LAST]
    direct = next(a for a in plain if a.algorithm.name == "direct")
    tiled = next(a for a in plain if a.algorithm.name == "F(6, 3)")
    found = sites_of(graph, replace(SETTINGS, times=timed(site, direct.key(4), {tiled.key(4): 1})))
    priced = {a.key(4): a.cycles for s in found if s.nodes == site.nodes for a in s.alternatives}
    assert priced[tiled.key(4)] == pytest.approx(1.15 * priced[direct.key(4)])


def test_a_reference_that_is_gone_is_a_miss():
    graph = residual()
    site = site_with(graph, Conv)
    times = Measured({site_key(site.workload): SiteTimes("F(9, 9) a→b", 1.0, {"F(9, 9) a→b": 1.0})})
    drafted, settings = decide(graph, SETTINGS)[0], replace(SETTINGS, times=times)
    assert [a for _, a in decide(graph, settings)[0]] == [a for _, a in drafted]


def test_conversions_cost_what_they_were_measured_to_cost():
    (x,) = residual().inputs
    key = conversion_key(converted_kind(x), "nhwc", "nchw")
    timing = Timing(Measured(conversions={key: 5.0}), 2.0)
    price, plain = Price.of(x, MACHINE, timing), Price.of(x, MACHINE)
    assert price(LAST, FIRST) == 10.0
    assert price(FIRST, LAST) == plain(FIRST, LAST) == plain.converted
    assert price(LAST, blocked(8)) == plain.converted
    assert price(FIRST, FIRST) == 0
    halo = Form(halo=((1, 1), (1, 1)))
    assert price(halo, FIRST) == 10.0
    assert price(LAST, halo) == plain.bordered


def test_dear_conversions_are_not_made():
    """A network with conversions has none, once these were measured to be slow."""
    graph = residual()
    target = Machine(MACHINE.target, 1)
    free: dict[str, float] = {}
    dear: dict[str, float] = {}
    forms = SETTINGS.forms
    for value in {v for node in graph.nodes for v in (*node.inputs, *node.outputs) if v.rank == 4}:
        for before in forms:
            for after in forms:
                key = conversion_key(converted_kind(value), before.name(4), after.name(4))
                free[key], dear[key] = 1e-9, 1e12
    with_free = choose(graph, Settings(target, times=Measured(conversions=free)))
    with_dear = choose(graph, Settings(target, times=Measured(conversions=dear)))
    assert len(with_dear.conversions) == 0
    assert with_free.cycles <= choose(graph, SETTINGS).cycles
