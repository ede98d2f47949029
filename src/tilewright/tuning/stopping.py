"""When a task has been tried often enough: the last trials have made it hardly any faster."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import inf, isnan

__all__ = ["Patience", "Stopping"]


@dataclass(frozen=True)
class Patience:
    """A task ends when `trials` of them have gained no more than `gain`, a share of the time."""

    trials: int = 96
    gain: float = 0.01

    def __post_init__(self) -> None:
        if self.trials < 1 or not 0 <= self.gain < 1:
            raise ValueError(f"there is no patience of {self.trials} trials for {self.gain}")


class Stopping:
    """The costs of one task in the order of its trials, as far as patience looks back.

    The best of now is compared with the best of `trials` trials ago, so small gains add up. Costs
    before the first trial (`start`, such as that of the draft) are what there is to gain on.
    """

    def __init__(self, patience: Patience | None, start: float = inf) -> None:
        self.patience = patience
        self._bests = deque([start], maxlen=patience.trials + 1 if patience else 1)

    def tell(self, *costs: float) -> None:
        """What trials cost; infinite for failures."""
        for cost in costs:
            self._bests.append(min(self._bests[-1], inf if isnan(cost) else cost))

    @property
    def best(self) -> float:
        """The least cost so far."""
        return self._bests[-1]

    @property
    def is_done(self) -> bool:
        """Whether patience has come to its end; a task without patience has none."""
        if self.patience is None or len(self._bests) <= self.patience.trials:
            return False
        return not self.best < self._bests[0] * (1 - self.patience.gain)
