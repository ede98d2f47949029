"""Where a kernel gets its schedule from: the seam between the path and whatever knows schedules.

The path asks a `ScheduleSource` and nothing else, for `tw.build` and for the kernels of models
alike. `Draft` is the analytic draft, which needs no measurement; `Points` is the draft with points
that somebody has; `Fixed` is a trace; `Unscheduled` leaves a program as it is written. Records of
measurements are another source: what it has no record of, it leaves to the draft.

What a source knows is part of the keys of caches: whoever adds a source gives it digests that
change whenever its answers do.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from tilewright.errors import Code, ScheduleError, UserError
from tilewright.schedule.draft import draft
from tilewright.schedule.points import data_of, points_of
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.trace import Trace
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.regions import blocks

if TYPE_CHECKING:
    from tilewright.schedule.recipes.contraction.space import ContractionPoint
    from tilewright.schedule.recipes.windows.points import WindowPoint

__all__ = ["DRAFT", "POINTS_FORMAT", "Draft", "Fixed", "Points", "ScheduleSource", "Unscheduled"]
__all__ += ["Workload", "is_by_points", "not_followed", "points_from", "source_of"]

K003 = Code("K003", "`{trace}` is not a way to schedule a program")
S006 = Code("S006", "the text has no points of recipes")

NOT_SCHEDULED: Final = ": not scheduled ("
"""What remarks say of a block that a recipe had to leave alone. (Of a group that is scheduled block
by block they say something else: its points are followed, and nothing is fused.)"""

POINTS_FORMAT: Final = "tilewright-points-1"
"""What files with points say that they are."""


@dataclass(frozen=True)
class Workload:
    """A program to be scheduled, and what a schedule may depend on.

    Parameters named in `constants` have arrays that are known ahead. `loops` are those that the
    choice of layouts has settled, for a contraction or a window; None leaves them to the source.
    `points` are those of groups by their last block: whoever knows some fills them in.
    """

    program: tir.Func
    target: Target
    threads: int = 1
    constants: frozenset[str] = frozenset()
    loops: ContractionPoint | WindowPoint | None = None
    points: Mapping[str, object] = field(default_factory=dict, hash=False)


@runtime_checkable
class ScheduleSource(Protocol):
    """Something that knows schedules; it may be asked from several threads at once."""

    @property
    def digest(self) -> str:
        """All that the source knows, for the keys of models; "" for the analytic draft."""

    def digest_of(self, workload: Workload) -> str:
        """What it knows of one workload, for the key of its kernel; "" if that is the draft."""

    def schedule(self, workload: Workload) -> Schedule:
        """The schedule of a program, with the trace and the remarks that belong to it."""


@dataclass(frozen=True)
class Draft:
    """The analytic draft: parameters come from the model of the machine."""

    digest: str = ""

    def digest_of(self, workload: Workload) -> str:
        del workload
        return self.digest

    def schedule(self, workload: Workload) -> Schedule:
        w = workload
        return draft(w.program, w.target, w.threads, w.constants, w.loops, w.points)


@dataclass(frozen=True)
class Unscheduled:
    """Programs as they are written."""

    digest: str = "none"

    def digest_of(self, workload: Workload) -> str:
        del workload
        return self.digest

    def schedule(self, workload: Workload) -> Schedule:
        return Schedule(workload.program)


@dataclass(frozen=True)
class Fixed:
    """One trace, for the program that it was written for."""

    trace: Trace

    @property
    def digest(self) -> str:
        return blake2b(self.trace.to_json().encode(), digest_size=16).hexdigest()

    def digest_of(self, workload: Workload) -> str:
        del workload
        return self.digest

    def schedule(self, workload: Workload) -> Schedule:
        return Schedule(workload.program, self.trace)


@dataclass(frozen=True)
class Points:
    """The points of one program by the last blocks of its groups; other groups are drafted."""

    points: Mapping[str, object] = field(hash=False)

    @property
    def digest(self) -> str:
        return blake2b(self.to_json().encode(), digest_size=16).hexdigest()

    def digest_of(self, workload: Workload) -> str:
        del workload
        return self.digest

    def schedule(self, workload: Workload) -> Schedule:
        return DRAFT.schedule(replace(workload, points=self.points_of(workload)))

    def points_of(self, workload: Workload) -> Mapping[str, object]:
        """All points of a workload: those that it had, and ours."""
        return {**workload.points, **self.points}

    def to_json(self) -> str:
        """One line of JSON."""
        points = {block: data_of(point) for block, point in sorted(self.points.items())}
        return json.dumps({"format": POINTS_FORMAT, "points": points}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Points:
        """The inverse of `to_json`; refuses anything else with S006."""
        try:
            data = json.loads(text)
            if data["format"] != POINTS_FORMAT:
                raise ValueError(f"format {data['format']!r}")
            return cls(points_of(data["points"]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            facts = {"expected": POINTS_FORMAT, "found": f"{type(error).__name__}: {error}"}
            hint = "points are written by `Points.to_json`"
            raise ScheduleError(S006, facts, hint=hint) from None


DRAFT: Final = Draft()
_BY_NAME: Final[dict[str, ScheduleSource]] = {"draft": DRAFT, "none": Unscheduled()}


def is_by_points(source: ScheduleSource) -> bool:
    """Whether other processes can draft what a source gives, most of it at least."""
    return source is DRAFT or hasattr(source, "points_of")


def points_from(source: ScheduleSource, workload: Workload) -> Mapping[str, object] | None:
    """The points by which any process drafts what a source would give; None if it has others.

    A source that knows points alone says so by a method `points_of`, as `Points` does; it gives
    None for a workload of which it knows something else.
    """
    if source is DRAFT:
        return workload.points
    known = getattr(source, "points_of", None)
    return None if known is None else known(workload)


def not_followed(made: Schedule, workload: Workload, points: Mapping[str, object]) -> str | None:
    """Why a schedule is not the one that points ask for; None if it is.

    A draft goes its own way where a point does not fit: what is measured must not be mistaken for
    what was asked for. A group has nothing to decide once the point of another one has taken it in:
    its blocks are computed inside of those loops, or inlined.
    """
    decided = {
        decision.block
        for decision in made.decisions
        if decision.point == points.get(decision.block)
    }
    others = points.keys() - decided
    known = {block.name for block in blocks(workload.program.body)}
    if any(block not in known or not _is_inside(made, block, decided) for block in others):
        return "no group of blocks takes its points"
    left = {remark for remark in made.remarks if NOT_SCHEDULED in remark}
    plain = replace(workload, points={})
    if left and left - set(DRAFT.schedule(plain).remarks):
        return "it leaves blocks unscheduled"
    return None


def _is_inside(made: Schedule, block: str, followed: Collection[str]) -> bool:
    """Whether a block is part of others: inlined, or in the loops of those that were followed."""
    if block not in made.blocks():
        return True
    outermost = made.loops(block)[:1]
    return any(outermost and outermost[0] in made.loops(other) for other in followed)


def source_of(trace: object) -> ScheduleSource:
    """The source that is meant by a trace, a word or a source; K003 for anything else."""
    if isinstance(trace, Trace):
        return Fixed(trace)
    if isinstance(trace, str) and trace in _BY_NAME:
        return _BY_NAME[trace]
    if isinstance(trace, ScheduleSource) and not isinstance(trace, type):
        return trace
    shown = str(trace)
    shown = shown if len(shown) < 40 else f"{shown[:40]}…"
    hint = 'give a `Trace` (`Trace.from_json` reads one), `Points`, "draft" or "none"'
    raise UserError(K003, {"trace": shown}, hint=hint)
