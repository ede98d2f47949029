"""Points that nobody uses: they were faster than the draft alone, and are slower in a model.

A record with the outcome `slower` withdraws the points that it names; one that names none withdraws
all points of its kernel that were measured before it. The time of a record says what was before:
rows of databases that were merged are in no order.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from tilewright.records.record import SLOWER, Record

__all__ = ["NOTHING_WITHDRAWN", "Withdrawn", "withdrawn_in"]


@dataclass
class Withdrawn:
    """Of one kernel: points by their keys, and the time up to which none is used."""

    points: set[str] = field(default_factory=set)
    until: str = ""

    def add(self, record: Record) -> None:
        """What a record with the outcome `slower` withdraws."""
        if record.points or record.trace:
            self.points.add(record.points_key)
        else:
            self.until = max(self.until, record.when)

    def __contains__(self, record: Record) -> bool:
        return record.when <= self.until or record.points_key in self.points


NOTHING_WITHDRAWN: Final = Withdrawn()


def withdrawn_in(records: Iterable[Record]) -> dict[str, Withdrawn]:
    """What records withdraw, by workload."""
    found: dict[str, Withdrawn] = {}
    for record in records:
        if record.outcome == SLOWER:
            with suppress(ValueError):  # points that cannot be read are used by nobody
                found.setdefault(record.workload, Withdrawn()).add(record)
    return found
