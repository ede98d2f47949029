"""The joint stage: algorithm, layouts and loops of a site are searched together (ALT, section 5).

A site is a kernel of the graph with alternatives: an algorithm, the form that it reads and the form
that it writes. Those that are predicted to be near the best one are kernels like all others, with a
space of their own, and share the stage's budget by what they may gain. The best time of each is a
record of the site; conversions between forms that meet are measured as well. From then on whoever
chooses layouts with this database pays measured costs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tilewright.layouts.sites import Alternative, Site
from tilewright.model.compilation import Chosen
from tilewright.model.site_kernels import kernel_of
from tilewright.pipeline import ModelPipeline
from tilewright.records.sites import site_record
from tilewright.tune.budget import Budget
from tilewright.tune.task import Task, task_of_kernel

if TYPE_CHECKING:
    from tilewright.tune.model_tuner import ModelTuner
    from tilewright.tune.tuner import Search, Tuned

__all__ = ["joint_stage"]

SHARE: Final = 0.35
"""Of what is left of the budget."""
NEAR: Final = 1.35
"""Alternatives that are predicted to take no more than this by the best are measured."""
MOST: Final = 4
"""Alternatives of a site that are measured."""
LEAST_SHARE: Final = 0.004
"""Of the model's predicted time: sites below it are left as they are."""


@dataclass(frozen=True)
class Candidate:
    """An alternative of a site as a task; `is_chosen` if the analytic choice has it."""

    site: Site
    alternative: Alternative
    task: Task
    is_chosen: bool


def joint_stage(tuner: ModelTuner, search: Search) -> None:
    """Measure alternatives of sites, and leave what they took in the database."""
    candidates = list(_candidates(tuner))
    if not candidates:
        return
    search.tell("stage", stage="layouts")
    joint = tuner.search([c.task for c in candidates], _part(tuner.budget), is_alone=True)
    joint.run()
    tuner.budget.spend(joint.budget.spent.trials or 0)
    records = [r for found in _by_site(candidates, joint.tuned) for r in _records(tuner, found)]
    tuner.database.add(records)


def _part(budget: Budget) -> Budget:
    left = budget.left
    trials = None if left.trials is None else max(1, int(left.trials * SHARE))
    return Budget(trials, None if left.seconds is None else left.seconds * SHARE)


def _candidates(tuner: ModelTuner) -> Iterator[Candidate]:
    made = ModelPipeline(tuner.how).run(tuner.model, until="choose").value
    if not isinstance(made, Chosen):
        return
    runs: dict[str, int] = {}
    for site, _ in made.choice.sites:
        runs[site.workload] = runs.get(site.workload, 0) + 1
    total = sum(alternative.cycles for _, alternative in made.choice.sites)
    for site, chosen in {s.workload: (s, a) for s, a in made.choice.sites}.values():
        count = runs[site.workload]
        if chosen.cycles * count < LEAST_SHARE * total:
            continue
        near = _near(site, chosen)
        found = [
            (each, task)
            for each in near
            if (task := _task(tuner, made, site, each, count)) is not None
        ]
        if len({task.workload for _, task in found}) > 1:
            yield from (Candidate(site, a, task, a is chosen) for a, task in found)


def _near(site: Site, chosen: Alternative) -> list[Alternative]:
    """The chosen alternative, and others that may be as fast, one for each algorithm and layout."""
    distinct = {_what(chosen): chosen}
    for each in sorted(site.alternatives, key=lambda a: a.cycles):
        if each.cycles <= NEAR * chosen.cycles and len(distinct) < MOST:
            distinct.setdefault(_what(each), each)
    return list(distinct.values())


def _what(alternative: Alternative) -> tuple[object, ...]:
    return alternative.algorithm, alternative.source.plain, alternative.result.plain


def _task(
    tuner: ModelTuner, made: Chosen, site: Site, alternative: Alternative, runs: int
) -> Task | None:
    kernel = kernel_of(made.graph, site, replace(alternative, loops=None))
    if kernel is None:
        return None
    rank = site.results[0].rank
    label = f"{site.nodes[0].label} {replace(alternative, loops=None).key(rank)}"
    task = task_of_kernel(kernel, tuner.how.target, site.nodes, label, runs)
    return task if task.decisions else None


def _by_site(
    candidates: list[Candidate], tuned: list[Tuned]
) -> Iterator[list[tuple[Candidate, Tuned]]]:
    """Measured alternatives of each site, where the chosen one and another was measured."""
    found: dict[str, list[tuple[Candidate, Tuned]]] = {}
    for candidate, each in zip(candidates, tuned, strict=True):
        if each.drafted_ns:
            found.setdefault(candidate.site.workload, []).append((candidate, each))
    for own in found.values():
        if len(own) > 1 and any(candidate.is_chosen for candidate, _ in own):
            yield own


def _records(tuner: ModelTuner, found: list[tuple[Candidate, Tuned]]) -> Iterator[object]:
    reference = next(each.best_ns for candidate, each in found if candidate.is_chosen)
    for candidate, each in found:
        about = candidate.site, candidate.alternative, tuner.how.target, tuner.threads
        yield site_record(*about, each.best_ns, reference)
