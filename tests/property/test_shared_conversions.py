"""What a choice is said to cost is what its graph needs, each conversion once, and it is the least.

Choices are looked at one by one, all of them where there are few: for one value with readers that
share its conversions, and for networks, whose conversions are counted in the graph that is made.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import random

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from tests.examples import examples
from tests.graphs import RandomGraph
from tests.laid_out import images
from tilewright.graph.ir import Graph
from tilewright.graph.passes.pipeline import optimise
from tilewright.layouts.apply import apply
from tilewright.layouts.choose import decide
from tilewright.layouts.costs import Machine
from tilewright.layouts.forms import FIRST, LAST, Form, blocked
from tilewright.layouts.sharing import Price, Shared
from tilewright.layouts.sites import Alternative, Settings, Site, sites_of
from tilewright.layouts.solve import Problem, solve
from tilewright.target import Target

HALO, WIDE = ((1, 1), (1, 1)), ((2, 2), (2, 2))
FORMS = [
    dataclasses.replace(form, halo=halo)
    for form in (LAST, FIRST, blocked(8), blocked(16), Form(tiles=(4, 4), overlap=(2, 2)))
    for halo in ((), HALO, WIDE)
]
MANY = 3000


def ways(rng: random.Random) -> list[tuple[Form, float]]:
    """Forms that something can have, with what they cost it."""
    return [(rng.choice(FORMS), rng.uniform(0, 20)) for _ in range(rng.randint(1, 5))]


def paid(price: Price, written: Form, wanted: list[Form]) -> float:
    """What readers of a value cost: a conversion for each form that is not there, and borders."""
    made = {form.as_copied for form in wanted if form.plain != written.plain}
    return price.converted * len(made) + sum(price.border(written, form) for form in wanted)


@given(st.integers(0, 1 << 30))
def test_one_value_and_its_readers(seed):
    rng = random.Random(seed)
    price = Price(rng.uniform(0, 10), rng.uniform(0, 5))
    writer, *readers = (ways(rng) for _ in range(rng.randint(3, 5)))
    shared = Shared.by(price, [f for f, _ in writer], [[f for f, _ in r] for r in readers])
    costs = [shared.costs, *([c for _, c in way] for way in (writer, *readers))]
    edges = [(0, 1, shared.written_as([f for f, _ in writer]))]
    edges += [(0, 2 + k, shared.read_as([f for f, _ in way])) for k, way in enumerate(readers)]
    found = solve(Problem(costs, edges))
    least = min(
        sum(cost for _, cost in (at, *others)) + paid(price, at[0], [form for form, _ in others])
        for at, *others in itertools.product(writer, *readers)
    )
    assert found.exact
    assert found.cost == pytest.approx(least)
    at, *others = (way[k] for way, k in zip((writer, *readers), found.choice[1:], strict=True))
    own = sum(cost for _, cost in (at, *others))
    assert own + paid(price, at[0], [form for form, _ in others]) == pytest.approx(least)


@dataclasses.dataclass(frozen=True)
class FewForms(Settings):
    """Two of them, so that networks have few choices."""

    @property
    def forms(self):
        return (LAST, blocked(4))


SETTINGS = FewForms(Machine(Target.named("x86-64-v3"), 1), strict=True)


def needed(graph: Graph, chosen: list[tuple[Site, Alternative]]) -> float:
    """What a choice costs by the graph that it makes."""
    conversions = apply(graph, chosen).conversions
    machine = SETTINGS.machine
    written = {value: a.result for site, a in chosen for value in site.results}
    values = {v.name: v for v in (*graph.inputs, *written)}
    moved = [Price.of(values[conversion.value], machine).converted for conversion in conversions]
    borders = [
        Price.of(value, machine).border(written.get(value, LAST), site.wanted(value, a))
        for site, a in chosen
        for value in site.reads
        if value not in graph.constants
    ]
    return math.fsum((*(a.cycles for _, a in chosen), *moved, *borders))


@given(network=images(nodes=6), seed=st.integers(0, 1 << 20))
@examples(40)
def test_networks(network: RandomGraph, seed: int):
    check_network(optimise(network.graph), seed)


def check_network(graph: Graph, seed: int) -> None:
    note(str(graph))
    chosen, solution = decide(graph, SETTINGS)
    assert solution.cost == pytest.approx(needed(graph, chosen))
    sites = sites_of(graph, SETTINGS)
    counts = [len(site.alternatives) for site in sites]
    if math.prod(counts) <= MANY:
        others = list(itertools.product(*map(range, counts)))
    else:
        rng = random.Random(seed)
        others = [tuple(map(rng.randrange, counts)) for _ in range(50)]
    for choice in others:
        other = [(site, site.alternatives[k]) for site, k in zip(sites, choice, strict=True)]
        assert needed(graph, other) >= solution.cost * (1 - 1e-9)
