"""`tune`: kernels of a model take turns by what they may still gain, until the budget is spent.

    plan the model → tasks → ( scheduler → search → runner → database ) … → the whole model

Everything that is learnt lies in the database at once: another process that compiles with it has
the best so far, and a search that is stopped, or killed, goes on where it was.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any, Final

import numpy as np

from tilewright.records import Database, Record
from tilewright.records.record import target_key
from tilewright.tuning.budget import Budget
from tilewright.tuning.events import Event, Kind, OnEvent, State, TaskState
from tilewright.tuning.history import History, about_of
from tilewright.tuning.kernel_tuner import KernelTuner, SearchOptions
from tilewright.tuning.measure.caches import cold_bytes_of
from tilewright.tuning.measure.trial import Job, Outcome, Runner, Trial
from tilewright.tuning.scheduler import Scheduler, TaskWeight
from tilewright.tuning.search.strategy import Digits, key_of
from tilewright.tuning.task import Task, Variant

__all__ = ["Search", "TuneReport", "Tuned"]

TOO_GOOD: Final = 0.95
"""By the best time so far: what takes less is measured again."""
GO_ON: Final = 0.005
"""With time left, all tasks go on after the end of their patience as long as this part of a run was
gained since they did so last."""
FLUSH_SECONDS: Final = 1.0
"""Records are written at least this often."""


@dataclass(frozen=True)
class TuneReport:
    """How a search ended; `database` is where everything is that was found."""

    state: State
    database: Path
    is_interrupted: bool = False

    @property
    def gain(self) -> float:
        """How many times as fast the whole is as its draft."""
        state = self.state
        if state.before_ms and state.now_ms:
            return state.before_ms / state.now_ms
        before = sum(t.runs * t.drafted_ns for t in state.tasks)
        return before / max(1e-9, sum(t.runs * t.best_ns for t in state.tasks))


@dataclass
class Tuned:
    """One task in a search: its tuner, a job for each variant, and the time of its draft.

    The time is the one inside of the model where that is known, else the one of the kernel alone.
    """

    task: Task
    tuner: KernelTuner
    jobs: tuple[Job, ...]
    drafted_ns: float = 0.0

    @cached_property
    def drafts(self) -> frozenset[bytes]:
        """The rows of the drafts of its variants."""
        return frozenset(key_of(row) for row in self.task.space.drafts())

    @property
    def known_ns(self) -> float:
        """The time of the draft, as predicted until it is measured."""
        return self.drafted_ns or self.tuner.reference_ns or self.task.drafted.predicted_ns

    @property
    def best_ns(self) -> float:
        """The least time so far."""
        return self.known_ns * self.tuner.best

    def state(self, total: float) -> TaskState:
        """What is shown of it; `total` is the time of all tasks as drafted."""
        task, tuner = self.task, self.tuner
        share = task.runs * self.known_ns / total if total else 0.0
        times = share, self.known_ns, self.best_ns
        tried = len(tuner.ratios), tuner.failures, task.size if task.has_choice else 0
        return TaskState(task.label, task.recipe, task.runs, *times, *tried, tuner.is_done)


class Search:
    """Tasks that share a budget, a runner and a database."""

    def __init__(
        self,
        name: str,
        tasks: Sequence[Task],
        database: Database,
        runner: Runner,
        threads: int,
        options: SearchOptions,
        budget: Budget,
        seed: int = 0,
        drafted_ns: Mapping[str, float] | None = None,
        sizes: Mapping[str, int] | None = None,
        on_event: OnEvent | None = None,
        weight_bytes: int = 0,
        history: History | None = None,
    ) -> None:
        self.name, self.database, self.runner, self.threads = name, database, runner, threads
        self.options, self.budget = options, budget
        self.whole = budget  # of which this search may have a part
        self.on_event = on_event or (lambda _: None)
        target = tasks[0].target
        self.history = history or History.of(database, target_key(target), threads)
        rng = np.random.default_rng(seed)
        known = drafted_ns or {}
        self.tuned = [
            Tuned(
                task,
                KernelTuner(task, options, self.history, rng),
                tuple(self._job(variant, weight_bytes, sizes or {}) for variant in task.variants),
                known.get(task.drafted.workload, 0.0),
            )
            for task in tasks
        ]
        self.scheduler = Scheduler([self._weight(t) for t in self.tuned], rng)
        for number, tuned in enumerate(self.tuned):
            if tuned.tuner.is_done:
                self.scheduler.stop(number)
        self._resumed_at_ns = inf
        self.state = State(name)
        self._doubts: deque[Trial] = deque()
        self._doubted: dict[tuple[int, bytes], tuple[Trial, Outcome]] = {}
        self._pending: list[Record] = []
        self._flushed = time.monotonic()

    def run(self) -> None:
        """Search until the budget is spent or nothing is left to try."""
        try:
            for trial, outcome in self.runner.run(self._trials()):
                self._answered(trial, outcome)
                if self.budget.is_spent:
                    break
            for trial, outcome in self.runner.run(self._doubtful()):
                self._answered(trial, outcome)
        finally:
            for trial, outcome in list(self._doubted.values()):  # no other look was had
                self._believe(trial, outcome)
            self._doubted.clear()
            self.flush()

    def flush(self) -> None:
        """Write what is not in the database yet."""
        if self._pending:
            self.database.add(self._pending)
            self._pending = []
        self._flushed = time.monotonic()

    def tell(
        self,
        kind: Kind,
        *,
        task: int | None = None,
        outcome: str = "",
        detail: str = "",
        **facts: Any,
    ) -> None:
        """Say what has happened, with the state behind it; `facts` are fields of the state."""
        total = sum(t.task.runs * t.known_ns for t in self.tuned)
        spent, left = self.whole.spent, self.whole.left
        self.state = replace(
            self.state,
            tasks=tuple(t.state(total) for t in self.tuned),
            trials=spent.trials or 0,
            failures=sum(t.tuner.failures for t in self.tuned),
            seconds=spent.seconds or 0.0,
            trials_left=left.trials,
            seconds_left=left.seconds,
            predicted_ms=self._predicted_ms(),
            **facts,
        )
        self.on_event(Event(kind, self.state, task, outcome, detail))

    def _predicted_ms(self) -> float | None:
        """The model's latency by the best times of its kernels."""
        before = self.state.before_ms
        if before is None:
            return None
        gained = sum(t.task.runs * (t.known_ns - t.best_ns) for t in self.tuned)
        return before - gained / 1e6

    def _trials(self) -> Iterator[Trial]:
        """Batches of one task after another, as long as the budget lasts."""
        for number, tuned in enumerate(self.tuned):
            if not tuned.task.has_choice:  # what it takes is of interest all the same
                yield Trial(tuned.jobs[0], {}, (number, None))
        asked = self.budget.spent.trials or 0
        most = self.budget.trials
        while not self.budget.is_spent and (most is None or asked < most):
            chosen = self.scheduler.next()
            if chosen is None:
                if not self._go_on():
                    return
                continue
            tuned = self.tuned[chosen]
            tuned.tuner.learn()
            count = self.options.batch
            rows = tuned.tuner.propose(count if most is None else min(count, most - asked))
            if not rows:
                self.scheduler.stop(chosen)
                continue
            if len(tuned.jobs) > 1:
                # Variants are compared by their drafts: the first one's is in every batch.
                yield Trial(tuned.jobs[0], {}, (chosen, None))
            for row in rows:
                yield from self._doubtful()
                asked += 1
                number, own = tuned.task.space.part(row)
                space = tuned.task.variants[number].space
                points = {} if key_of(row) in tuned.drafts else space.points(own)
                yield Trial(tuned.jobs[number], points, (chosen, row))

    def _go_on(self) -> bool:
        """Whether tasks that have been tried enough are tried once more, since there is time.

        They are as long as all of them together have gained by it the last time.
        """
        now, before = self.scheduler.total_ns, self._resumed_at_ns
        has_time = self.budget.seconds is not None and self.options.patience is not None
        if not has_time or now > before * (1 - GO_ON):
            return False
        self._resumed_at_ns = now
        resumed = [number for number, own in enumerate(self.tuned) if own.tuner.go_on()]
        for number in resumed:
            self.scheduler.resume(number)
        return bool(resumed)

    def _doubtful(self) -> Iterator[Trial]:
        """Trials whose outcome is too good to be believed without another look."""
        while self._doubts:
            yield self._doubts.popleft()

    def _confirmed(self, trial: Trial, outcome: Outcome, tuned: Tuned) -> Outcome | None:
        """The outcome that is believed; None if the trial is to be measured once more.

        A neighbour that meets the reference alone makes any candidate look fast. So a gain of more
        than a few percent at once is measured again, and the worse of both counts.
        """
        assert isinstance(trial.tag, tuple)
        number, row = trial.tag
        first = self._doubted.pop((number, key_of(row)), None)
        if first is not None:
            return max(first[1], outcome, key=lambda own: own.ratio)
        if outcome.ratio >= TOO_GOOD * tuned.tuner.best_ratio(row):
            return outcome
        self._doubted[number, key_of(row)] = trial, outcome
        self._doubts.append(trial)
        return None

    def _answered(self, trial: Trial, outcome: Outcome) -> None:
        number, row = _tag(trial)
        tuned = self.tuned[number]
        if row is None:
            tuned.tuner.tell_draft(outcome)
            return
        believed = self._confirmed(trial, outcome, tuned)
        if believed is not None:
            self._believe(trial, believed)

    def _believe(self, trial: Trial, outcome: Outcome) -> None:
        number, row = _tag(trial)
        tuned = self.tuned[number]
        assert row is not None
        tuned.tuner.tell(row, outcome)
        variant, _ = tuned.task.space.part(row)
        if outcome.is_ok and not tuned.drafted_ns and variant == 0:
            tuned.drafted_ns = outcome.reference_ns
        for budget in {id(b): b for b in (self.budget, self.whole)}.values():
            budget.spend(1)
        self._record(tuned, row, outcome)
        seconds = outcome.build_s + outcome.measure_s
        self.scheduler.tell(number, tuned.best_ns, 1, seconds)
        if tuned.tuner.is_done:
            self.scheduler.stop(number)
        self.tell("trial", task=number, outcome=outcome.status, detail=outcome.detail)

    def _record(self, tuned: Tuned, row: Digits, outcome: Outcome) -> None:
        number, own = tuned.task.space.part(row)
        variant = tuned.task.variants[number]
        record = Record.of(
            variant.kernel.workload(variant.target),
            self.threads,
            variant.space.points(own),
            label=f"{tuned.task.label} {variant.name}".strip(),
            outcome=outcome.status,
            time_ns=outcome.time_ns,
            reference_ns=outcome.reference_ns,
            spread=outcome.spread,
            detail=outcome.detail or f"by {self.options.strategy}",
            about=about_of(variant.space, tuned.tuner.told(row, outcome.ratio)),
        )
        self.history.add(record)
        self._pending.append(record)
        if time.monotonic() - self._flushed > FLUSH_SECONDS:
            self.flush()

    def _job(self, variant: Variant, weights: int, sizes: Mapping[str, int]) -> Job:
        cold = cold_bytes_of(variant.kernel, weights, variant.target, sizes)
        return Job(variant.kernel, variant.target, self.threads, sizes, cold)

    def _weight(self, tuned: Tuned) -> TaskWeight:
        task = tuned.task
        floor = task.floor_ns(self.threads)
        return TaskWeight(task.runs, tuned.known_ns, floor, task.recipe)


def _tag(trial: Trial) -> tuple[int, Digits | None]:
    assert isinstance(trial.tag, tuple)
    number, row = trial.tag
    return number, row
