"""How windows move along one dimension, in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from tilewright.schedule.recipes.table import Column, Costs

__all__ = ["UNKNOWN_SIZE", "Move"]

N = TypeVar("N", int, Column, Costs)

UNKNOWN_SIZE = 64
"""A size that is not known counts as a middling one."""


@dataclass(frozen=True)
class Move:
    """Elements of a window along a dimension, places between windows, places that one spans."""

    taps: int = 1
    step: int = 1
    reach: int = 1

    @classmethod
    def of(cls, taps: int, step: int, dilation: int) -> Move:
        """By the parameters of an operator."""
        return cls(taps, step, (taps - 1) * dilation + 1)

    @property
    def overlaps(self) -> bool:
        """Whether neighbours read some places together."""
        return self.reach > self.step

    def read(self, places: N) -> N:
        """Places of the data, from the first to the last that so many neighbours read."""
        return (places - 1) * self.step + self.reach

    def touched(self, places: Costs) -> Costs:
        """Places that so many neighbours read: not all between the first and the last."""
        return np.minimum(self.read(places), places * self.taps)

    def pieces(self, extent: int, tile: Column) -> Column:
        """Tiles that differ by their size, or by how their windows lie at the two ends."""
        tiles = -(-extent // tile)
        sizes = 1 + (extent % tiles != 0)
        return np.asarray(np.minimum(tiles, (1 + 2 * self.at_end(tile)) * sizes))

    def at_end(self, tile: Column) -> Column:
        """Tiles at one end whose windows reach into a border, if it keeps sizes."""
        return -(-((self.reach - 1) // 2) // (tile * self.step))
