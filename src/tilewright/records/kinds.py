"""Records of other things than kernels: alternatives of sites, conversions, whole models.

They are records like any other, in the same file and found by the same columns, and their keys say
what they are (`schedule/measured.py`). What names an alternative stands where others have a trace:

    site        an alternative, beside the one that the model of the machine chose for the site
    conversion  a value that is copied from one form into another
    model       all kernels of a model by their records, beside the draft
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import blake2b
from statistics import median
from typing import Any, Final

from tilewright.records.record import Record, target_key, text_of
from tilewright.schedule.measured import (
    CONVERSION,
    MODEL,
    SITE,
    SiteTimes,
    conversion_key,
    kind_of_key,
    model_key,
    site_key,
)
from tilewright.target import Target

__all__ = ["MOST_TIME", "conversion_record", "conversion_times", "model_record", "site_record"]
__all__ += ["site_times", "verdicts"]

MOST_TIME: Final = 1 / 0.99
"""A model that takes so much more of the draft's time with its records is drafted instead. What is
within a percent is noise."""


def site_record(
    workload: str,
    alternative: str,
    reference: str,
    target: Target,
    threads: int,
    **facts: Any,
) -> Record:
    """How long an alternative of a site took, beside the reference in the same turns.

    `workload` is the text of the site, the others are keys of alternatives without loops: those
    that were measured are recorded for the kernel. `facts` are times and whatever else a record
    has.
    """
    label = facts.pop("label", "")
    about = {"alternative": alternative, "reference": reference}
    return Record(
        f"{site_key(workload)}-{_digest(alternative)}",
        target_key(target),
        threads,
        label=f"{label or 'site'}: {alternative}",
        trace=text_of(about),
        **facts,
    )


def conversion_record(
    kind: str,
    before: str,
    after: str,
    target: Target,
    threads: int,
    *,
    time_ns: float,
    **facts: Any,
) -> Record:
    """How long it took to copy a value of a type from one form into another, both by name."""
    facts = {"reference_ns": time_ns, "label": f"{kind}: {before} → {after}", **facts}
    trace = text_of({"value": kind, "before": before, "after": after})
    about = conversion_key(kind, before, after), target_key(target), threads
    return Record(*about, time_ns=time_ns, trace=trace, **facts)


def model_record(structure: str, target: Target, threads: int, **facts: Any) -> Record:
    """How long a whole model took with its records, beside the draft in the same turns.

    `structure` is the key of its graph before layouts are chosen (`graph/structure.py`).
    """
    facts = {"label": "model", **facts}
    trace = text_of({"model": structure})
    return Record(model_key(structure), target_key(target), threads, trace=trace, **facts)


def site_times(records: Iterable[Record]) -> dict[str, SiteTimes]:
    """Times by site, from records in the order in which they came.

    Of several references the last one counts: the others are of an older choice. Of an alternative
    that was measured again the least ratio does, since that is what its best loops reach.
    """
    found: dict[str, list[tuple[str, str, Record]]] = {}
    for record in records:
        about = _about(record, SITE, "alternative", "reference")
        if about is not None:
            site = record.workload.rpartition("-")[0]
            found.setdefault(site, []).append((about[0], about[1], record))
    return {site: _times_of(rows) for site, rows in found.items()}


def _times_of(rows: list[tuple[str, str, Record]]) -> SiteTimes:
    reference = rows[-1][1]
    beside = [(own, record) for own, other, record in rows if other == reference]
    time_ns = median(record.reference_ns for _, record in beside)
    ratios: dict[str, float] = {reference: 1.0}
    for own, record in beside:
        ratio = record.time_ns / record.reference_ns
        ratios[own] = min(ratio, ratios.get(own, ratio))
    return SiteTimes(reference, time_ns, {own: r * time_ns for own, r in ratios.items()})


def conversion_times(records: Iterable[Record]) -> dict[str, float]:
    """Nanoseconds of conversions by their keys: the median of all that were measured."""
    found: dict[str, list[float]] = {}
    for record in records:
        about = _about(record, CONVERSION, "value", "before", "after")
        if about is not None:
            found.setdefault(record.workload, []).append(record.time_ns)
    return {key: median(times) for key, times in found.items()}


def verdicts(records: Iterable[Record]) -> dict[str, Record]:
    """The last record of each model."""
    return {r.workload: r for r in records if _about(r, MODEL, "model") is not None}


def _about(record: Record, kind: str, *names: str) -> tuple[str, ...] | None:
    """What a record says that it is about; None if it is not of the kind, or does not say so."""
    if not record.is_ok or kind_of_key(record.workload) != kind:
        return None
    try:
        about = json.loads(record.trace)
        found = tuple(about[name] for name in names)
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return found if all(isinstance(text, str) for text in found) else None


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=6).hexdigest()
