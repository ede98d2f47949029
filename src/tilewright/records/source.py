"""The source of schedules that knows what was measured: the best record of a workload, else the
draft.

It looks into the database once, when it is made, so that all its answers and digests belong
together while others go on writing. A record that is not faster than the draft that was measured
beside it is none, and one whose points cannot be followed any more is a miss: the kernel is drafted
and says so in a remark.

What was measured of sites and conversions goes to the choice of layouts (`schedule/measured.py`).
A model that was found to be slower with its records, as a whole, is drafted.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b

from tilewright.errors import TilewrightError
from tilewright.records.database import Database
from tilewright.records.kinds import MOST_TIME, conversion_times, site_times, verdicts
from tilewright.records.record import Record, target_key, workload_key
from tilewright.schedule.measured import CONVERSION, MODEL, SITE, Measured
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.source import DRAFT, ScheduleSource, Workload, not_followed
from tilewright.schedule.trace import Trace
from tilewright.target import Target

__all__ = ["Records"]


class Records:
    """The best records of a database for one target and number of threads: a `ScheduleSource`."""

    def __init__(self, database: Database, target: Target, threads: int) -> None:
        about = target_key(target), threads
        self.winners: Mapping[str, Record] = database.winners(*about)
        sites, moves = (database.of_kind(kind, *about) for kind in (SITE, CONVERSION))
        self.measured = Measured(site_times(sites), conversion_times(moves))
        self.verdicts: Mapping[str, Record] = verdicts(database.of_kind(MODEL, *about))

    def with_measured(self, records: Iterable[Record]) -> Records:
        """The same with more records of sites and conversions, which no database has yet."""
        more, found = self.unjudged(), list(records)
        sites = {**self.measured.sites, **site_times(found)}
        conversions = {**self.measured.conversions, **conversion_times(found)}
        more.measured = Measured(sites, conversions)
        return more

    def with_winners(self, winners: Mapping[str, Record]) -> Records:
        """The same with other records of kernels: for comparing them."""
        other = self.unjudged()
        other.winners = winners
        return other

    def unjudged(self) -> Records:
        """The same, whatever earlier comparisons of whole models have said: for another one."""
        other = copy.copy(self)
        other.__dict__.pop("digest", None)
        other.verdicts = {}
        return other

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to use."""
        return not (self.winners or self.measured)

    @cached_property
    def digest(self) -> str:
        """Of all records that may be used; "" if there are none."""
        if self.is_empty:
            return ""
        kept = (*self.winners.values(), *filter(_is_slower, self.verdicts.values()))
        known = sorted(record.checksum for record in kept)
        known += [repr(self.measured)] if self.measured else []
        return blake2b(",".join(known).encode(), digest_size=16).hexdigest()

    def digest_of(self, workload: Workload) -> str:
        """The checksum of the record of a workload; "" if there is none."""
        record = self.record_of(workload)
        return "" if record is None else record.checksum

    def schedule(self, workload: Workload) -> Schedule:
        """By the record of a workload, if there is one that can be followed; else the draft."""
        record = self.record_of(workload)
        if record is None:
            return DRAFT.schedule(workload)
        made = followed(record, workload)
        if isinstance(made, Schedule):
            return made
        drafted = DRAFT.schedule(workload)
        drafted.remarks.append(f"drafted: its record {record.checksum[:8]} is not used, {made}")
        return drafted

    def points_of(self, workload: Workload) -> Mapping[str, object] | None:
        """The points by which any process drafts the same; None if it is not by points."""
        record = self.record_of(workload)
        if record is None:
            return workload.points
        made = followed(record, workload)
        if not record.points or not isinstance(made, Schedule):
            return None
        return {**workload.points, **record.points_for(workload.program)}

    def record_of(self, workload: Workload) -> Record | None:
        """The record of a workload; None if it is to be drafted."""
        return self.winners.get(workload_key(workload)) if self.winners else None

    def for_model(self, key: str) -> ScheduleSource:
        """Itself; the draft, if that was faster when the whole model was measured last."""
        verdict = self.verdicts.get(key)
        return Kept(verdict) if verdict is not None and _is_slower(verdict) else self


@dataclass(frozen=True)
class Kept:
    """The draft, kept for a model that was slower with its records; remarks say so."""

    verdict: Record
    digest: str = ""

    def digest_of(self, workload: Workload) -> str:
        return DRAFT.digest_of(workload)

    def schedule(self, workload: Workload) -> Schedule:
        drafted = DRAFT.schedule(workload)
        share = self.verdict.time_ns / self.verdict.reference_ns
        reason = f"with its records the model took {share:.2f} times as long"
        drafted.remarks.append(f"drafted: {reason} (record {self.verdict.checksum[:8]})")
        return drafted

    def points_of(self, workload: Workload) -> Mapping[str, object]:
        return workload.points


def _is_slower(verdict: Record) -> bool:
    return verdict.time_ns > MOST_TIME * verdict.reference_ns


def followed(record: Record, workload: Workload) -> Schedule | str:
    """The schedule that a record describes; why there is none, if there is none."""
    try:
        if not record.points:
            return Schedule(workload.program, Trace.from_json(record.trace))
        points = record.points_for(workload.program)
        made = DRAFT.schedule(replace(workload, points={**workload.points, **points}))
    except TilewrightError as problem:
        return f"it cannot be followed ({problem.code.id})"
    except Exception as problem:  # noqa: BLE001  (points may come from anywhere: numbers of any size)
        return f"it cannot be followed ({type(problem).__name__})"
    return made if (why := not_followed(made, workload, points)) is None else why
