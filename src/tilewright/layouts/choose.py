"""The choice for a whole graph: one alternative for each site, such that all together cost least.

Sites are variables, their alternatives have costs, and where the form that one site writes is not
the one that another wants to read, a conversion is paid for (`solve.py`), once for all who want it
(`sharing.py`). Elementwise sites cost the same in every form: they follow their neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tilewright.graph.grouping import group_nodes
from tilewright.graph.groups import Group
from tilewright.graph.ir import Graph, Value
from tilewright.graph.verify import verify_graph
from tilewright.layouts.apply import Conversion, apply
from tilewright.layouts.flatten import flatten_as_stored
from tilewright.layouts.forms import LAST
from tilewright.layouts.sharing import Price, Shared, tabulated
from tilewright.layouts.sites import Alternative, Settings, Site, sites_of
from tilewright.layouts.solve import Problem, Solution, solve
from tilewright.layouts.timing import Timing

__all__ = ["Choice", "choose", "decide", "problem_of"]


@dataclass(frozen=True)
class Choice:
    """A graph with its layouts, and how it came to them.

    `groups` are its kernels: the sites as they were priced, and conversions that joined them or run
    alone. `sites` have their alternatives; `conversions` say between whom and why.
    """

    graph: Graph
    groups: tuple[Group, ...]
    sites: tuple[tuple[Site, Alternative], ...]
    conversions: tuple[Conversion, ...]
    cycles: float
    exact: bool


def choose(graph: Graph, settings: Settings) -> Choice:
    """The graph with an algorithm for each convolution and a layout for each value."""
    chosen, solution = decide(graph, settings)
    applied = apply(graph, chosen)
    made = verify_graph(flatten_as_stored(applied.graph))
    groups = tuple(group_nodes(made, applied.kernels))
    how = tuple(chosen), applied.conversions, solution.cost, solution.exact
    return Choice(made, groups, *how)


def decide(
    graph: Graph, settings: Settings, sites: Sequence[Site] | None = None
) -> tuple[list[tuple[Site, Alternative]], Solution]:
    """The alternatives alone, without the graph that they make.

    `sites` may offer fewer alternatives than they have.
    """
    if sites is None:
        sites = sites_of(graph, settings)
    offered = [_offered(site, settings) for site in sites]
    solution = solve(problem_of(graph, sites, offered, settings))
    # Behind the sites, variables stand for values that several of them read.
    chosen = [alts[k] for alts, k in zip(offered, solution.choice, strict=False)]
    return list(zip(sites, chosen, strict=True)), solution


def _offered(site: Site, settings: Settings) -> tuple[Alternative, ...]:
    """The alternatives that count: those of a fixed form, if there is one and the site has it."""
    wanted = settings.fixed
    if wanted is None:
        return site.alternatives
    both = [a for a in site.alternatives if a.source.plain == a.result.plain == wanted]
    either = [a for a in site.alternatives if wanted in (a.source.plain, a.result.plain)]
    return tuple(both or either or site.alternatives[:1])


def problem_of(
    graph: Graph,
    sites: Sequence[Site],
    offered: Sequence[Sequence[Alternative]],
    settings: Settings,
) -> Problem:
    """The choice as a sum of tables: sites first, then values that several of them read."""
    maker = {value: k for k, site in enumerate(sites) for value in site.results}
    costs = [[a.cycles for a in alternatives] for alternatives in offered]
    names = [site.nodes[-1].label or site.results[0].name for site in sites]
    edges: list[tuple[int, int, NDArray[np.float64]]] = []
    timing = Timing.of(settings.times, sites, settings.machine)
    for value, readers in _readers(graph, sites).items():
        price = Price.of(value, settings.machine, timing)
        writer = maker.get(value)
        written = [LAST] if writer is None else [a.result for a in offered[writer]]
        wanted = [[sites[r].wanted(value, a) for a in offered[r]] for r in readers]
        tables = [tabulated(price, written, forms) for forms in wanted]
        if not any(table.any() for table in tables):
            continue
        shared = Shared.by(price, written, wanted)
        if any(shared.costs):
            if writer is not None:
                edges.append((len(costs), writer, shared.written_as(written)))
            tables = [shared.read_as(forms) for forms in wanted]
            writer = len(costs)
            costs.append(shared.costs)
            names.append(value.name)
        for reader, table in zip(readers, tables, strict=True):
            if writer is None:
                costs[reader] = [c + paid for c, paid in zip(costs[reader], table[0], strict=True)]
            else:
                edges.append((writer, reader, table))
    return Problem(costs, edges, names)


def _readers(graph: Graph, sites: Sequence[Site]) -> dict[Value, list[int]]:
    """Who reads each value that is computed or given to the graph."""
    found: dict[Value, list[int]] = {}
    for k, site in enumerate(sites):
        for value in site.reads:
            if value not in graph.constants:
                found.setdefault(value, []).append(k)
    return found
