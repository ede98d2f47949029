"""The joint stage: algorithm, layouts and loops of a site are searched together (ALT, section 5).

A site is a kernel of the graph with alternatives: an algorithm, the form that it reads and the form
that it writes. Those that are predicted to be near the best one are variants of one task, and the
search is free to go where it is fastest. The best time of each is a record of the site. From then
on whoever chooses layouts with this database pays what was measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tilewright.layouts.choose import Surroundings
from tilewright.layouts.sites import Alternative, Site, sites_of
from tilewright.model.compilation import Chosen
from tilewright.model.site_kernels import kernel_of
from tilewright.records import Record
from tilewright.records.kinds import site_record
from tilewright.tuning.task import Task, Variant, variant_of

if TYPE_CHECKING:
    from tilewright.tuning.tuner import Tuned

__all__ = ["SiteTask", "joint_records", "site_tasks"]

NEAR: Final = 1.35
"""Alternatives that are predicted to take no more than this by the chosen one are variants."""
MOST: Final = 6
"""Variants of a site."""
LEAST_SHARE: Final = 0.01
"""Of the model's predicted time: sites below it are left as they are."""


@dataclass(frozen=True)
class SiteTask:
    """A site, the alternatives that are its variants (the chosen one first), and its task."""

    site: Site
    alternatives: tuple[Alternative, ...]
    task: Task


def site_tasks(
    made: Chosen,
    threads: int,
    near: float = NEAR,
    most: int = MOST,
    least_share: float = LEAST_SHARE,
) -> Iterator[SiteTask]:
    """The sites of a model that have a choice, each distinct one once."""
    made = _for_threads(made, threads)
    sites = made.choice.sites
    runs: dict[str, int] = {}
    for site, _ in sites:
        runs[site.workload] = runs.get(site.workload, 0) + 1
    total = sum(alternative.cycles for _, alternative in sites)
    around = Surroundings(made.graph, made.settings, [site for site, _ in sites])
    for site, chosen in {s.workload: (s, a) for s, a in sites}.values():
        if chosen.cycles * runs[site.workload] < least_share * total:
            continue
        found: dict[str, tuple[Alternative, Variant]] = {}
        others = around.cost(site, chosen)
        for each in _near(site, chosen, near, most):
            variant = _variant(made, site, each)
            if variant is not None and variant.workload not in found:
                more = around.cost(site, each) - others
                found[variant.workload] = each, replace(variant, around_cycles=more)
        if len(found) > 1 and next(iter(found.values()))[0] is chosen:
            alternatives, variants = zip(*found.values(), strict=True)
            label = site.nodes[0].label or site.results[0].name
            yield SiteTask(site, alternatives, Task(variants, label, runs[site.workload]))


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


def _near(site: Site, chosen: Alternative, near: float, most: int) -> list[Alternative]:
    """The chosen alternative, and others that may be as fast.

    First the best of each other algorithm, in layouts like those of the chosen one where it has
    them, then other layouts.
    """
    alike = (chosen.source.plain, chosen.result.plain)
    others = [a for a in site.alternatives if a.cycles <= near * chosen.cycles]
    others.sort(key=lambda a: (a.cycles, (a.source.plain, a.result.plain) != alike))
    algorithms = {a.algorithm: a for a in reversed(others) if _layouts(a) == alike}
    ordered = [chosen, *sorted(algorithms.values(), key=lambda a: a.cycles), *others]
    distinct = {_what(each): each for each in reversed(ordered)}
    return [each for each in ordered if distinct.get(_what(each)) is each][:most]


def _layouts(alternative: Alternative) -> tuple[object, object]:
    return alternative.source.plain, alternative.result.plain


def _what(alternative: Alternative) -> tuple[object, ...]:
    return alternative.algorithm, alternative.source.plain, alternative.result.plain


def _variant(made: Chosen, site: Site, alternative: Alternative) -> Variant | None:
    plain = replace(alternative, loops=None)
    kernel = kernel_of(made.graph, site, plain)
    if kernel is None:
        return None
    name = plain.key(site.results[0].rank)
    variant = variant_of(kernel, made.settings.machine.target, site.nodes, name)
    margin = alternative.algorithm.margin
    variant = replace(variant, chosen_cycles=alternative.cycles, margin=margin)
    return variant if variant.decisions else None


def joint_records(sites: Sequence[SiteTask], tuned: Sequence[Tuned], threads: int) -> list[Record]:
    """What variants took, beside those that are chosen without a measurement."""
    pairs = zip(sites, tuned, strict=True)
    return [record for own, each in pairs for record in _records(own, each, threads)]


def _records(own: SiteTask, tuned: Tuned, threads: int) -> Iterator[Record]:
    """What each variant took, beside the one that is chosen without a measurement."""
    reference = tuned.tuner.best_of(0)
    if reference is None:
        return
    rank = own.site.results[0].rank
    keys = [replace(a, loops=None).key(rank) for a in own.alternatives]
    for number, key in enumerate(keys):
        cost = tuned.tuner.best_of(number)
        if cost is not None:
            about = own.site.workload, key, keys[0], own.task.target, threads
            yield site_record(
                *about,
                time_ns=cost * tuned.drafted_ns,
                reference_ns=reference * tuned.drafted_ns,
                label=own.task.label,
            )
