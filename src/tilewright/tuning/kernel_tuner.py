"""The search for one task: what was tried, a model of it, and what to try next.

The analytic model orders points until there are measurements. From then on a learned model does,
of this task and of all others in the history (`cost_model/joined.py`); it continues from the
analytic prediction, so that few samples do no harm. Costs are times by that of the drafted kernel,
which costs one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tilewright.records.record import OK
from tilewright.records.withdrawn import NOTHING_WITHDRAWN, withdrawn_in
from tilewright.tuning.cost_model.boosted import Boosted, Settings, make_model
from tilewright.tuning.cost_model.joined import Joined
from tilewright.tuning.cost_model.model import Analytic, Samples
from tilewright.tuning.features.points import SHARED
from tilewright.tuning.history import History, Told
from tilewright.tuning.joint_space import JointSpace
from tilewright.tuning.measure.trial import Outcome
from tilewright.tuning.search import BASELINES, Batching, Digits, key_of, strategy_named
from tilewright.tuning.stopping import Patience, Stopping
from tilewright.tuning.task import Task

__all__ = ["KernelTuner", "SearchOptions"]

FEWEST: Final = 8
"""Samples below which nothing is learnt of a task: the analytic model, or that of others, is asked.
"""
SEEDS: Final = 8
"""Drafts that are measured first, whatever is thought of others: of many variants not all are worth
a trial."""
OF_RELATIVES: Final = 4
"""Best points of relatives that are measured first, too, where there are many variants that each
has some."""
MEMBERS: Final = 128
"""Such points that a population begins with."""


@dataclass(frozen=True)
class SearchOptions:
    """How a search goes about: strategy, model and batches.

    Without `diverse`, a batch is what scores highest; `epsilon` is the share of it that is drawn at
    random. Without `transfers`, nothing is learnt from other tasks. Without `starts_at_draft`,
    nothing is known of the draft but its time: for comparing searches.
    """

    strategy: str = "evolution"
    model: Settings = field(default_factory=Settings)
    batch: int = 16
    diverse: bool = True
    epsilon: float = 0.05
    transfers: bool = True
    starts_at_draft: bool = True
    patience: Patience | None = field(default_factory=Patience)


class KernelTuner:
    """The state of the search for one task.

    `ratios` are times of `rows` by those of their own variant's draft, in the order of the trials;
    `references` are times of the drafts, by which variants are compared.
    """

    def __init__(
        self, task: Task, options: SearchOptions, history: History, rng: np.random.Generator
    ) -> None:
        self.task, self.options, self.history = task, options, history
        self.space = task.space
        self.rows: list[Digits] = []
        self.ratios: list[float] = []
        self.references: list[list[float]] = [[] for _ in task.variants]
        self.lessons: list[tuple[Digits, int, float]] = []
        """Rows, variants and ratios of what was withdrawn: alone they took so long."""
        self.seen: set[bytes] = set()
        self.failures = 0
        self.is_exhausted = not task.has_choice
        self.stopping = Stopping(options.patience, start=1.0)
        self._model: Joined | Boosted | None = None
        self._is_blind = options.strategy in BASELINES or isinstance(make_model(), Analytic)
        if self.is_exhausted:
            return
        diversity = Batching().diversity if options.diverse else 0.0
        batching = Batching(diversity=diversity, epsilon=options.epsilon)
        self._begin_with_others()
        drafts, members = self._ranked(self._drafts(), SEEDS), self._of_relatives()
        first = members if len(task.variants) == 1 else members[:OF_RELATIVES]
        about = np.concatenate([drafts, first]), batching, members
        self.strategy = strategy_named(options.strategy, self.space, rng, *about)
        self._remember()

    @property
    def costs(self) -> list[float]:
        """What was measured, by the first variant's draft as it is known now."""
        numbers = [self.space.part(row)[0] for row in self.rows]
        return [self._cost(k, ratio) for k, ratio in zip(numbers, self.ratios, strict=True)]

    @property
    def best(self) -> float:
        """The least cost: that of the draft, if nothing is better."""
        return min([1.0, *self.costs])

    @property
    def best_row(self) -> Digits | None:
        """The best point that is faster than the draft."""
        costs = self.costs
        return self.rows[int(np.argmin(costs))] if costs and min(costs) < 1 else None

    @property
    def is_done(self) -> bool:
        """Whether nothing more is to be expected."""
        return self.is_exhausted or self.stopping.is_done

    def go_on(self) -> bool:
        """Have patience once more; whether there is anything left to try."""
        self.stopping = Stopping(self.options.patience, start=self.best)
        return not self.is_exhausted

    def best_ratio(self, row: Digits) -> float:
        """The least time of a row's variant so far, by its draft."""
        variant, _ = self.space.part(row)
        pairs = zip(self.rows, self.ratios, strict=True)
        return min([1.0, *(ratio for own, ratio in pairs if self._is_of(own, variant))])

    @property
    def reference_ns(self) -> float:
        """The time of the first variant's draft; 0 as long as it is not known."""
        known = self.references[0]
        return float(np.median(known)) if known else 0.0

    def cost_of(self, variant: int) -> float | None:
        """The least cost of one variant; None if nothing of it was measured."""
        own = [c for r, c in zip(self.rows, self.costs, strict=True) if self._is_of(r, variant)]
        found = min(own, default=np.inf)
        return float(found) if np.isfinite(found) else None

    def best_of(self, variant: int) -> float | None:
        """The same of its kernel alone, without what it costs others and by rounding."""
        found = self.cost_of(variant)
        return None if found is None else (found - self._around(variant)) / self._margin(variant)

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
        variant, _ = self.space.part(row)
        if outcome.is_ok:
            self.references[variant].append(outcome.reference_ns)
        self._note(row, variant, outcome.ratio)

    def told(self, row: Digits, ratio: float) -> Told:
        """What others learn from a point: its place among those of all variants, as predicted."""
        variant, _ = self.space.part(row)
        features = self.task.space.features(row[None]).only(SHARED).rows[0]
        cost = self._cost(variant, ratio)
        return Told(self.task.drafted.workload, features.tolist(), cost)

    def tell_draft(self, outcome: Outcome) -> None:
        """The first variant's draft once more: all others are compared with it."""
        if outcome.is_ok:
            self.references[0].append(min(outcome.time_ns, outcome.reference_ns))

    def learn(self) -> None:
        """Fit the model to all that is known."""
        self._correct()
        more = [self._cost(number, ratio) for _, number, ratio in self.lessons]
        costs = np.array([*self.costs, *more])
        if self._is_blind or len(costs) < FEWEST or not np.isfinite(costs).any():
            return
        settings = self.options.model
        samples = Samples(self.space.features(self._known()), costs)
        if self.options.transfers:
            others = self.history.shared_model([v.workload for v in self.task.variants], settings)
            self._model = Joined(others, Boosted(settings))
        else:
            self._model = Boosted(settings)
        self._model.fit([samples])

    def _cost(self, variant: int, ratio: float) -> float:
        """The cost of a time by that of its own variant's draft, by the first variant's.

        What a variant costs others is part of it, and so is what it loses by rounding.
        """
        first, own = self.references[0], self.references[variant]
        if variant == 0 or not np.isfinite(ratio):
            return ratio
        if first and own:
            ratio *= float(np.median(own) / np.median(first))
        else:
            predicted = [v.predicted_ns for v in self.task.variants]
            ratio *= predicted[variant] / predicted[0]
        return max(1e-3, ratio * self._margin(variant) + self._around(variant))

    def _margin(self, variant: int) -> float:
        return self.task.variants[variant].margin / self.task.drafted.margin

    def _around(self, variant: int) -> float:
        """What a variant costs others, by the time of the first one's draft."""
        first, own = self.task.drafted, self.task.variants[variant]
        return own.around_ns / (self.reference_ns or first.predicted_ns)

    def _is_of(self, row: Digits, variant: int) -> bool:
        return self.space.part(row)[0] == variant

    def _known(self) -> Digits:
        rows = [*self.rows, *(row for row, *_ in self.lessons)]
        return np.array(rows, np.int64).reshape(-1, len(self.space.lengths))

    def _drafts(self) -> Digits:
        """Drafts of the variants.

        That of the only variant is measured beside everything else, and no point to propose.
        """
        drafts = self.space.drafts()
        if len(self.task.variants) == 1:
            self.seen.update(key_of(row) for row in drafts)
        return drafts if self.options.starts_at_draft else drafts[:0]

    def _of_relatives(self) -> Digits:
        """The best points of relatives, the most promising first."""
        found = [np.zeros((0, len(self.space.lengths)), np.int64)]
        for number, variant in enumerate(self.task.variants if self.options.transfers else ()):
            rows = self.history.seeds(variant.workload, variant.space)
            found += [self.space.row_of(number, row)[None] for row in rows]
        return self._ranked(np.concatenate(found), MEMBERS)

    def _ranked(self, rows: Digits, most: int) -> Digits:
        """The most promising of some points."""
        return rows[np.argsort(-self.score(rows), kind="stable")[:most]] if len(rows) else rows

    def _correct(self) -> None:
        """Let the space go by what drafts of variants take, as soon as it is known.

        Where the first variant's draft and another one have been measured, no model has to guess
        how the two compare.
        """
        space = self.task.space
        if self._is_blind or not isinstance(space, JointSpace):
            return
        times = []
        for number, variant in enumerate(self.task.variants):
            time_ns, own = variant.predicted_ns, self.references[number]
            if own and self.reference_ns:
                measured = float(np.median(own)) / self.reference_ns
                time_ns = self.task.drafted.predicted_ns * measured
            times.append(time_ns * self._margin(number))
        self.space = space.with_drafts([t * self.task.target.machine.ghz for t in times])

    def _begin_with_others(self) -> None:
        """A model of what other tasks have taught, until there are samples of this one."""
        if self._is_blind or not self.options.transfers:
            return
        settings = self.options.model
        others = self.history.shared_model([v.workload for v in self.task.variants], settings)
        if others.booster is not None:
            self._model = Joined(others, Boosted(settings))

    def _remember(self) -> None:
        """Trials of earlier searches: none of them is made again.

        Points that were withdrawn are known, and neither results of this search nor failures.
        """
        for number, variant in enumerate(self.task.variants):
            records = self.history.trials(variant.workload)
            without = withdrawn_in(records).get(variant.workload, NOTHING_WITHDRAWN)
            for record in records:
                if not record.points:
                    continue
                try:
                    points = record.points_for(variant.kernel.program)
                except ValueError:
                    continue
                own = variant.space.digits_of(points)
                if own is None:
                    continue
                row = self.space.row_of(number, own)
                is_ok = record.outcome == OK and record.ratio is not None
                ratio = record.ratio if is_ok and record.ratio is not None else np.inf
                if record in without:
                    self.seen.add(key_of(row))
                    self.lessons += [(row, number, ratio)] if is_ok else []
                    continue
                if is_ok:
                    self.references[number].append(record.reference_ns)
                self._note(row, number, ratio)
        tried = {self.space.part(row)[0] for row in self.rows}
        if len(tried) < len(self.task.variants):  # what is new deserves patience of its own
            self.stopping = Stopping(self.options.patience, start=self.best)
        self.learn()

    def _note(self, row: Digits, variant: int, ratio: float) -> None:
        self.seen.add(key_of(row))
        self.rows.append(row)
        self.ratios.append(float(ratio))
        self.failures += not np.isfinite(ratio)
        cost = self._cost(variant, ratio)
        self.stopping.tell(cost)
        self.strategy.learn(row[None], np.array([cost]))
