"""What the rest of a graph costs with an alternative of one site, whether it offers that or not.

A tuner that measures kernels of a site asks what else they cost: conversions, and the second
choices of others. An alternative that the untuned choice does not know is offered for the question,
and its forms to those around it that take any form (`recorded.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tilewright.graph.ir import Graph, Value
from tilewright.layouts.choose import problem_of
from tilewright.layouts.forms import LAST, Form
from tilewright.layouts.recorded import offering
from tilewright.layouts.sharing import Price
from tilewright.layouts.site import Alternative, Settings, Site
from tilewright.layouts.solve import Problem, least_costs, solve
from tilewright.layouts.timing import Timing

__all__ = ["Found", "Surroundings", "conversions_in"]

Chosen = list[tuple[Site, Alternative]]


@dataclass(frozen=True)
class Found:
    """The forms in which a site finds its data, and the cycles of borders that it makes itself.

    Alternatives are priced as if the zeros around their data were there. Where a caller passes the
    data, or a conversion writes them, there are none: the kernel is another one, and pays for them.
    """

    forms: Mapping[Value, Form] = field(default_factory=dict)
    border: float = 0.0


class Surroundings:
    """The choice for a graph with one of its sites decided; sites go by their numbers.

    The problem is made once. One elimination answers for all alternatives of a site.
    """

    def __init__(self, graph: Graph, settings: Settings, sites: Sequence[Site]) -> None:
        self.graph, self.settings, self.sites = graph, settings, tuple(sites)
        self._asked: dict[int, NDArray[np.float64]] = {}

    @cached_property
    def rate(self) -> float:
        """Cycles of a nanosecond, by which measured times are priced."""
        return Timing.of(self.settings.times, self.sites, self.settings.machine).rate

    @cached_property
    def _plain(self) -> _Offer:
        return _Offer.of(self.graph, self.settings, self.sites)

    def costs(self, number: int, alternatives: Sequence[Alternative]) -> list[float]:
        """Cycles of all other sites, and of conversions, with each alternative of a site.

        Alternatives are told apart by algorithm and forms, whatever they cost.
        """
        known = self._plain
        if any(known.place(number, a) is None for a in alternatives):
            known = self._with(number, alternatives)
            least = known.least(number)
        else:
            if number not in self._asked:
                self._asked[number] = known.least(number)
            least = self._asked[number]
        places = (known.place(number, a) for a in alternatives)
        return [float(least[k]) - known.own(number, k) for k in places if k is not None]

    def best(self) -> Chosen:
        """All sites with what is best for all of them."""
        return self._plain.solved()

    def choice(self, number: int, alternative: Alternative) -> Chosen:
        """All sites with what is best for them if one of them takes this alternative."""
        known = self._plain
        if known.place(number, alternative) is None:
            known = self._with(number, [alternative])
        place = known.place(number, alternative)
        assert place is not None
        return known.decided(number, place).solved()

    def found(self, number: int, alternative: Alternative) -> Found:
        """What a site finds where all others do what is best for it and for themselves."""
        wanted = alternative.source
        if not any(map(any, wanted.halo)):
            return Found()
        data = [v for v in self.sites[number].data if v not in self.graph.constants]
        written = self._written(data, number, alternative)
        forms = {v: f if f.plain == wanted.plain else wanted.as_copied for v, f in written.items()}
        prices = (Price.of(v, self.settings.machine).border(f, wanted) for v, f in written.items())
        return Found(forms, sum(prices))

    def _written(
        self, values: Sequence[Value], number: int, alternative: Alternative
    ) -> dict[Value, Form]:
        """The forms in which values are written, those of callers included."""
        made = {value for site in self.sites for value in site.results}
        if made.isdisjoint(values):
            return dict.fromkeys(values, LAST)
        chosen = self.choice(number, alternative)
        forms = {value: own.result for site, own in chosen for value in site.results}
        return {value: forms.get(value, LAST) for value in values}

    def _with(self, number: int, alternatives: Sequence[Alternative]) -> _Offer:
        sites = offering(self.sites, number, alternatives, self.settings.machine)
        return _Offer.of(self.graph, self.settings, sites)


@dataclass(frozen=True)
class _Offer:
    """Sites with all that they offer, and the problem that it is."""

    sites: tuple[Site, ...]
    problem: Problem

    @classmethod
    def of(cls, graph: Graph, settings: Settings, sites: Sequence[Site]) -> _Offer:
        offered = [site.alternatives for site in sites]
        return cls(tuple(sites), problem_of(graph, sites, offered, settings))

    def place(self, number: int, alternative: Alternative) -> int | None:
        """Where an alternative of a site is; None if it is not offered."""
        wanted = _what(alternative)
        found = (k for k, own in enumerate(self.sites[number].alternatives) if _what(own) == wanted)
        return next(found, None)

    def own(self, number: int, place: int) -> float:
        """The cycles of an alternative itself."""
        return self.sites[number].alternatives[place].cycles

    def least(self, number: int) -> NDArray[np.float64]:
        """What everything costs with each alternative of a site."""
        found = least_costs(self.problem, number)
        if found is not None:
            return found
        each = (self.decided(number, k) for k in range(len(self.sites[number].alternatives)))
        return np.array([solve(one.problem).cost for one in each])

    def decided(self, number: int, place: int) -> _Offer:
        """The same where one site has an alternative that stays."""
        own = np.asarray(self.problem.costs[number], np.float64)
        costs = [*self.problem.costs]
        costs[number] = np.where(np.arange(len(own)) == place, own, np.inf)
        return replace(self, problem=replace(self.problem, costs=costs))

    def solved(self) -> Chosen:
        """The best choice."""
        choice = solve(self.problem).choice
        pairs = zip(self.sites, choice, strict=False)  # values are behind the sites
        return [(site, site.alternatives[k]) for site, k in pairs]


def conversions_in(
    graph: Graph, chosen: Sequence[tuple[Site, Alternative]]
) -> Iterator[tuple[Value, Form, Form]]:
    """The copies that a choice needs, each once: of which value, from which form into which.

    What was converted has a border only inside of tiles (`Form.as_copied`).
    """
    written = {value: a.result.plain for site, a in chosen for value in site.results}
    found: dict[tuple[Value, Form, Form], None] = {}
    for site, alternative in chosen:
        for value in site.reads:
            before, after = written.get(value, LAST), site.wanted(value, alternative)
            if before != after.plain and value not in graph.constants:
                found[value, before, after.as_copied] = None
    yield from found


def _what(alternative: Alternative) -> tuple[object, ...]:
    return alternative.algorithm, alternative.source, alternative.result
