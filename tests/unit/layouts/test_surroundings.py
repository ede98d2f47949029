"""What the rest of a graph costs with an alternative, of the untuned choice or of the template."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.unit.layouts.test_sites import SETTINGS, Network
from tilewright.graph import Graph
from tilewright.graph.ops.window import Pool
from tilewright.layouts.apply import apply
from tilewright.layouts.choose import decide
from tilewright.layouts.forms import LAST, Form, blocked
from tilewright.layouts.sites import Alternative, sites_of
from tilewright.layouts.surroundings import Surroundings, conversions_in
from tilewright.layouts.template import LayoutSpace
from tilewright.layouts.timing import converted_kind
from tilewright.schedule.measured import Measured, SiteTimes, conversion_key, site_key
from tilewright.tensor import ir as tir

MACHINE = SETTINGS.machine
CUT = Form(first=True, block=4, tiles=(4, 8))


def chain() -> Graph:
    """Two convolutions with a sum and a window between them, which take any form."""
    n = Network()
    inside = n.b.transpose(n.relu(n.conv(n.x, 16)), (0, 2, 3, 1))
    shifted = n.b.map(lambda v: v + 1.0, inside)
    window = n.b.add(Pool(tir.Fold.MAX, (3, 3), (2, 2), (1, 1), (1,) * 4), shifted)
    return n.graph(n.conv(n.b.transpose(window, (0, 3, 1, 2)), 16))


@pytest.fixture(scope="module")
def around() -> Surroundings:
    graph = chain()
    return Surroundings(graph, SETTINGS, sites_of(graph, SETTINGS))


def first_product(around: Surroundings) -> int:
    return next(k for k, site in enumerate(around.sites) if site.conv is not None)


def written_as(around: Surroundings, form: Form) -> Alternative:
    """The first convolution, with a result in a form of the template."""
    number = first_product(around)
    space = LayoutSpace.of(around.sites[number], MACHINE)
    found = space.made(space.algorithms[0], LAST, form, halo=False)
    assert found is not None
    return found


def test_costs_are_those_of_the_choice_with_one_site_decided(around):
    for number, site in enumerate(around.sites):
        costs = around.costs(number, site.alternatives)
        for k in (0, len(costs) - 1):
            only = [
                replace(s, alternatives=(site.alternatives[k],)) if s is site else s
                for s in around.sites
            ]
            _, solution = decide(around.graph, around.settings, only)
            assert costs[k] + site.alternatives[k].cycles == pytest.approx(solution.cost)


def test_a_layout_that_nobody_offers_is_followed_by_what_takes_any_form(around):
    number, fast = first_product(around), written_as(around, CUT)
    chosen = around.choice(number, fast)
    assert chosen[number][1] == fast
    (window,) = [a for site, a in chosen if any(isinstance(n.op, Pool) for n in site.nodes)]
    assert window.source.plain == CUT
    converted = list(conversions_in(around.graph, chosen))
    assert len(converted) == 1, "the second convolution wants it otherwise"
    plain, cut = around.costs(number, [around.sites[number].alternatives[0], fast])
    assert cut > plain


def test_prices_are_of_what_alternatives_are_and_not_of_what_they_cost(around):
    number, fast = first_product(around), written_as(around, CUT)
    dear = replace(fast, cycles=fast.cycles * 100)
    assert around.costs(number, [fast]) == pytest.approx(around.costs(number, [dear]))


def test_conversions_are_those_that_are_in_the_graph(around):
    number = first_product(around)
    for form in (CUT, blocked(4), blocked(2)):
        chosen = around.choice(number, written_as(around, form))
        applied = apply(around.graph, chosen).conversions
        found = {(v.name, str(b), str(a)) for v, b, a in conversions_in(around.graph, chosen)}
        assert found == {(c.value, str(c.before.plain), str(c.after)) for c in applied}


@pytest.mark.parametrize("time_ns", [1.0, 1e9])
def test_measured_conversions_are_paid(around, time_ns):
    number, fast = first_product(around), written_as(around, CUT)
    ((value, before, after),) = conversions_in(around.graph, around.choice(number, fast))
    key = conversion_key(converted_kind(value), before.name(4), after.name(4))
    settings = replace(SETTINGS, times=Measured({}, {key: time_ns}))
    paid = Surroundings(around.graph, settings, sites_of(around.graph, settings))
    (predicted,), (measured,) = around.costs(number, [fast]), paid.costs(number, [fast])
    assert np.sign(measured - predicted) == (1 if time_ns > 1e6 else -1)


def test_the_rate_is_that_of_what_was_measured(around):
    number = first_product(around)
    site = around.sites[number]
    assert around.rate == SETTINGS.machine.model.ghz
    best = min(site.alternatives, key=lambda a: a.cycles)
    times = SiteTimes(best.key(4).removesuffix("+halo"), 2 * best.cycles, {})
    settings = replace(SETTINGS, times=Measured({site_key(site.workload): times}))
    slow = Surroundings(around.graph, settings, sites_of(around.graph, settings))
    assert slow.rate == pytest.approx(0.5, rel=0.2)
