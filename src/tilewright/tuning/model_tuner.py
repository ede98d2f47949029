"""A model is tuned in stages: layouts and loops of its kernels together, then loops alone.

Joint stage (`joint_stage.py`): alternatives of each site with a choice of algorithm and layouts are
searched together, in rounds. What they take, and conversions between them, replaces what was
predicted, and the solver chooses for the whole graph again; if the model is faster for it, that
stays. Loop stage: the kernels of that choice, with all that is left of the budget. At the end the
tuned model runs beside the drafted one, and what does not pay there is withdrawn.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tilewright.errors import Code, TuneError
from tilewright.graph.structure import graph_key
from tilewright.model.compiler import Compiling
from tilewright.model.module import Module
from tilewright.pipeline import ModelPipeline
from tilewright.pipeline.model import PlannedModel
from tilewright.records import Database, Record, Records
from tilewright.records.kinds import MOST_TIME, model_record
from tilewright.records.record import target_key
from tilewright.schedule.source import DRAFT, ScheduleSource
from tilewright.tuning.budget import Budget
from tilewright.tuning.events import Event, OnEvent, State
from tilewright.tuning.history import History
from tilewright.tuning.joint_rounds import JointRounds
from tilewright.tuning.joint_stage import JointStage
from tilewright.tuning.kernel_tuner import SearchOptions
from tilewright.tuning.task import Task, tasks_of
from tilewright.tuning.tuner import Search
from tilewright.tuning.verification import Verification
from tilewright.tuning.whole_model import (
    Compared,
    compared,
    kernel_times,
    made_up_feeds,
    peers_ms,
)

if TYPE_CHECKING:
    from tilewright.model.sources import Source
    from tilewright.tuning.measure.trial import Runner

__all__ = ["ModelTuner"]

U020 = Code("U020", "there is nothing to tune in `{model}`")

VERIFYING: Final = 4.0
"""Comparing candidates inside of the model takes about so many times as long as drafting it."""
LEAST_VERIFYING: Final = 0.1
"""Of the budget's seconds: what is believed has to be seen."""
JOINT_SHARE: Final = 0.35
"""Of the budget, for the joint stage."""
LEAST_JOINT: Final = 5.0
"""Seconds below which the joint stage would end before anything is measured."""


@dataclass
class ModelTuner:
    """A model, how it is compiled, and where its records go.

    `state` is that of the last stage. Modules and arrays are there from the first one on.
    """

    name: str
    model: Source
    how: Compiling
    database: Database
    runner: Runner
    options: SearchOptions
    budget: Budget
    threads: int
    seed: int = 0
    sizes: Mapping[str, int] = field(default_factory=dict)
    on_event: OnEvent | None = None
    joint: bool = True
    against: Sequence[str] = ()
    state: State = field(init=False)
    drafted: Module = field(init=False)
    feeds: dict[str, Any] = field(init=False)
    _verifying_s: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self.state = State(self.name)

    def run(self) -> bool:
        """All stages; whether somebody ended it early."""
        begin = time.perf_counter()
        planned = self._planned(DRAFT)
        self.drafted = self._compiled(DRAFT)
        drafting_s = time.perf_counter() - begin
        least_s = LEAST_VERIFYING * (self.budget.seconds or 0.0)  # kernels may come from the cache
        self._verifying_s = self.budget.reserve(max(VERIFYING * drafting_s, least_s))
        self.feeds = made_up_feeds(self.drafted, self.sizes)
        before = compared(self.drafted, self.drafted, self.feeds)
        self.state = replace(self.state, before_ms=before.drafted_ms, peers_ms=self._peers())
        search = self._search(self._tasks(planned), planned, self.budget, self.drafted)
        search.tell("begin", stage="draft")
        is_interrupted = False
        try:
            part = self._part()
            if self.joint and (part.seconds is None or part.seconds >= LEAST_JOINT):
                search = self._joint(search, planned, part)
            search.tell("stage", stage="loops")
            search.run()
        except KeyboardInterrupt:
            is_interrupted = True
        found = self._settled(search, planned)
        search.tell("end", stage="", before_ms=found.drafted_ms, now_ms=found.tuned_ms)
        return is_interrupted

    def _joint(self, search: Search, planned: PlannedModel, budget: Budget) -> Search:
        """Layouts by measured costs, if the model is faster for it; the search for loops then."""
        rng = np.random.default_rng(self.seed)
        rounds = JointRounds(planned.chosen, self.threads, rng, self._records().measured)

        def searched(tasks: Sequence[Task], part: Budget, options: SearchOptions) -> Search:
            made = self._search(tasks, planned, part, options=options)
            made.whole = self.budget
            return made

        if not JointStage(rounds, searched, budget, self.options).run():
            return search
        found = self._chosen_anew(rounds.records)
        if found is None:
            return self._search(self._tasks(planned), planned, self.budget, self.drafted)
        anew = self._planned(found)
        return self._search(self._tasks(anew), anew, self.budget, self._compiled(found))

    def _chosen_anew(self, records: Sequence[Record]) -> Records | None:
        """What is known of sites now, if a choice by it is faster than one without."""
        known = self._records()
        pair = self._compiled(known), self._compiled(known.with_measured(records))
        if compared(*pair, self.feeds).gain <= 1:
            return None
        self.database.add(records)
        return self._records()

    def _part(self) -> Budget:
        left = self.budget.left
        trials = None if left.trials is None else max(1, int(left.trials * JOINT_SHARE))
        return Budget(trials, None if left.seconds is None else left.seconds * JOINT_SHARE)

    def _search(
        self,
        tasks: Sequence[Task],
        planned: PlannedModel,
        budget: Budget,
        module: Module | None = None,
        options: SearchOptions | None = None,
    ) -> Search:
        """A search over some kernels; with the times that they have inside of a module, if any."""
        known = {} if module is None else self._times(tasks, module)
        weights = sum(a.nbytes for a in planned.planned.graph.constants.values())
        how = options or self.options
        about = self.threads, how, budget, self.seed, known, self.sizes, self._heard
        made = Search(self.name, tasks, self.database, self.runner, *about, weights, self._history)
        made.state = replace(self.state, tasks=())
        return made

    def _times(self, tasks: Iterable[Task], module: Module) -> dict[str, float]:
        """Nanoseconds of the drafted kernels: where a record was used, without its gain."""
        times = kernel_times([module], self.feeds)
        winners = {} if module is self.drafted else self._records().winners
        found = {}
        for kernel in (task.drafted for task in tasks):
            if kernel.symbol in times:
                used = winners.get(kernel.workload)
                gain = 1.0 if used is None else used.gain
                found[kernel.workload] = times[kernel.symbol][0] * gain
        return found

    @cached_property
    def _history(self) -> History:
        """All trials: those that the database has now, and those of all stages."""
        return History.of(self.database, target_key(self.how.target), self.threads)

    def _heard(self, event: Event) -> None:
        self.state = event.state
        if self.on_event is not None:
            self.on_event(event)

    def _records(self) -> Records:
        """What the database knows, also if an earlier search found the model slower with it."""
        return Records(self.database, self.how.target, self.threads).unjudged()

    def _planned(self, source: ScheduleSource) -> PlannedModel:
        """The kernels of the model, with the layouts that a source leads to."""
        made = (
            ModelPipeline(replace(self.how, schedules=source)).run(self.model, until="plan").value
        )
        if not isinstance(made, PlannedModel):
            hint = "`tilewright show` says which parts run on the reference implementation"
            raise TuneError(U020, {"model": self.name}, hint=hint)
        return made

    def _tasks(self, made: PlannedModel) -> list[Task]:
        tasks = [task for task in tasks_of(made.planned, self.how.target) if task.has_choice]
        if not tasks:
            raise TuneError(U020, {"model": self.name}, hint="it has no kernel with a choice")
        return tasks

    def _compiled(self, source: ScheduleSource) -> Module:
        """With kernels from the cache; models in the making do not belong there."""
        how = replace(self.how, schedules=source)
        return how.compiled(self.model, lambda _: None).module()

    def _peers(self) -> dict[str, float]:
        """Milliseconds of other engines; a warning says which did not run."""
        return peers_ms(self.model, self.against, self.feeds, self.threads)

    def _settled(self, search: Search, planned: PlannedModel) -> Compared:
        """Compare the whole model; withdraw what does not pay inside of it."""
        search.tell("stage", stage="whole model")
        kernels = [each.task.drafted for each in search.tuned]
        Verification(self.database, self.how.target, self.threads, self._compiled, self.feeds).run(
            kernels, self._verifying_s
        )
        found = compared(self.drafted, self._compiled(self._records()), self.feeds)
        verdict = model_record(
            graph_key(planned.chosen.graph),
            self.how.target,
            self.threads,
            label=self.name,
            time_ns=found.tuned_ms * 1e6,
            reference_ns=found.drafted_ms * 1e6,
        )
        self.database.add(verdict)
        kept = found if found.gain * MOST_TIME >= 1 else replace(found, tuned_ms=found.drafted_ms)
        search.tell("model", before_ms=kept.drafted_ms, now_ms=kept.tuned_ms)
        return kept
