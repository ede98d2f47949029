"""Numbers of all sizes on one scale: the sign times log2(|x| + 1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Features", "Vector", "signed_log2", "unscaled"]

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Features:
    """A row for each thing that was looked at, and what the columns are called."""

    names: tuple[str, ...]
    rows: NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.rows.ndim != 2 or self.rows.shape[1] != len(self.names):
            raise ValueError(f"{self.rows.shape} is no table of {len(self.names)} columns")

    def only(self, names: Sequence[str]) -> Features:
        """Some of the columns."""
        places = {name: k for k, name in enumerate(self.names)}
        return Features(tuple(names), self.rows[:, [places[name] for name in names]])

    def beside(self, other: Features) -> Features:
        """The columns of both."""
        return Features((*self.names, *other.names), np.hstack([self.rows, other.rows]))


def signed_log2(x: float) -> float:
    """Zero stays zero, and what is negative stays so."""
    return math.copysign(math.log2(abs(x) + 1), x)


def unscaled(values: Vector) -> Vector:
    """The inverse of `signed_log2`."""
    return np.asarray(np.sign(values) * (np.exp2(np.abs(values)) - 1))
