"""Rounds of the joint stage: layouts are proposed, loops of each are tried, the best survive.

The variants of a site are, in the first round, alternatives that the untuned choice predicts to be
near the best, and those that a database knows; in each later one the chosen alternative, the best
ones so far and fresh layouts of the template (ALT's cross-exploration, section 5 of arXiv
2210.12415). Trials of earlier rounds are remembered: records are of kernels. What alternatives cost
the rest of a graph is asked anew for each round, with all that was measured of others by then.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np

from tilewright.graph.ir import Value
from tilewright.layouts.forms import Form
from tilewright.layouts.sites import Alternative
from tilewright.layouts.surroundings import Surroundings, conversions_in
from tilewright.model.compilation import Chosen
from tilewright.records import Record
from tilewright.records.kinds import conversion_times, site_times
from tilewright.schedule.measured import NOTHING, Measured, site_key
from tilewright.tuning.conversions import ConversionTask, conversion_records, conversion_tasks
from tilewright.tuning.joint import (
    LEAST_SHARE,
    MOST,
    JointSites,
    OpenSite,
    SiteTask,
    best_times_ns,
    near_the_chosen,
    site_records,
)
from tilewright.tuning.proposals import Proposals

if TYPE_CHECKING:
    from tilewright.tuning.tuner import Tuned

__all__ = ["JointRounds"]

SURVIVORS: Final = 2
"""Of the variants of a site beside the chosen one; the others of a round are fresh."""


@dataclass
class _Course:
    """What is known of one site, by keys of alternatives.

    `costs_ns` are in all: of the kernel, of others around it, and by rounding. `alone_ns` are those
    of kernels. What a round compares with may change with what others offer: ratios of two rounds
    cannot be compared.
    """

    own: OpenSite
    proposals: Proposals
    alternatives: dict[str, Alternative] = field(default_factory=dict)
    costs_ns: dict[str, float] = field(default_factory=dict)
    alone_ns: dict[str, float] = field(default_factory=dict)
    task: SiteTask | None = None
    is_prepared: bool = False
    """Whether it had a first round: there may have been no time for it in that of others."""

    @property
    def reference(self) -> str:
        return self.own.key(self.own.chosen)

    def survivors(self, count: int = SURVIVORS) -> list[Alternative]:
        """The best so far, without the chosen one."""
        others = sorted(
            (k for k in self.costs_ns if k != self.reference), key=self.costs_ns.__getitem__
        )
        return [self.alternatives[key] for key in others[:count]]

    def tell(self, task: SiteTask, tuned: Tuned) -> None:
        """What a round has found: of an alternative that was tried before the best of all."""
        self.task = task
        for number, alternative in enumerate(task.alternatives):
            cost, key = tuned.tuner.cost_of(number), self.own.key(alternative)
            if cost is not None:
                self.alternatives[key], self.costs_ns[key] = alternative, cost * tuned.known_ns
        for key, time_ns in best_times_ns(task, tuned).items():
            self.alone_ns[key] = min(time_ns, self.alone_ns.get(key, time_ns))

    @property
    def best(self) -> Alternative:
        """The best of all."""
        key = min(self.costs_ns, key=self.costs_ns.__getitem__, default=self.reference)
        return self.alternatives.get(key, self.own.chosen)


class JointRounds:
    """The sites of a model from one round to the next.

    `known` is what a database says of sites and conversions; sites of a smaller share of the time
    than `least_share` are left as they are.
    """

    def __init__(
        self,
        made: Chosen,
        threads: int,
        rng: np.random.Generator,
        known: Measured = NOTHING,
        least_share: float = LEAST_SHARE,
    ) -> None:
        self.sites = JointSites(made, threads, least_share)
        self.threads, self.known = threads, known
        self.round = 0
        self._courses = [_Course(o, Proposals(self.sites.layouts(o), rng)) for o in self.sites.open]
        self._conversions: list[Record] = []

    @property
    def records(self) -> list[Record]:
        """What was measured of alternatives, and of conversions."""
        sites = (
            site_records(c.task, c.alone_ns, self.threads)
            for c in self._courses
            if c.task is not None
        )
        return [*chain.from_iterable(sites), *self._conversions]

    @property
    def measured(self) -> Measured:
        """The same with what was known before."""
        sites = {**self.known.sites, **site_times(self.records)}
        conversions = {**self.known.conversions, **conversion_times(self._conversions)}
        return Measured(sites, conversions)

    def tasks(self, most_seconds: float | None = None) -> list[SiteTask]:
        """The sites of the next round with their variants, the heaviest first.

        Kernels of variants take time to plan: after `most_seconds` the lighter sites are left out.
        """
        around = self.sites.surroundings(self.measured)
        found: list[SiteTask] = []
        begin = time.perf_counter()
        for course in sorted(self._courses, key=lambda course: -course.own.cycles):
            task = self._task(course, around)
            found += [] if task is None else [task]
            if most_seconds is not None and time.perf_counter() - begin > most_seconds:
                break
        return found

    def tell(self, tasks: Sequence[SiteTask], tuned: Sequence[Tuned]) -> None:
        """How a round went."""
        courses = {course.own: course for course in self._courses}
        for task, each in zip(tasks, tuned, strict=True):
            courses[task.own].tell(task, each)
        self.round += 1

    def conversions(self) -> list[ConversionTask]:
        """Copies that were not measured, of the choice by all that is known and of the best."""
        target = self.sites.made.settings.machine.target
        return list(conversion_tasks(self._copies(), target, self.measured.conversions))

    def tell_conversions(self, tasks: Sequence[ConversionTask], tuned: Sequence[Tuned]) -> None:
        """What they took."""
        self._conversions += conversion_records(tasks, tuned, self.threads)

    def _copies(self) -> Iterator[tuple[Value, Form, Form]]:
        graph = self.sites.made.graph
        yield from conversions_in(graph, self.sites.made.choice.sites)
        around = self.sites.surroundings(self.measured)
        yield from conversions_in(graph, around.best())
        for course in self._courses:
            if course.best is not course.own.chosen:
                yield from conversions_in(graph, around.choice(course.own.number, course.best))

    def _task(self, course: _Course, around: Surroundings) -> SiteTask | None:
        first, course.is_prepared = not course.is_prepared, True
        variants = self._first(course) if first else self._later(course, around)
        task = self.sites.task(course.own, variants, around)
        for alternative in task.alternatives if task else ():
            course.proposals.see(alternative)
        if task is None or first:
            return task
        fresh = [a for a in task.alternatives if course.own.key(a) not in course.costs_ns]
        return task if fresh else None

    def _first(self, course: _Course) -> list[Alternative]:
        """What a database knows, the fastest first, and what is predicted to be near the best."""
        own, times = course.own, self.known.sites.get(site_key(course.own.site.workload))
        known = sorted(times.times_ns, key=times.times_ns.__getitem__) if times else []
        found = (course.proposals.space.named(key) for key in known)
        recorded = [a for a in found if a is not None]
        return [*recorded[:SURVIVORS], *near_the_chosen(own)]

    def _later(self, course: _Course, around: Surroundings) -> Iterator[Alternative]:
        """The survivors, and fresh layouts: a kernel is planned for what is asked for alone."""
        kept = course.survivors()
        yield from kept
        site = course.own.site
        if site.conv is None and site.window is None:
            return  # it follows its neighbours
        parents, number = [course.own.chosen, *kept], course.own.number
        yield from course.proposals.next(
            parents, self._forms(course), MOST - 1 - len(kept), lambda a: around.costs(number, a)
        )

    def _forms(self, course: _Course) -> Iterable[Form]:
        """What the survivors of other sites read and write."""
        others = (c for c in self._courses if c is not course)
        best = [c.best for c in others if c.best is not c.own.chosen]
        return dict.fromkeys(form.plain for a in best for form in (a.source, a.result))
