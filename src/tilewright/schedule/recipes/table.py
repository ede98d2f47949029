"""A space as a table: a column of integers for each decision, a row for each point.

Costs are computed for all rows at once. A point of a recipe is a frozen dataclass whose fields are
the columns; `Table.point` makes one of a row. A space of many decisions has more rows than memory
holds: a `Space` numbers them, and makes tables of some.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from math import prod
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Column", "Costs", "Space", "Table", "combinations"]

Column = NDArray[np.int64]
Costs = NDArray[np.float64]
P = TypeVar("P")


class Table(Generic[P]):
    """Points of one kind, as columns; the first row is no better than others until it is priced."""

    def __init__(self, kind: type[P], columns: Mapping[str, Column]) -> None:
        self.kind, self.columns = kind, dict(columns)

    @classmethod
    def of(cls, points: Sequence[P]) -> Table[P]:
        """The table of some points, all of one kind."""
        kind = type(points[0])
        names = [f.name for f in fields(kind)]  # type: ignore[arg-type]
        rows = np.array([[getattr(p, name) for name in names] for p in points], np.int64)
        return cls(kind, {name: rows[:, k] for k, name in enumerate(names)})

    @classmethod
    def every(cls, kind: type[P], values: Mapping[str, Sequence[int]]) -> Table[P]:
        """Every combination of the values of each column."""
        return cls.combined(kind, *({name: column} for name, column in values.items()))

    @classmethod
    def combined(cls, kind: type[P], *parts: Mapping[str, Sequence[int]]) -> Table[P]:
        """Every combination of one row of each part; columns of a part belong together."""
        counts = [len(next(iter(part.values()))) for part in parts]
        places = [at.ravel() for at in np.indices(counts)]
        return cls(
            kind,
            {
                name: np.array(values, np.int64)[at]
                for part, at in zip(parts, places, strict=True)
                for name, values in part.items()
            },
        )

    @classmethod
    def joined(cls, tables: Sequence[Table[P]]) -> Table[P]:
        """The rows of several tables of one kind."""
        names = tables[0].columns
        columns = {n: np.concatenate([t[n] for t in tables]) for n in names}
        return cls(tables[0].kind, columns)

    def times(self, other: Table[P]) -> Table[P]:
        """Every row with every row of a table of other columns."""
        mine, others = np.indices((len(self), len(other))).reshape(2, -1)
        columns = {name: column[mine] for name, column in self.columns.items()}
        columns |= {name: column[others] for name, column in other.columns.items()}
        return Table(self.kind, columns)

    def where(self, keep: NDArray[np.bool_]) -> Table[P]:
        """The rows for which something holds."""
        return Table(self.kind, {name: column[keep] for name, column in self.columns.items()})

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]

    def __iter__(self) -> Iterator[P]:
        return (self.point(row) for row in range(len(self)))

    def point(self, row: int) -> P:
        """One row as a value."""
        values: dict[str, Any] = {name: int(column[row]) for name, column in self.columns.items()}
        return self.kind(**values)


@dataclass(frozen=True)
class Space(Generic[P]):
    """Combinations of decisions, by number: a digit for each axis, the last one the fastest.

    An axis is several columns that are decided together. `follow` tells which combinations there
    are; numbers of others have no point.
    """

    kind: type[P]
    axes: tuple[Mapping[str, Column], ...]
    follow: Callable[[dict[str, Column]], NDArray[np.bool_]]

    @property
    def lengths(self) -> tuple[int, ...]:
        """How many values each axis has."""
        return tuple(len(next(iter(axis.values()))) for axis in self.axes)

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return prod(self.lengths)

    def columns(self, numbers: NDArray[np.int64]) -> dict[str, Column]:
        """The columns of these numbers, whether they can be followed or not."""
        found: dict[str, Column] = {}
        for axis, length in zip(reversed(self.axes), reversed(self.lengths), strict=True):
            numbers, digits = np.divmod(numbers, length)
            found |= {name: column[digits] for name, column in axis.items()}
        return found

    def table(self, numbers: NDArray[np.int64] | None = None) -> Table[P]:
        """Those of these numbers (or of all) that can be followed."""
        found = self._everything() if numbers is None else self.columns(numbers)
        keep = self.follow(found)
        return Table(self.kind, {name: column[keep] for name, column in found.items()})

    def _everything(self) -> dict[str, Column]:
        """All columns, without a division for each digit."""
        lengths = self.lengths
        found: dict[str, Column] = {}
        for place, axis in enumerate(self.axes):
            before, behind = prod(lengths[:place]), prod(lengths[place + 1 :])
            digits = np.tile(np.repeat(np.arange(lengths[place]), behind), before)
            found |= {name: column[digits] for name, column in axis.items()}
        return found

    def point(self, number: int) -> P | None:
        """The point of a number; None if it cannot be followed."""
        table = self.table(np.array([number], np.int64))
        return table.point(0) if len(table) else None

    def sample(self, rng: random.Random, count: int, most_draws: int = 1 << 16) -> list[P]:
        """So many different points at random, or fewer if most numbers have none."""
        found: dict[P, None] = {}
        drawn = 0
        while len(found) < count and drawn < most_draws:
            batch = min(most_draws - drawn, 8 * count + 64)
            numbers = np.array([rng.randrange(self.size) for _ in range(batch)], np.int64)
            drawn += batch
            for point in self.table(numbers):
                if len(found) < count:
                    found[point] = None
        return list(found)


def combinations(*columns: Sequence[object] | NDArray[Any]) -> list[Column]:
    """Places in each column, for every combination of them."""
    return [places.ravel() for places in np.indices([len(c) for c in columns])]
