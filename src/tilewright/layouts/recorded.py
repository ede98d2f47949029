"""Layouts that nobody would choose untuned, offered where they were measured to be fast.

The untuned choice knows four forms. What a tuner found beyond these is offered by the sites that it
was measured for, and by those around them that take any form: pools, sums, views. Otherwise each
end of such a layer would pay for a conversion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.layouts.forms import Form
from tilewright.layouts.site import Alternative, Site
from tilewright.layouts.template import LayoutSpace
from tilewright.schedule.measured import Measured, site_key

__all__ = ["with_recorded"]


def with_recorded(sites: Sequence[Site], measured: Measured, lanes: int) -> list[Site]:
    """The sites with the alternatives that records know, and the forms that come with these."""
    if not measured.sites:
        return list(sites)
    more = {site: _recorded(site, measured, lanes) for site in sites}
    usual = {form.plain for site in sites for a in site.alternatives for form in _forms(a)}
    every = dict.fromkeys(f.plain for found in more.values() for a in found for f in _forms(a))
    forms = [form for form in every if form not in usual]
    return [_with(site, [*more[site], *_following(site, forms, lanes)]) for site in sites]


def _recorded(site: Site, measured: Measured, lanes: int) -> list[Alternative]:
    """What was faster than the reference and is none of a site's alternatives."""
    times = measured.sites.get(site_key(site.workload)) if len(site.alternatives) > 1 else None
    if times is None:
        return []
    rank, known = site.results[0].rank, LayoutSpace.of(site, lanes)
    own = {a.key(rank) for a in site.alternatives}
    keys = [k.removesuffix("+halo") for k, t in times.times_ns.items() if t < times.reference_ns]
    found = (known.named(key) for key in dict.fromkeys(keys) if key not in own)
    return [alternative for alternative in found if alternative is not None]


def _following(site: Site, forms: Sequence[Form], lanes: int) -> list[Alternative]:
    """A site that takes any form on one side, or the same on both, in these as well."""
    is_product = site.conv is not None and site.window is None
    if not forms or len(site.alternatives) < 2 or is_product:  # whose forms have to be measured
        return []
    known = LayoutSpace.of(site, lanes)
    every = (known.made(a, f, f, halo=False) for a in known.algorithms for f in forms)
    return [alternative for alternative in every if alternative is not None]


def _with(site: Site, more: Sequence[Alternative]) -> Site:
    own = {(a.algorithm, a.source, a.result) for a in site.alternatives}
    new = [a for a in dict.fromkeys(more) if (a.algorithm, a.source, a.result) not in own]
    return replace(site, alternatives=(*site.alternatives, *new)) if new else site


def _forms(alternative: Alternative) -> tuple[Form, Form]:
    return alternative.source, alternative.result
