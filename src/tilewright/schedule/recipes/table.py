"""A space as a table: a column of integers for each decision, a row for each point.

Costs are computed for all rows at once. A point of a recipe is a frozen dataclass whose fields are
the columns; `Table.point` makes one of a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Column", "Costs", "Table"]

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
