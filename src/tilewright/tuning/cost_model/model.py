"""What a cost model is: it is shown features with their costs, and then orders others.

Scores are higher for what should be faster. Only their order within one task means something.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from tilewright.tuning.features.scaling import Features

__all__ = ["ANALYTIC_COLUMN", "Analytic", "CostModel", "Samples", "Scores"]

Scores = NDArray[np.float64]

ANALYTIC_COLUMN: Final = "cycles_by_draft"
"""The feature that is the analytic prediction, as log2."""


@dataclass(frozen=True)
class Samples:
    """What was measured of one task: a cost for each row; infinite for what failed."""

    features: Features
    costs: NDArray[np.float64]

    def __post_init__(self) -> None:
        if len(self.costs) != len(self.features.rows):
            raise ValueError(f"{len(self.costs)} costs for {len(self.features.rows)} rows")
        if not (np.asarray(self.costs) > 0).all():
            raise ValueError("a cost is not a positive number")


class CostModel(Protocol):
    """Learns from groups of samples, one for each task, and scores others."""

    def fit(self, groups: Sequence[Samples]) -> None:
        """Forget everything and learn from these."""

    def predict(self, features: Features) -> Scores:
        """A score for each row."""


@dataclass(frozen=True)
class Analytic:
    """The order of the machine model, which nothing has to be measured for.

    Features without a prediction have no order.
    """

    column: str = ANALYTIC_COLUMN

    def fit(self, groups: Sequence[Samples]) -> None:
        """There is nothing to learn."""

    def predict(self, features: Features) -> Scores:
        if self.column not in features.names:
            return np.zeros(len(features.rows))
        return -features.rows[:, features.names.index(self.column)]
