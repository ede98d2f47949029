"""What a transposing copy is about, and the decisions of its recipe."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.schedule.recipes.sharing import Nest
from tilewright.schedule.recipes.table import Costs, Table

__all__ = ["TransposePoint", "TransposeShape"]


@dataclass(frozen=True)
class TransposeShape:
    """Rows run along lines of the source, columns along lines of the result."""

    around: Nest
    across: int
    """The last loop over rows, by number."""
    rows: int
    columns: int
    is_known: bool
    """Both are numbers."""
    lanes: int
    element_bytes: int
    source_step: int
    """Bytes from the source of one column to that of the next; 0 if not known."""
    result_step: int
    """Bytes from one row of the result to the next; 0 if not known."""
    operations: int
    threads: int
    row_loops: int = 1
    column_loops: int = 1
    """Neighbouring loops that are one: what short ones leave over is less then."""

    @property
    def size_bytes(self) -> float:
        """Of everything that is read, and as much is written."""
        return float(self.around.iterations) * self.rows * self.columns * self.element_bytes

    def tiles(self, table: Table[TransposePoint]) -> tuple[Costs, Costs]:
        """Iterations of the loops over rows and over columns of tiles side by side."""
        side = table["side"]
        row_tiles = np.ceil(self.rows / (side * table["rows_beside"]))
        return row_tiles, np.ceil(self.columns / (side * table["columns_beside"]))


@dataclass(frozen=True)
class TransposePoint:
    """Decisions of the recipe."""

    side: int
    """Rows and columns of a square tile."""
    rows_beside: int
    columns_beside: int
    """Square tiles side by side."""
    source_first: int
    """Of tiles side by side, those that share lines of the source follow each other."""
    along_source: int
    """The same for the loops around them."""
    shared: int
    parallel: int
