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

__all__ = ["Column", "Costs", "Table", "combinations"]

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


def combinations(*columns: Sequence[object] | NDArray[Any]) -> list[Column]:
    """Places in each column, for every combination of them."""
    return [places.ravel() for places in np.indices([len(c) for c in columns])]
