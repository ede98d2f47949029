"""A model is tuned in stages: layouts and loops of its kernels together, then loops alone.

Joint stage (`joint.py`): of each site with a choice of algorithm and layouts, the alternatives that
are predicted to be near the best are kernels of their own, searched for a short while each. What
they take replaces what was predicted, and the solver chooses for the whole graph again. Loop stage:
the kernels of that choice, with all that is left of the budget. At the end the tuned model runs
beside the drafted one, and what does not pay there is withdrawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from tilewright.errors import Code, TuneError
from tilewright.model.compile_arguments import schedules_of
from tilewright.model.compiler import Compiling, compile_model
from tilewright.pipeline import ModelPipeline
from tilewright.pipeline.model import PlannedModel
from tilewright.records import Database, Record
from tilewright.records.record import SLOWER
from tilewright.tuning.budget import Budget
from tilewright.tuning.events import Event, OnEvent, State
from tilewright.tuning.joint import joint_stage
from tilewright.tuning.kernel_tuner import SearchOptions
from tilewright.tuning.task import Task, tasks_of
from tilewright.tuning.tuner import Search
from tilewright.tuning.whole_model import Compared, compared, kernel_times, made_up_feeds

if TYPE_CHECKING:
    from tilewright.model.module import Module
    from tilewright.model.sources import Source
    from tilewright.tuning.measure.trial import Runner

__all__ = ["ModelTuner"]

U020 = Code("U020", "there is nothing to tune in `{model}`")

WORSE: Final = 1.01
"""Time of a kernel in the model by that of its draft, from which its points are withdrawn."""
CHECKS: Final = 4
"""Times that a tuned model is compiled again without what did not pay."""


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
    weight_bytes: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.state = State(self.name)

    def run(self) -> bool:
        """All stages; whether somebody ended it early."""
        self.drafted = self._compiled(tuned=False)
        self.feeds = made_up_feeds(self.drafted, self.sizes)
        before = compared(self.drafted, self.drafted, self.feeds)
        self.state = replace(self.state, before_ms=before.drafted_ms, peers_ms=self._peers())
        search = self.search(self._tasks(tuned=False), self.budget)
        search.tell("begin", stage="draft")
        is_interrupted = False
        try:
            if self.joint:
                joint_stage(self, search)
                search = self.search(self._tasks(tuned=True), self.budget)
            search.tell("stage", stage="loops")
            search.run()
        except KeyboardInterrupt:
            is_interrupted = True
        search.flush()
        found = self._settled(search)
        search.tell("end", stage="", before_ms=found.drafted_ms, now_ms=found.tuned_ms)
        return is_interrupted

    def search(self, tasks: Sequence[Task], budget: Budget, *, is_alone: bool = False) -> Search:
        """A search over some kernels, with the times that they have inside of the model.

        `is_alone`: times of kernels alone are wanted, to be compared with each other.
        """
        times = {} if is_alone else kernel_times(self.drafted, self.feeds)
        first = [task.drafted for task in tasks]
        known = {v.workload: times[v.symbol] for v in first if v.symbol in times}
        about = self.threads, self.options, budget, self.seed, known, self.sizes, self._heard
        made = Search(self.name, tasks, self.database, self.runner, *about, self.weight_bytes)
        made.state = replace(self.state, tasks=())
        return made

    def _heard(self, event: Event) -> None:
        self.state = event.state
        if self.on_event is not None:
            self.on_event(event)

    def _tasks(self, *, tuned: bool) -> list[Task]:
        """The kernels of the model, with the layouts that its records lead to."""
        target, threads = self.how.target, self.threads
        how = replace(self.how, schedules=schedules_of(self.database, target, threads))
        made = ModelPipeline(how if tuned else self.how).run(self.model, until="plan").value
        if not isinstance(made, PlannedModel):
            hint = "`tilewright show` says which parts run on the reference implementation"
            raise TuneError(U020, {"model": self.name}, hint=hint)
        self.weight_bytes = sum(a.nbytes for a in made.planned.graph.constants.values())
        tasks = [task for task in tasks_of(made.planned, target) if task.has_choice]
        if not tasks:
            raise TuneError(U020, {"model": self.name}, hint="it has no kernel with a choice")
        return tasks

    def _compiled(self, *, tuned: bool) -> Module:
        how, database = self.how, self.database if tuned else False
        about = self.model, how.target, self.threads, how.accuracy, database
        return compile_model(*about, layouts=how.layouts)

    def _peers(self) -> dict[str, float]:
        """Milliseconds of other engines, each in a process of its own."""
        if not self.against:
            return {}
        from tilewright.contest.turns import compete

        path = self.how.sources.name if not isinstance(self.model, str) else self.model
        models = dict.fromkeys(self.against, path)
        found = compete(models, self.feeds, self.threads, 2.0, lambda _: None)  # type: ignore[arg-type]
        return {o.engine: o.median_s * 1e3 for o in found if o.samples}

    def _settled(self, search: Search) -> Compared:
        """Compare the whole model; withdraw what does not pay inside of it."""
        search.tell("stage", stage="whole model")
        for _ in range(CHECKS):
            tuned = self._compiled(tuned=True)
            found = compared(self.drafted, tuned, self.feeds)
            worse = self._withdrawn(search, tuned)
            if not worse:
                break
            self.database.add(worse)
        search.tell("model", before_ms=found.drafted_ms, now_ms=found.tuned_ms)
        return found

    def _withdrawn(self, search: Search, tuned: Module) -> list[Record]:
        """Records that say which winners are slower inside of the model."""
        before = kernel_times(self.drafted, self.feeds)
        after = kernel_times(tuned, self.feeds)
        found = []
        for each in search.tuned:
            kernel, row = each.task.drafted, each.tuner.best_row
            if row is None or kernel.symbol not in before or kernel.symbol not in after:
                continue
            if after[kernel.symbol] > before[kernel.symbol] * WORSE:
                facts = {"label": each.task.label, "outcome": SLOWER}
                workload = kernel.kernel.workload(kernel.target)
                points = kernel.space.points(row)
                found.append(Record.of(workload, self.threads, points, **facts))
        return found
