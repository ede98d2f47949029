"""What many tasks have taught, and what the task at hand does: f = f_local + f_global · 2^(-n/64).

The global model has seen other tasks and looks at features that mean the same everywhere. The local
one begins with the analytic prediction and learns what is left over from the n samples of its own
task, with all of their features. With every 64 samples what the global one has learnt counts half
as much (AutoTVM's discount), and below a twentieth it is not asked any more; nor is it where it
orders these samples worse than the analytic prediction does, which counts as ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from tilewright.tuning.cost_model.boosted import Boosted, Settings
from tilewright.tuning.cost_model.metrics import pairwise_accuracy
from tilewright.tuning.cost_model.model import Analytic, Samples, Scores
from tilewright.tuning.features.points import SHARED
from tilewright.tuning.features.scaling import Features

__all__ = ["Joined", "discount"]

HALF: Final = 64
"""Samples after which the global model counts half."""
LEAST: Final = 0.05
"""Weight below which it does not count."""


def discount(samples: int) -> float:
    """Weight of the global model when so many samples of the task are known."""
    weight = 2.0 ** (-samples / HALF)
    return weight if weight >= LEAST else 0.0


@dataclass
class Joined:
    """A global model on shared columns, and a local one on all of them."""

    shared: Boosted = field(default_factory=Boosted)
    own: Boosted = field(default_factory=Boosted)
    columns: tuple[str, ...] = SHARED
    samples: int = 0
    is_of_use: bool = True
    """Whether the global model orders the samples of the task better than no model."""

    @classmethod
    def of(
        cls, history: Sequence[Samples], settings: Settings, columns: Sequence[str] = SHARED
    ) -> Joined:
        """A model for a fresh task, from the samples of others.

        Only the shared columns of these are looked at, so that they may be of any recipe.
        """
        shared = Boosted(settings)
        shared.fit([Samples(g.features.only(columns), g.costs) for g in history])
        return cls(shared, Boosted(settings), tuple(columns))

    def fit(self, groups: Sequence[Samples]) -> None:
        """Learn from samples of the task at hand."""
        self.samples = sum(len(g.costs) for g in groups)
        self.is_of_use = self._orders_better(groups)
        self.own.fit(groups, [self._global(g.features) for g in groups])

    def predict(self, features: Features) -> Scores:
        return self.own.predict(features) + self._global(features)

    def _global(self, features: Features) -> Scores:
        weight = discount(self.samples) if self.is_of_use else 0.0
        if not weight:
            return np.zeros(len(features.rows))
        return weight * self.shared.learnt(features.only(self.columns))

    def _orders_better(self, groups: Sequence[Samples]) -> bool:
        """By pairs of samples: what others have taught is worth nothing where it is wrong here."""
        for group in groups:
            costs = np.nan_to_num(group.costs, posinf=np.finfo(np.float64).max)
            plain = Analytic().predict(group.features)
            more = plain + self.shared.learnt(group.features.only(self.columns))
            before, after = (pairwise_accuracy(scores, costs) for scores in (plain, more))
            if not after > before:
                return False
        return True
