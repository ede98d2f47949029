"""Measured times in place of predicted costs.

Times become cycles at one rate for the whole graph: that at which the predictions for all measured
references together are right. So measured and predicted costs can be added, whatever the clock and
the number of threads. Alternatives of a site that were not measured are as much slower than
predicted as the site's reference is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilewright.graph.ir import TensorType, Value
from tilewright.layouts.forms import Form
from tilewright.layouts.site import Alternative, Site, Timed
from tilewright.schedule.measured import Measured, SiteTimes, conversion_key, site_key
from tilewright.target import Target

__all__ = ["Timing", "converted_kind", "with_times"]

HALO = "+halo"


@dataclass(frozen=True)
class Timing:
    """What was measured, and cycles of a nanosecond."""

    measured: Measured
    rate: float

    @classmethod
    def of(cls, measured: Measured, sites: Sequence[Site], target: Target) -> Timing:
        """The rate by all sites that have times (`with_times`)."""
        known = [site.timed for site in sites if site.timed is not None and site.timed.predicted]
        time_ns = sum(t.times.reference_ns for t in known)
        rate = sum(t.predicted for t in known) / time_ns if time_ns else target.machine.ghz
        return cls(measured, rate)

    def priced(self, site: Site) -> Site:
        """The site with what each alternative costs.

        What was measured with zeros around its result stands for the same without.
        """
        if site.timed is None:
            return site
        reference = self.rate * site.timed.times.reference_ns
        found = []
        for own in site.alternatives:
            time_ns = _time_of(site, own, site.timed.times)
            if time_ns is not None:
                cycles = self.rate * time_ns
            elif site.timed.predicted:
                cycles = own.cycles * reference / site.timed.predicted
            else:  # what predictions leave out, because all forms have it
                cycles = own.cycles + reference
            found.append(replace(own, cycles=cycles))
        return replace(site, alternatives=tuple(found))

    def with_halos(self, site: Site) -> Site:
        """The site with what was measured of results with zeros around them."""
        if site.timed is None:
            return site
        times, rank = site.timed.times.times_ns, site.results[0].rank
        found = []
        for own in site.alternatives:
            time_ns = times.get(own.key(rank)) if own.result.halo else None
            found.append(own if time_ns is None else replace(own, cycles=self.rate * time_ns))
        return replace(site, alternatives=tuple(found))

    def conversion(self, value: Value, before: Form, after: Form) -> float | None:
        """Cycles of a conversion; None if it was not measured."""
        if not self.measured.conversions:
            return None
        names = before.plain.name(value.rank), after.plain.name(value.rank)
        time_ns = self.measured.conversions.get(conversion_key(converted_kind(value), *names))
        return None if time_ns is None else self.rate * time_ns


def with_times(site: Site, measured: Measured) -> Site:
    """The site with its times, if the reference of these is still one of its alternatives."""
    times = measured.sites.get(site_key(site.workload)) if measured.sites else None
    if times is None or not site.results:
        return site
    rank = site.results[0].rank
    wanted = times.reference.removesuffix(HALO)
    predicted = next((a.cycles for a in site.alternatives if a.key(rank) == wanted), None)
    return site if predicted is None else replace(site, timed=Timed(times, predicted))


def converted_kind(value: Value) -> str:
    """What conversions of a value are told apart by, beside their forms."""
    return str(TensorType(value.dtype, value.shape))


def _time_of(site: Site, own: Alternative, times: SiteTimes) -> float | None:
    key = own.key(site.results[0].rank)
    return times.times_ns.get(key, times.times_ns.get(key + HALO))
