"""The space of one kernel: every decision of every recipe in it, as digits.

A kernel has a group of blocks for each recipe that scheduled some, and each recipe has its own
space. Their axes stand side by side: a point of the kernel is one row of digits, and its number has
them as a mixed radix. Points are drawn, changed and priced as rows; programs are made of those only
that are measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from tilewright.schedule.recipes.recipe import Decision
from tilewright.schedule.recipes.table import Column, Space, Table
from tilewright.target import Target
from tilewright.tuning.features.points import SHARED, point_features
from tilewright.tuning.features.scaling import Features
from tilewright.tuning.search.strategy import Digits

__all__ = ["KernelSpace", "axes_of"]

DRAWS: Final = 64
"""Numbers that are drawn at once for each point that is wanted: most of a space cannot be followed
where its decisions depend on each other."""


class Axes(Protocol):
    """The digits of one recipe."""

    @property
    def lengths(self) -> tuple[int, ...]: ...

    def columns(self, digits: Digits) -> dict[str, Column]:
        """The decisions that rows of digits are."""

    def followed(self, digits: Digits) -> NDArray[np.bool_]:
        """Which rows are points."""

    def sample(self, rng: np.random.Generator, count: int) -> Digits:
        """Points at random."""

    def digits_of(self, point: object) -> Digits | None:
        """The row of a point; None if it is none of the space."""

    def nearest(self, point: object) -> Digits:
        """The digits that are nearest to those of a point of another space."""


@dataclass(frozen=True)
class NumberedAxes:
    """Of a recipe that numbers its points: a digit for decisions that are taken together."""

    space: Space[Any]

    @property
    def lengths(self) -> tuple[int, ...]:
        return self.space.lengths

    def columns(self, digits: Digits) -> dict[str, Column]:
        return {
            name: column[digits[:, place]]
            for place, axis in enumerate(self.space.axes)
            for name, column in axis.items()
        }

    def followed(self, digits: Digits) -> NDArray[np.bool_]:
        return self.space.follow(self.columns(digits))

    def sample(self, rng: np.random.Generator, count: int) -> Digits:
        drawn = rng.integers(0, self.lengths, (max(count, 1) * DRAWS, len(self.lengths)))
        return drawn[self.followed(drawn)][:count]

    def digits_of(self, point: object) -> Digits | None:
        row = []
        for axis in self.space.axes:
            same = [column == getattr(point, name) for name, column in axis.items()]
            places = np.flatnonzero(np.logical_and.reduce(same))
            if not len(places):
                return None
            row.append(int(places[0]))
        digits = np.array([row], np.int64)
        return digits[0] if self.followed(digits)[0] else None

    def nearest(self, point: object) -> Digits:
        return np.array([_nearest(axis, point) for axis in self.space.axes], np.int64)


@dataclass(frozen=True)
class TabledAxes:
    """Of a recipe whose points are a table: a digit for each column of more than one value."""

    table: Table[Any]

    @cached_property
    def values(self) -> dict[str, Column]:
        """The values of each column."""
        return {name: np.unique(column) for name, column in self.table.columns.items()}

    @cached_property
    def free(self) -> tuple[str, ...]:
        """The columns that there is a choice in."""
        return tuple(name for name, values in self.values.items() if len(values) > 1)

    @cached_property
    def rows(self) -> Digits:
        """All points."""
        places = [np.searchsorted(self.values[n], self.table[n]) for n in self.free]
        return np.stack(places, axis=1) if places else np.zeros((len(self.table), 0), np.int64)

    @cached_property
    def _numbers(self) -> NDArray[np.int64]:
        return np.unique(self._number(self.rows))

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(len(self.values[name]) for name in self.free)

    def _number(self, digits: Digits) -> NDArray[np.int64]:
        number = np.zeros(len(digits), np.int64)
        for place, length in enumerate(self.lengths):
            number = number * length + digits[:, place]
        return number

    def columns(self, digits: Digits) -> dict[str, Column]:
        free = {name: self.values[name][digits[:, k]] for k, name in enumerate(self.free)}
        fixed = {n: np.full(len(digits), v[0]) for n, v in self.values.items() if n not in free}
        found = fixed | free
        return {name: found[name] for name in self.table.columns}

    def followed(self, digits: Digits) -> NDArray[np.bool_]:
        return np.isin(self._number(digits), self._numbers)

    def sample(self, rng: np.random.Generator, count: int) -> Digits:
        return self.rows[rng.integers(0, len(self.rows), count)]

    def digits_of(self, point: object) -> Digits | None:
        own = {name: getattr(point, name) for name in self.values}
        if any(own[name] not in values for name, values in self.values.items()):
            return None
        row = [int(np.searchsorted(self.values[name], own[name])) for name in self.free]
        digits = np.array([row], np.int64)
        return digits[0] if self.followed(digits)[0] else None

    def nearest(self, point: object) -> Digits:
        row: Digits = self.rows[_nearest(self.table.columns, point)]
        return row


def _nearest(columns: Mapping[str, Column], point: object) -> int:
    """The place where all columns together are nearest to a point, by ratios."""
    apart = np.zeros(len(next(iter(columns.values()))))
    for name, column in columns.items():
        wanted = float(getattr(point, name))
        apart += np.abs(np.log2(np.abs(column) + 1.0) - np.log2(abs(wanted) + 1.0))
    return int(np.argmin(apart))


def axes_of(decision: Decision, target: Target) -> Axes:
    """The digits of the recipe that took a decision."""
    numbered = getattr(decision.recipe, "points", None)
    if numbered is not None:
        return NumberedAxes(numbered(decision.shape, target))
    return TabledAxes(decision.recipe.space(decision.shape, target))


class KernelSpace:
    """All points of one kernel: a `SearchSpace`, and what its rows mean.

    `decisions` are those of the draft, the one that takes longest first; its features stand for the
    kernel where several tasks are compared.
    """

    def __init__(self, decisions: Sequence[Decision], target: Target) -> None:
        self.target = target
        known = {d: _cycles(d, Table.of([d.point]), target)[0] for d in decisions}
        distinct: dict[str, Decision] = {}
        for decision in sorted(known, key=known.__getitem__, reverse=True):
            distinct.setdefault(decision.block, decision)  # of two, the one that is most of it
        self.decisions = tuple(d for d in distinct.values() if not _is_part(d, distinct.values()))
        self.axes = tuple(axes_of(d, target) for d in self.decisions)
        self.drafted_cycles = max(1.0, sum(known[d] for d in self.decisions))

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        return tuple(length for axes in self.axes for length in axes.lengths)

    @cached_property
    def size(self) -> int:
        return prod(self.lengths)

    def followed(self, digits: Digits) -> NDArray[np.bool_]:
        keep = np.ones(len(digits), np.bool_)
        for axes, own in self._parts(digits):
            keep &= axes.followed(own)
        return keep

    def sample(self, rng: np.random.Generator, count: int) -> Digits:
        found = [axes.sample(rng, count) for axes in self.axes]
        rows = min((len(own) for own in found), default=0)
        if not rows:
            return np.zeros((0, len(self.lengths)), np.int64)
        return np.unique(np.hstack([own[:rows] for own in found]), axis=0)

    def number(self, row: Digits) -> int:
        """The number of a point."""
        number = 0
        for digit, length in zip(row.tolist(), self.lengths, strict=True):
            number = number * length + digit
        return number

    def digits(self, number: int) -> Digits:
        """The inverse of `number`."""
        row = []
        for length in reversed(self.lengths):
            number, digit = divmod(number, length)
            row.append(digit)
        return np.array(row[::-1], np.int64)

    def drafted(self) -> Digits | None:
        """The row of the draft; None where the whole space does not have it."""
        return self.digits_of({d.block: d.point for d in self.decisions})

    def drafts(self) -> Digits:
        """The row of the draft, if there is one."""
        row = self.drafted()
        return np.zeros((0, len(self.lengths)), np.int64) if row is None else row[None]

    def part(self, row: Digits) -> tuple[int, Digits]:
        """The only variant, and the row itself."""
        return 0, row

    def row_of(self, variant: int, own: Digits) -> Digits:
        """The inverse of `part`."""
        assert variant == 0
        return own

    def digits_of(self, points: Mapping[str, object]) -> Digits | None:
        """The row of points by blocks; None if they are not of this space."""
        rows = []
        for decision, axes in zip(self.decisions, self.axes, strict=True):
            point = points.get(decision.block, decision.point)
            own = axes.digits_of(point) if isinstance(point, decision.recipe.point) else None
            if own is None:
                return None
            rows.append(own)
        return np.concatenate(rows) if rows else None

    def nearest(self, points: Mapping[str, object]) -> Digits | None:
        """The row nearest to points of another space; None if that cannot be followed.

        Groups without one have their drafted point.
        """
        rows = []
        for decision, axes in zip(self.decisions, self.axes, strict=True):
            point = points.get(decision.block, decision.point)
            known = axes.digits_of(point)
            rows.append(axes.nearest(point) if known is None else known)
        row = np.concatenate(rows)
        return row if self.followed(row[None])[0] else None

    def points(self, row: Digits) -> dict[str, object]:
        """The points of a row, by the blocks that they are given to."""
        found = zip(self.decisions, self._tables(row[None]), strict=True)
        return {decision.block: table.point(0) for decision, table in found}

    def cycles(self, digits: Digits) -> NDArray[np.float64]:
        """What the machine model predicts."""
        total = np.zeros(len(digits))
        for decision, table in zip(self.decisions, self._tables(digits), strict=True):
            total += _cycles(decision, table, self.target)
        return total

    def features(self, digits: Digits) -> Features:
        """What a cost model looks at: shared columns of the main recipe, then all of each one."""
        made = [
            point_features(d.recipe, d.shape, table, self.target)
            for d, table in zip(self.decisions, self._tables(digits), strict=True)
        ]
        cycles = self.cycles(digits) if len(made) > 1 else None
        names = list(made[0].names)
        rows = [made[0].rows.copy()]
        if cycles is not None:
            analytic = names.index(SHARED[0])
            rows[0][:, analytic] = np.log2(np.maximum(cycles, 1.0) / self.drafted_cycles)
        for place, more in enumerate(made[1:], start=1):
            names += [f"{place}.{name}" for name in more.names]
            rows.append(more.rows)
        return Features(tuple(names), np.hstack(rows))

    def _parts(self, digits: Digits) -> list[tuple[Axes, Digits]]:
        found, begin = [], 0
        for axes in self.axes:
            end = begin + len(axes.lengths)
            found.append((axes, digits[:, begin:end]))
            begin = end
        return found

    def _tables(self, digits: Digits) -> list[Table[Any]]:
        return [
            Table(decision.recipe.point, axes.columns(own))
            for decision, (axes, own) in zip(self.decisions, self._parts(digits), strict=True)
        ]


def _is_part(decision: Decision, others: Iterable[Decision]) -> bool:
    """Whether another decision has this one in it: that of tile blocks has loops of its product."""
    return any(
        set(decision.blocks) < set(other.blocks)
        and isinstance(getattr(other.point, "product", None), decision.recipe.point)
        for other in others
    )


def _cycles(decision: Decision, table: Table[Any], target: Target) -> NDArray[np.float64]:
    cycles = decision.recipe.cycles(decision.shape, target.machine, table)
    return np.asarray(cycles, np.float64)
