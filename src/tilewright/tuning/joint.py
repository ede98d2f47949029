"""Sites as tasks: algorithm, layouts and loops of a kernel are searched together (ALT, section 5).

A site is a kernel of the graph with alternatives: an algorithm, the form that it reads and the form
that it writes. Some of them are variants of one task, and the search is free to go where it is
fastest: those that are predicted to be near the best one, or whatever else its layout template has
(`proposals.py`). The best time of each is a record of the site. From then on whoever chooses
layouts with this database pays what was measured.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np

from tilewright.errors import TilewrightWarning
from tilewright.layouts.sites import Alternative, Site, sites_of
from tilewright.layouts.space import Space
from tilewright.layouts.surroundings import Found, Surroundings
from tilewright.layouts.template import LayoutSpace
from tilewright.model.compilation import Chosen
from tilewright.model.site_kernels import kernel_of
from tilewright.records import Record
from tilewright.records.kinds import site_record
from tilewright.schedule.measured import NOTHING, Measured
from tilewright.tuning.task import Task, Variant, variant_of

if TYPE_CHECKING:
    from tilewright.tuning.tuner import Tuned

__all__ = ["LEAST_PART", "LEAST_SHARE", "MOST", "JointSites", "OpenSite", "SiteTask"]
__all__ += ["best_times_ns", "near_the_chosen", "site_records", "site_tasks"]

NEAR: Final = 1.35
"""Alternatives that are predicted to take no more than this by the chosen one are variants."""
MOST: Final = 6
"""Variants of a site."""
LEAST_PART: Final = 0.1
"""Of the time of a kernel: what is left of it at least without the border that it makes, whose cost
is a prediction."""
ALL_ZEROS: Final = Found()
"""Data have all zeros around them that an alternative wants."""
LEAST_SHARE: Final = 0.01
"""Of the model's predicted time: sites below it are left as they are."""


@dataclass(frozen=True, eq=False)
class OpenSite:
    """A site with a choice: its number in the graph, and how often the model has its like.

    `chosen` is the alternative that is chosen without a measurement.
    """

    number: int
    site: Site
    chosen: Alternative
    runs: int

    @property
    def cycles(self) -> float:
        """What it is predicted to take in a run of the model."""
        return self.chosen.cycles * self.runs

    @property
    def label(self) -> str:
        """What it is called in tables."""
        return self.site.nodes[0].label or self.site.results[0].name

    def key(self, alternative: Alternative) -> str:
        """What an alternative is called in records."""
        return replace(alternative, loops=None).key(self.site.results[0].rank)


@dataclass(frozen=True)
class SiteTask:
    """A site, the alternatives that are its variants (the chosen one first), and its task.

    `borders_ns` is what the kernel of each takes for zeros around its data that nobody else stores;
    alternatives are priced without it.
    """

    own: OpenSite
    alternatives: tuple[Alternative, ...]
    task: Task
    borders_ns: tuple[float, ...]

    @property
    def site(self) -> Site:
        """The site."""
        return self.own.site


class JointSites:
    """The sites of a model, and kernels of their alternatives, each planned once."""

    def __init__(self, made: Chosen, threads: int, least_share: float = LEAST_SHARE) -> None:
        self.made, self.least_share = _for_threads(made, threads), least_share
        self._variants: dict[tuple[object, ...], Variant | None] = {}
        self._points: dict[OpenSite, int] = {}

    @cached_property
    def open(self) -> tuple[OpenSite, ...]:
        """The sites that have a choice and take some time, each distinct one once."""
        sites = self.made.choice.sites
        runs = Counter(site.workload for site, _ in sites)
        total = sum(alternative.cycles for _, alternative in sites)
        last = {site.workload: OpenSite(k, site, a, 0) for k, (site, a) in enumerate(sites)}
        found = [replace(own, runs=runs[workload]) for workload, own in last.items()]
        return tuple(
            own
            for own in found
            if len(own.site.alternatives) > 1 and own.cycles >= self.least_share * total
        )

    def surroundings(self, times: Measured = NOTHING) -> Surroundings:
        """What alternatives cost the rest of the graph, where some of it was measured."""
        made = self.made
        if not times:
            sites = [site for site, _ in made.choice.sites]
            return Surroundings(made.graph, made.settings, sites)
        settings = replace(made.settings, times=times)
        return Surroundings(made.graph, settings, sites_of(made.graph, settings))

    def layouts(self, own: OpenSite) -> LayoutSpace:
        """All layouts of a site by number."""
        return LayoutSpace.of(own.site, self.made.settings.machine)

    def points(self, own: OpenSite) -> int:
        """Algorithms × layouts of the template × loops, of which a task has a few variants."""
        if own not in self._points:
            self._points[own] = Space(own.site, self.made.settings).size
        return self._points[own]

    def variant(
        self, own: OpenSite, alternative: Alternative, found: Found = ALL_ZEROS
    ) -> Variant | None:
        """The kernel of an alternative that finds its data in some forms.

        None if it is not a single one with something to decide.
        """
        key = own, own.key(alternative), *found.forms.items()
        if key not in self._variants:
            self._variants[key] = self._planned(own, alternative, found)
        return self._variants[key]

    def _planned(self, own: OpenSite, alternative: Alternative, found: Found) -> Variant | None:
        plain = replace(alternative, loops=None)
        name, target = own.key(alternative), self.made.settings.machine.target
        try:
            kernel = kernel_of(self.made.graph, own.site, plain, given=found.forms)
            if kernel is None:
                return None
            made = variant_of(kernel, target, own.site.nodes, name)
        except MemoryError:
            raise
        except Exception as problem:  # noqa: BLE001  (a layout that breaks the compiler costs itself)
            text = f"`{name}` is left out, the compiler fails on it: {problem!r}"
            warnings.warn(TilewrightWarning(text), stacklevel=2)
            return None
        cycles, margin = alternative.cycles + found.border, alternative.algorithm.margin
        made = replace(made, chosen_cycles=cycles, margin=margin)
        return made if made.decisions else None

    def task(
        self,
        own: OpenSite,
        alternatives: Iterable[Alternative],
        around: Surroundings,
        most: int = MOST,
    ) -> SiteTask | None:
        """The first so many alternatives with kernels that differ; None if there is no choice.

        The chosen one is the first of them, by which others are compared.
        """
        known: dict[str, tuple[Alternative, Variant, float]] = {}
        for each in chain([own.chosen], alternatives):  # later ones may never be asked for
            found = around.found(own.number, each)
            variant = self.variant(own, each, found)
            if variant is not None:
                known.setdefault(variant.workload, (each, variant, found.border))
            if not known or len(known) == most:
                break
        if len(known) < 2:
            return None
        kept, variants, borders = zip(*known.values(), strict=True)
        others = np.array(around.costs(own.number, kept)) - borders  # which are of the kernels
        more = (others - others[0]) * self.made.settings.machine.model.ghz / around.rate
        variants = tuple(
            replace(variant, around_cycles=cycles)
            for variant, cycles in zip(variants, more.tolist(), strict=True)
        )
        borders_ns = tuple(border / around.rate for border in borders)
        task = Task(variants, own.label, own.runs, self.points(own))
        return SiteTask(own, kept, task, borders_ns)


def site_tasks(
    made: Chosen,
    threads: int,
    near: float = NEAR,
    most: int = MOST,
    least_share: float = LEAST_SHARE,
) -> Iterator[SiteTask]:
    """The sites of a model that have a choice, with alternatives that are predicted to be fast."""
    sites = JointSites(made, threads, least_share)
    around = sites.surroundings()
    for own in sites.open:
        task = sites.task(own, near_the_chosen(own, near, most), around, most)
        if task is not None:
            yield task


def near_the_chosen(own: OpenSite, near: float = NEAR, most: int = MOST) -> list[Alternative]:
    """The chosen alternative, and others of the untuned choice that may be as fast.

    First the best of each other algorithm, in layouts like those of the chosen one where it has
    them, then other layouts.
    """
    chosen = own.chosen
    alike = (chosen.source.plain, chosen.result.plain)
    others = [a for a in own.site.alternatives if a.cycles <= near * chosen.cycles]
    others.sort(key=lambda a: (a.cycles, (a.source.plain, a.result.plain) != alike))
    algorithms = {a.algorithm: a for a in reversed(others) if _layouts(a) == alike}
    ordered = [chosen, *sorted(algorithms.values(), key=lambda a: a.cycles), *others]
    distinct = {_what(each): each for each in reversed(ordered)}
    return [each for each in ordered if distinct.get(_what(each)) is each][:most]


def best_times_ns(task: SiteTask, tuned: Tuned) -> dict[str, float]:
    """The time of the best point of each alternative that was measured, by its key.

    That of the kernel alone, without a border that others could have made.
    """
    found = {}
    for k, (alternative, border_ns) in enumerate(
        zip(task.alternatives, task.borders_ns, strict=True)
    ):
        cost = tuned.tuner.best_of(k)
        if cost is not None:
            without = cost - border_ns / tuned.known_ns
            found[task.own.key(alternative)] = max(LEAST_PART * cost, without) * tuned.known_ns
    return found


def site_records(task: SiteTask, times_ns: Mapping[str, float], threads: int) -> list[Record]:
    """What alternatives took, beside the one that is chosen without a measurement."""
    reference = task.own.key(task.own.chosen)
    if reference not in times_ns:
        return []
    about = reference, task.task.target, threads
    label = task.task.label
    return [
        site_record(
            task.site.workload,
            key,
            *about,
            time_ns=time_ns,
            reference_ns=times_ns[reference],
            label=label,
        )
        for key, time_ns in times_ns.items()
    ]


def _for_threads(made: Chosen, threads: int) -> Chosen:
    """A choice as it is priced for a number of threads; it was made for a usual one."""
    settings = made.settings
    if settings.machine.threads == threads:
        return made
    settings = replace(settings, machine=replace(settings.machine, threads=threads))
    sites = sites_of(made.graph, settings)
    chosen = [
        (site, _same(site, old)) for site, (_, old) in zip(sites, made.choice.sites, strict=True)
    ]
    return replace(made, settings=settings, choice=replace(made.choice, sites=tuple(chosen)))


def _same(site: Site, old: Alternative) -> Alternative:
    """The alternative of a site that another one is, but for its price."""
    wanted = (*_what(old), old.source, old.result)
    found = (a for a in site.alternatives if (*_what(a), a.source, a.result) == wanted)
    near = (a for a in site.alternatives if _what(a) == _what(old))  # halos are by price, too
    return next(found, None) or next(near, site.alternatives[0])


def _layouts(alternative: Alternative) -> tuple[object, object]:
    return alternative.source.plain, alternative.result.plain


def _what(alternative: Alternative) -> tuple[object, ...]:
    return alternative.algorithm, alternative.source.plain, alternative.result.plain
