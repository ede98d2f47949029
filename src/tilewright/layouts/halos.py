"""Zeros around a result, which the convolution that reads it wants around its data.

Whoever writes a value may write zeros around it for a little more time. Without them a reader makes
the border by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod

from tilewright.graph.ir import Value
from tilewright.graph.ops import Concat, Transpose
from tilewright.graph.sizes import bytes_of, fixed, sized
from tilewright.layouts.costs import Machine, bordered_cycles, bytes_per_store
from tilewright.layouts.forms import Form
from tilewright.layouts.site import Alternative, Settings, Site

__all__ = ["halo_wishes", "haloed", "joined_cycles", "with_halo"]

Halo = tuple[tuple[int, int], ...]


def halo_wishes(sites: Sequence[Site]) -> dict[Value, Halo]:
    """For each value the zeros around it that all of its readers together would like."""
    found: dict[Value, Halo] = {}
    for site in sites:
        best = min(site.alternatives, key=lambda a: a.cycles)
        for value in site.data:
            own = best.source.halo
            if any(map(any, own)):
                pairs = zip(found.get(value, own), own, strict=True)
                found[value] = tuple((max(a, c), max(b, d)) for (a, b), (c, d) in pairs)
    return found


def with_halo(site: Site, wishes: Mapping[Value, Halo], settings: Settings) -> Site:
    """The site with the same alternatives once more, their result surrounded by zeros."""
    halo = wishes.get(site.results[0]) if len(site.results) == 1 else None
    moves = isinstance(site.nodes[0].op, Transpose)  # as it is, or not at all
    if halo is None or len(site.alternatives) == 1 or moves or not settings.halos:
        return site
    more = haloed(site, site.alternatives, halo, settings.machine)
    return replace(site, alternatives=(*site.alternatives, *more))


def haloed(
    site: Site, alternatives: Iterable[Alternative], halo: Halo, machine: Machine
) -> list[Alternative]:
    """Alternatives of a site with zeros around their result."""
    (result,) = site.results
    space = sized(result.shape[1:-1]) or ()
    stored = prod(size + a + b for size, (a, b) in zip(space, halo, strict=True))
    share = (stored - prod(space)) / prod(space)
    paid = share * bytes_of(result) / bytes_per_store(machine) / machine.threads
    more = []
    for a in alternatives:
        form = replace(a.result, halo=halo)
        joined = joined_cycles(site, form, machine) - joined_cycles(site, a.result, machine)
        more.append(replace(a, result=form, cycles=a.cycles + paid + joined))
    return more


def joined_cycles(site: Site, form: Form, machine: Machine) -> float:
    """What it costs to join parts: nothing where they are written one after another."""
    if not isinstance(site.nodes[0].op, Concat):
        return 0.0
    shape = site.results[0].shape
    in_order = form.first and not form.halo and not form.tiles and fixed(shape[0]) == 1
    return 0.0 if in_order else bordered_cycles(bytes_of(site.results[0]), machine)
