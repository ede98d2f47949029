"""What a tuner searches: algorithm, layouts and loops of a site as one space, in two stages.

    joint    every alternative of a site, with every plan of the loops of its product or window
    loops    the plans of one alternative, once its layouts and its algorithm are settled

A point of the space is an `Alternative` with its loops. Its predicted cycles are a first opinion;
what a measurement says goes into `Settings.measured`, and the choice for the graph (`choose.py`) is
made with it: there is no second mechanism for tuned kernels.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tilewright.layouts.sites import Alternative, Settings, Site
from tilewright.layouts.windows import window_recipe
from tilewright.schedule.recipes.contraction.cycles import contraction_cycles
from tilewright.schedule.recipes.contraction.space import contraction_space
from tilewright.schedule.recipes.table import Table

__all__ = ["Space", "measured"]


@dataclass(frozen=True)
class Space:
    """The ways to run one site."""

    site: Site
    settings: Settings

    def joint(self) -> Iterator[Alternative]:
        """Everything: algorithms, layouts and loops together."""
        for alternative in self.site.alternatives:
            yield from self.loops(alternative)

    def loops(self, alternative: Alternative) -> Iterator[Alternative]:
        """The same algorithm and layouts with all loops; itself where there are none to choose."""
        conv, machine, window = self.site.conv, self.settings.machine, self.site.window
        if window is not None:
            recipe, about = window_recipe(window, alternative.source, machine)
            points: Table[Any] = recipe.space(about, machine.target)
            costs, margin = recipe.cycles(about, machine.model, points), 1.0
        elif conv is not None and not conv.groups == conv.channels > 1:
            shape, margin = (
                alternative.algorithm.product(conv, machine),
                alternative.algorithm.margin,
            )
            points = contraction_space(shape, machine.target)
            costs = contraction_cycles(shape, machine.model, points)
        else:
            yield alternative
            return
        more = (costs - costs.min()) * margin
        for row, point in enumerate(points):
            yield replace(alternative, loops=point, cycles=alternative.cycles + float(more[row]))

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
        points = list(self.loops(alternative))
        yield from rng.sample(points, len(points))


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
