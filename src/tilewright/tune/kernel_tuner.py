"""The search for one kernel: what was tried, a model of it, and what to try next.

The analytic model orders points until there are measurements. From then on a learned model does,
of this kernel and of all others in the history (`cost_model/joined.py`); it continues from the
analytic prediction, so that few samples do no harm. The drafted kernel is what everything is
compared with: it costs one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tilewright.records import Record
from tilewright.records.record import OK
from tilewright.tune.cost_model.boosted import Boosted, Settings, make_model
from tilewright.tune.cost_model.joined import Joined
from tilewright.tune.cost_model.model import Analytic, Samples
from tilewright.tune.history import History, about_of
from tilewright.tune.measure.trial import Outcome
from tilewright.tune.search import BASELINES, Batching, Digits, key_of, strategy_named
from tilewright.tune.stopping import Patience, Stopping
from tilewright.tune.task import Task

__all__ = ["KernelTuner", "SearchOptions"]

FEWEST: Final = 8
"""Samples below which the analytic model alone is asked."""


@dataclass(frozen=True)
class SearchOptions:
    """How a search goes about: strategy, model and batches.

    Without `diverse`, a batch is what scores highest; `epsilon` is the share of it that is drawn at
    random. Without `transfers`, nothing is learnt from other kernels.
    """

    strategy: str = "evolution"
    model: Settings = field(default_factory=Settings)
    batch: int = 16
    diverse: bool = True
    epsilon: float = 0.05
    transfers: bool = True
    patience: Patience | None = field(default_factory=Patience)


class KernelTuner:
    """The state of the search for one task."""

    def __init__(
        self, task: Task, options: SearchOptions, history: History, rng: np.random.Generator
    ) -> None:
        self.task, self.options, self.history, self.rng = task, options, history, rng
        self.space = task.space
        self.rows: list[Digits] = []
        self.costs: list[float] = []
        self.seen: set[bytes] = set()
        self.failures = 0
        self.is_exhausted = not task.decisions or self.space.size < 2
        self.stopping = Stopping(options.patience, start=1.0)
        self._model: Joined | Boosted | None = None
        self._is_blind = options.strategy in BASELINES or isinstance(make_model(), Analytic)
        if self.is_exhausted:
            return
        seeds = self._seeds()
        diversity = Batching().diversity if options.diverse else 0.0
        batching = Batching(diversity=diversity, epsilon=options.epsilon)
        self.strategy = strategy_named(options.strategy, self.space, rng, seeds, batching)
        self._remember(history.trials(task.workload))

    @property
    def best(self) -> float:
        """The best time by that of the draft, which is there at any rate."""
        return min([1.0, *self.costs])

    @property
    def best_row(self) -> Digits | None:
        """The best point that is faster than the draft."""
        if not self.costs or min(self.costs) >= 1:
            return None
        return self.rows[int(np.argmin(self.costs))]

    @property
    def is_done(self) -> bool:
        """Whether nothing more is to be expected."""
        return self.is_exhausted or self.stopping.is_done

    def propose(self, count: int) -> list[Digits]:
        """What to measure next; nothing at the end of the space."""
        found = self.strategy.propose(count, self.score, self.seen)
        if not len(found):
            self.is_exhausted = True
        self.seen.update(key_of(row) for row in found)
        return list(found)

    def score(self, digits: Digits) -> NDArray[np.float64]:
        """How promising points are: by the learned model once there is something to learn from."""
        if self._model is None:
            return -np.log2(np.maximum(self.space.cycles(digits), 1.0))
        return self._model.predict(self.space.features(digits))

    def tell(self, row: Digits, outcome: Outcome) -> None:
        """What came of a point."""
        self._note(row, outcome.ratio)
        self.strategy.learn(row[None], np.array([outcome.ratio]))

    def learn(self) -> None:
        """Fit the model to all that is known."""
        if self._is_blind or len(self.costs) < FEWEST or not np.isfinite(self.costs).any():
            return
        settings = self.options.model
        samples = Samples(self.space.features(self._known()), np.array(self.costs))
        if self.options.transfers:
            shared = self.history.shared_model(self.task.workload, settings)
            own = Boosted(replace(settings, from_analytic=False))
            self._model = Joined(shared, own)
        else:
            self._model = Boosted(settings)
        self._model.fit([samples])

    def record_facts(self, row: Digits, outcome: Outcome) -> dict[str, object]:
        """What a record of a trial says beside its workload and points."""
        by = f"by {self.options.strategy}"
        return {
            "label": self.task.label,
            "outcome": outcome.status,
            "time_ns": outcome.time_ns,
            "reference_ns": outcome.reference_ns,
            "spread": outcome.spread,
            "detail": outcome.detail or by,
            "about": about_of(self.space, row),
        }

    def _known(self) -> Digits:
        return np.array(self.rows, np.int64).reshape(-1, len(self.space.lengths))

    def _seeds(self) -> Digits:
        """The draft, and the best of relatives."""
        own = self.space.drafted()
        rows = self.history.seeds(self.task.workload, self.space) if self.options.transfers else ()
        found = [*([] if own is None else [own]), *rows]
        if own is not None:
            self.seen.add(key_of(own))  # it is measured beside everything else
        return np.array(found, np.int64).reshape(-1, len(self.space.lengths))

    def _remember(self, records: list[Record]) -> None:
        """Trials of earlier searches: none of them is made again."""
        for record in records:
            try:
                points = record.points_for(self.task.kernel.program)
            except ValueError:
                continue
            row = self.space.digits_of(points)
            if row is not None:
                ratio = record.ratio if record.outcome == OK and record.ratio else np.inf
                self._note(row, ratio)
                self.strategy.learn(row[None], np.array([ratio]))
        self.learn()

    def _note(self, row: Digits, ratio: float) -> None:
        self.seen.add(key_of(row))
        self.rows.append(row)
        self.costs.append(float(ratio))
        self.failures += not np.isfinite(ratio)
        self.stopping.tell(ratio)
