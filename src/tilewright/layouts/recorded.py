"""Layouts that nobody would choose untuned, offered where they were measured to be fast.

The untuned choice knows four forms. What a tuner found beyond these is offered by the sites that it
was measured for, and by those around them that take any form: pools, sums, views. Otherwise each
end of such a layer would pay for a conversion. A tuner that asks what an alternative would cost the
rest of a graph offers it in the same way before it is measured (`offering`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tilewright.graph.ir import Value
from tilewright.layouts.costs import Machine
from tilewright.layouts.forms import Form
from tilewright.layouts.halos import haloed
from tilewright.layouts.site import Alternative, Site
from tilewright.layouts.template import LayoutSpace
from tilewright.schedule.measured import Measured, site_key

__all__ = ["offering", "with_recorded"]


def with_recorded(sites: Sequence[Site], measured: Measured, machine: Machine) -> list[Site]:
    """The sites with the alternatives that records know, and the forms that come with these.

    Offered is what was faster than the reference of its site, and what was not but reads or writes
    what somebody else does who was: it may save a conversion.
    """
    if not measured.sites:
        return list(sites)
    known = {site: _recorded(site, measured, machine) for site in sites}
    usual = {form.plain for site in sites for a in site.alternatives for form in _forms(a)}
    faster = [a for found in known.values() for a, is_faster in found.items() if is_faster]
    every = dict.fromkeys(f.plain for a in faster for f in _forms(a))
    forms = [form for form in every if form not in usual]
    made = []
    for site, found in known.items():
        own = [a for a, is_faster in found.items() if is_faster or _has_only(a, usual, every)]
        made.append(_with(site, [*own, *_following(site, forms, machine)]))
    return made


def offering(
    sites: Sequence[Site], number: int, alternatives: Sequence[Alternative], machine: Machine
) -> list[Site]:
    """The sites, of which one has more alternatives, and those around it the forms of these."""
    forms = list(dict.fromkeys(f.plain for a in alternatives for f in _forms(a)))
    made = list(sites)
    made[number] = _with(sites[number], alternatives)
    for k in _around(sites, number):
        found = _following(sites[k], forms, machine)
        halo = next((a.result.halo for a in sites[k].alternatives if a.result.halo), ())
        bordered = haloed(sites[k], found, halo, machine) if halo and found else []
        made[k] = _with(sites[k], [*found, *bordered])
    return made


def _around(sites: Sequence[Site], number: int) -> list[int]:
    """The sites that a form may come to from one of them: through those that take any form."""
    at: dict[Value, list[int]] = {}
    for k, site in enumerate(sites):
        for value in (*site.reads, *site.results):
            at.setdefault(value, []).append(k)
    found, queue = {number}, [number]
    while queue:
        site = sites[queue.pop()]
        near = {k for v in (*site.data, *site.beside, *site.results) for k in at.get(v, ())}
        fresh = [k for k in near - found if _follows(sites[k])]
        found.update(fresh)
        queue += fresh
    return sorted(found - {number})


def _recorded(site: Site, measured: Measured, machine: Machine) -> dict[Alternative, bool]:
    """What was measured and is none of a site's alternatives; whether it beat the reference."""
    times = measured.sites.get(site_key(site.workload)) if len(site.alternatives) > 1 else None
    if times is None:
        return {}
    rank, known = site.results[0].rank, LayoutSpace.of(site, machine)
    own = {a.key(rank) for a in site.alternatives}
    keys: dict[str, bool] = {}
    for key, time_ns in times.times_ns.items():
        plain = key.removesuffix("+halo")
        keys[plain] = keys.get(plain, False) or time_ns < times.reference_ns
    found = ((known.named(key), faster) for key, faster in keys.items() if key not in own)
    return {alternative: faster for alternative, faster in found if alternative is not None}


def _has_only(alternative: Alternative, *forms: Iterable[Form]) -> bool:
    known = {form for some in forms for form in some}
    return all(form.plain in known for form in _forms(alternative))


def _follows(site: Site) -> bool:
    """Whether a site takes any form on one side, or the same on both."""
    is_product = site.conv is not None and site.window is None
    return len(site.alternatives) > 1 and not is_product  # whose forms have to be measured


def _following(site: Site, forms: Sequence[Form], machine: Machine) -> list[Alternative]:
    """A site that takes any form, in these as well."""
    if not forms or not _follows(site):
        return []
    known = LayoutSpace.of(site, machine)
    every = (known.made(a, f, f, halo=False) for a in known.algorithms for f in forms)
    return [alternative for alternative in every if alternative is not None]


def _with(site: Site, more: Sequence[Alternative]) -> Site:
    own = {(a.algorithm, a.source, a.result) for a in site.alternatives}
    new = [a for a in dict.fromkeys(more) if (a.algorithm, a.source, a.result) not in own]
    return replace(site, alternatives=(*site.alternatives, *new)) if new else site


def _forms(alternative: Alternative) -> tuple[Form, Form]:
    return alternative.source, alternative.result
