"""The choice for a whole graph: one alternative for each site, such that all together cost least.

Sites are variables, their alternatives have costs, and where the form that one site writes is not
the one that another wants to read, a conversion is paid for (`solve.py`). Elementwise sites cost
the same in every form: they follow their neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilewright.graph.ir import Graph, Value
from tilewright.graph.sizes import count
from tilewright.graph.verify import verify_graph
from tilewright.layouts.apply import Conversion, apply
from tilewright.layouts.costs import Machine, bordered_cycles, converted_cycles
from tilewright.layouts.forms import LAST, Form
from tilewright.layouts.sites import Alternative, Settings, Site, sites_of
from tilewright.layouts.solve import Problem, Solution, solve

__all__ = ["Choice", "Price", "choose", "decide"]


@dataclass(frozen=True)
class Choice:
    """A graph with its layouts, and how it came to them.

    `sites` have their alternatives; `conversions` say between whom and why.
    """

    graph: Graph
    sites: tuple[tuple[Site, Alternative], ...]
    conversions: tuple[Conversion, ...]
    cycles: float
    exact: bool


def choose(graph: Graph, settings: Settings) -> Choice:
    """The graph with an algorithm for each convolution and a layout for each value."""
    chosen, solution = decide(graph, settings)
    made, conversions = apply(graph, chosen)
    verify_graph(made)
    return Choice(made, tuple(chosen), tuple(conversions), solution.cost, solution.exact)


def decide(graph: Graph, settings: Settings) -> tuple[list[tuple[Site, Alternative]], Solution]:
    """The alternatives alone, without the graph that they make."""
    sites = sites_of(graph, settings)
    offered = [_offered(site, settings) for site in sites]
    solution = solve(_problem(graph, sites, offered, settings))
    chosen = [alts[k] for alts, k in zip(offered, solution.choice, strict=True)]
    return list(zip(sites, chosen, strict=True)), solution


def _offered(site: Site, settings: Settings) -> tuple[Alternative, ...]:
    """The alternatives that count: those of a fixed form, if there is one and the site has it."""
    wanted = settings.fixed
    if wanted is None:
        return site.alternatives
    both = [a for a in site.alternatives if a.source.plain == a.result.plain == wanted]
    either = [a for a in site.alternatives if wanted in (a.source.plain, a.result.plain)]
    return tuple(both or either or site.alternatives[:1])


def _problem(
    graph: Graph,
    sites: Sequence[Site],
    offered: Sequence[Sequence[Alternative]],
    settings: Settings,
) -> Problem:
    maker = {value: k for k, site in enumerate(sites) for value in site.results}
    costs = [[a.cycles for a in alternatives] for alternatives in offered]
    edges: list[tuple[int, int, NDArray[np.float64]]] = []
    for reader, site in enumerate(sites):
        for value in site.reads:
            if value in graph.constants:
                continue
            price = Price.of(value, settings.machine)
            wanted = [site.wanted(value, a) for a in offered[reader]]
            writer = maker.get(value)
            if writer is None:
                for k, form in enumerate(wanted):
                    costs[reader][k] += price(LAST, form)
                continue
            table = [[price(a.result, form) for form in wanted] for a in offered[writer]]
            if any(map(any, table)):
                edges.append((writer, reader, np.array(table)))
    names = [site.nodes[-1].label or site.results[0].name for site in sites]
    return Problem(costs, edges, names)


@dataclass(frozen=True)
class Price:
    """What it costs that a value is not stored as a reader wants it."""

    converted: float
    bordered: float

    @classmethod
    def of(cls, value: Value, machine: Machine) -> Price:
        elements = count(value.shape, symbolic=1)  # as convolutions count a symbolic batch
        return cls(converted_cycles(elements, machine), bordered_cycles(elements, machine))

    def __call__(self, written: Form, wanted: Form) -> float:
        alike = written.plain == wanted.plain
        # What is converted comes without zeros around it.
        border = 0.0 if (written if alike else LAST).covers(wanted) else self.bordered
        return border if alike else border + self.converted
