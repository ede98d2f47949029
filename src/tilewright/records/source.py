"""The source of schedules that knows what was measured: the best record of a workload, else the
draft.

It looks into the database once, when it is made, so that all its answers and digests belong
together while others go on writing. A record that is not faster than the draft that was measured
beside it is none, and one whose points cannot be followed any more is a miss: the kernel is drafted
and says so in a remark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b

from tilewright.errors import TilewrightError
from tilewright.records.database import Database
from tilewright.records.record import Record, target_key, workload_key
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.source import DRAFT, Workload
from tilewright.schedule.trace import Trace
from tilewright.target import Target

__all__ = ["Records"]

NOT_SCHEDULED = "not scheduled"
"""What remarks say of blocks that a recipe had to leave alone."""


class Records:
    """The best records of a database for one target and number of threads: a `ScheduleSource`."""

    def __init__(self, database: Database, target: Target, threads: int) -> None:
        self.winners: Mapping[str, Record] = database.winners(target_key(target), threads)

    @cached_property
    def digest(self) -> str:
        """Of all records that may be used; "" if there are none."""
        known = sorted(record.checksum for record in self.winners.values())
        return blake2b(",".join(known).encode(), digest_size=16).hexdigest() if known else ""

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
    decided = [decision.point for decision in made.decisions]
    if any(point not in decided for point in points.values()):
        return "no group of blocks takes its points"
    left = {remark for remark in made.remarks if NOT_SCHEDULED in remark}
    if left and left - set(DRAFT.schedule(workload).remarks):
        return "it leaves blocks unscheduled"
    return made
