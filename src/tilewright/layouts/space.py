"""What a tuner searches: algorithm, layouts and loops of a site as one space, in two stages.

    joint    every alternative of a site, with every plan of the loops of its product or window
    loops    the plans of one alternative, once its layouts and its algorithm are settled

A point of the space is an `Alternative` with its loops. Its predicted cycles are a first opinion;
what a measurement says goes into `Settings.measured`, and the choice for the graph (`choose.py`) is
made with it: there is no second mechanism for tuned kernels.

There are more points than can be listed. `joint` and `loops` list what a draft chooses from, of the
forms that the untuned choice knows; `sample` draws from all loops that a recipe numbers, `layouts`
numbers all layouts (`template.py`), and `size` is how many there are of both together.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from tilewright.layouts.algorithms import Algorithm
from tilewright.layouts.sites import Alternative, Settings, Site
from tilewright.layouts.template import LayoutSpace
from tilewright.layouts.windows import window_recipe
from tilewright.schedule.recipes.contraction.cycles import contraction_cycles
from tilewright.schedule.recipes.contraction.recipe import CONTRACTION
from tilewright.schedule.recipes.contraction.space import contraction_space
from tilewright.schedule.recipes.table import Costs, Table
from tilewright.schedule.recipes.table import Space as Numbered

__all__ = ["Loops", "Space", "measured"]

FEW: Final = 1 << 12
"""Numbers up to which all points of a recipe are listed, to be drawn without repetition."""

DRAWN: Final = 32
"""Points that are drawn at once: looking whether they can be followed is cheap for many."""


@dataclass(frozen=True)
class Loops:
    """The plans of a product or a window: what a draft chooses from, and all by number if many.

    `least` are the cycles of the drafted plan, which the cost of an alternative has in it already.
    """

    table: Table[Any]
    cycles: Callable[[Table[Any]], Costs]
    least: float
    margin: float = 1.0
    numbered: Numbered[Any] | None = None

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.table) if self.numbered is None else self.numbered.size

    def at_random(self, rng: random.Random) -> Iterator[Any]:
        """Different plans in random order, all of them unless there are too many to list."""
        if self.numbered is None or self.numbered.size <= FEW:
            table = self.table if self.numbered is None else self.numbered.table()
            yield from (table.point(row) for row in rng.sample(range(len(table)), len(table)))
            return
        seen: set[object] = set()
        while fresh := [p for p in self.numbered.sample(rng, DRAWN) if p not in seen]:
            yield from fresh
            seen.update(fresh)

    def more(self, table: Table[Any]) -> Costs:
        """By how much plans are slower than the drafted one."""
        return (self.cycles(table) - self.least) * self.margin


@dataclass(frozen=True)
class Space:
    """The ways to run one site."""

    site: Site
    settings: Settings

    @cached_property
    def layouts(self) -> LayoutSpace:
        """All algorithms and layouts, by number."""
        return LayoutSpace.of(self.site, self.settings.machine)

    @property
    def size(self) -> int:
        """How many combinations of algorithm, layouts and loops there are."""
        each = self.layouts.size // len(self.layouts.algorithms)
        return sum(each * self._plans(algorithm) for algorithm in self.layouts.algorithms)

    def _plans(self, algorithm: Algorithm) -> int:
        like = next(a for a in self.site.alternatives if a.algorithm == algorithm)
        found = self.plans(like)
        return 1 if found is None else found.size

    def joint(self) -> Iterator[Alternative]:
        """Everything: algorithms, layouts and loops together."""
        for alternative in self.site.alternatives:
            yield from self.loops(alternative)

    def loops(self, alternative: Alternative) -> Iterator[Alternative]:
        """The same algorithm and layouts with all loops; itself where there are none to choose."""
        plans = self.plans(alternative)
        if plans is None:
            yield alternative
            return
        more = plans.more(plans.table)
        for row, point in enumerate(plans.table):
            yield replace(alternative, loops=point, cycles=alternative.cycles + float(more[row]))

    def plans(self, alternative: Alternative) -> Loops | None:
        """The loops of an alternative; None if the choice of layouts knows of none.

        Those of tiles are known once there is a kernel: its blocks have more loops than a picture.
        """
        conv, machine, window = self.site.conv, self.settings.machine, self.site.window
        if alternative.source.tiles or alternative.result.tiles:
            return None
        if window is not None:
            recipe, about = window_recipe(window, alternative.source, machine)
            table: Table[Any] = recipe.space(about, machine.target)
            costs = recipe.cycles(about, machine.model, table)
            return Loops(table, lambda t: recipe.cycles(about, machine.model, t), costs.min())
        if conv is None or conv.groups == conv.channels > 1:
            return None
        shape = alternative.algorithm.product(conv, machine)
        return Loops(
            table := contraction_space(shape, machine.target),
            lambda t: contraction_cycles(shape, machine.model, t),
            float(contraction_cycles(shape, machine.model, table).min()),
            alternative.algorithm.margin,
            CONTRACTION.points(shape, machine.target),
        )

    def sample(self, rng: random.Random, count: int) -> list[Alternative]:
        """So many different points of the joint space; all of them, if there are no more.

        Algorithms and layouts take turns, in random order and each with its loops at random: one
        with few loops is drawn as early as one with many.
        """
        rank = self.site.results[0].rank
        order = rng.sample(self.site.alternatives, len(self.site.alternatives))
        turns = deque(self._at_random(alternative, rng) for alternative in order)
        found: dict[str, Alternative] = {}
        while turns and len(found) < count:
            points = turns.popleft()
            point = next(points, None)
            if point is not None:
                found.setdefault(point.key(rank), point)
                turns.append(points)
        return list(found.values())

    def _at_random(self, alternative: Alternative, rng: random.Random) -> Iterator[Alternative]:
        plans = self.plans(alternative)
        if plans is None:
            yield alternative
            return
        for point in plans.at_random(rng):
            (more,) = plans.more(Table.of([point]))
            yield replace(alternative, loops=point, cycles=alternative.cycles + float(more))


def measured(
    site: Site, results: Mapping[Alternative, float]
) -> dict[tuple[str, str], Alternative]:
    """Entries for `Settings.measured`: of each algorithm and layout the loops that took least."""
    rank, best = site.results[0].rank, dict[tuple[str, str], Alternative]()
    for point, cycles in results.items():
        key = site.workload, replace(point, loops=None).key(rank)
        if key not in best or cycles < best[key].cycles:
            best[key] = replace(point, cycles=cycles)
    return best
