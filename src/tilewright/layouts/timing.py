"""Measured times in place of predicted costs.

Times become cycles at one rate for the whole graph: that at which the predictions for all measured
references together are right. So measured and predicted costs can be added, whatever the clock and
the number of threads. Alternatives of a site that were not measured are as much slower than
predicted as the site's reference is. What is policy and no time (the price of an algorithm that
rounds more, or has more weights) is paid as before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilewright.graph.ir import TensorType, Value
from tilewright.graph.ops.window import Conv, ConvTranspose
from tilewright.graph.sizes import bytes_of
from tilewright.layouts.algorithms import Algorithm
from tilewright.layouts.costs import Machine
from tilewright.layouts.forms import Form
from tilewright.layouts.site import Alternative, Site, Timed
from tilewright.schedule.measured import Measured, SiteTimes, conversion_key, site_key

__all__ = ["Timing", "converted_kind", "with_times"]

HALO = "+halo"


@dataclass(frozen=True)
class Timing:
    """What was measured, and cycles of a nanosecond."""

    measured: Measured
    rate: float

    @classmethod
    def of(cls, measured: Measured, sites: Sequence[Site], machine: Machine) -> Timing:
        """The rate by all sites that have times (`with_times`)."""
        known = [site.timed for site in sites if site.timed is not None and site.timed.predicted]
        time_ns = sum(t.times.reference_ns for t in known)
        predicted = sum(t.predicted for t in known)
        return cls(measured, predicted / time_ns if time_ns else machine.model.ghz)

    def priced(self, site: Site) -> Site:
        """The site with what each alternative costs.

        What was measured with zeros around its result stands for the same without.
        """
        timed = site.timed
        if timed is None:
            return site
        reference = self.rate * timed.times.reference_ns
        found = []
        for own in site.alternatives:
            time_ns = _time_of(site, own, timed.times)
            margin, kept = timed.policy(own)
            if time_ns is not None:
                cycles = self.rate * time_ns * margin + kept
            elif timed.predicted:
                cycles = (own.cycles - kept) * reference / timed.predicted + kept
            else:  # what predictions leave out, because all forms have it
                cycles = own.cycles + reference
            found.append(replace(own, cycles=cycles))
        return replace(site, alternatives=tuple(found))

    def with_halos(self, site: Site) -> Site:
        """The site with what was measured of results with zeros around them."""
        timed = site.timed
        if timed is None:
            return site
        times, rank = timed.times.times_ns, site.results[0].rank
        found = []
        for own in site.alternatives:
            time_ns = times.get(own.key(rank)) if own.result.halo else None
            margin, kept = timed.policy(own)
            cycles = own.cycles if time_ns is None else self.rate * time_ns * margin + kept
            found.append(replace(own, cycles=cycles))
        return replace(site, alternatives=tuple(found))

    def conversion(self, value: Value, before: Form, after: Form) -> float | None:
        """Cycles of a conversion; None if it was not measured."""
        if not self.measured.conversions:
            return None
        names = before.plain.name(value.rank), after.as_copied.exact_name(value.rank)
        time_ns = self.measured.conversions.get(conversion_key(converted_kind(value), *names))
        return None if time_ns is None else self.rate * time_ns


def with_times(site: Site, measured: Measured, machine: Machine) -> Site:
    """The site with its times, if the reference of these is still one of its alternatives."""
    times = measured.sites.get(site_key(site.workload)) if measured.sites else None
    if times is None or not site.results:
        return site
    rank = site.results[0].rank
    wanted = times.reference.removesuffix(HALO)
    reference = next((a for a in site.alternatives if a.key(rank) == wanted), None)
    if reference is None:
        return site
    kept = _kept(site, machine)
    margin = reference.algorithm.margin if kept else 1.0
    predicted = (reference.cycles - kept.get(reference.algorithm, 0.0)) / margin
    return replace(site, timed=Timed(times, predicted, kept))


def _kept(site: Site, machine: Machine) -> dict[Algorithm, float]:
    """What the weights of each algorithm cost beside their time; none where that is not priced."""
    anchor = next((n for n in site.nodes if isinstance(n.op, Conv | ConvTranspose)), None)
    if anchor is None or site.conv is None or site.window is not None:
        return {}
    own, conv = machine.beside(bytes_of(anchor.inputs[1])), site.conv
    algorithms = dict.fromkeys(a.algorithm for a in site.alternatives)
    return {algorithm: algorithm.price(0.0, conv, own) for algorithm in algorithms}


def converted_kind(value: Value) -> str:
    """What conversions of a value are told apart by, beside their forms."""
    return str(TensorType(value.dtype, value.shape))


def _time_of(site: Site, own: Alternative, times: SiteTimes) -> float | None:
    key = own.key(site.results[0].rank)
    return times.times_ns.get(key, times.times_ns.get(key + HALO))
