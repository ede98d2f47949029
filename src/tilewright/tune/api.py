"""`tilewright.tune`: a model or a tensor program, a budget, and a report at the end."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tilewright import options as environment
from tilewright.calibration import with_machine_model
from tilewright.errors import Code, TuneError
from tilewright.model.compile_arguments import AUTO, require_accuracy, source_of, with_dims
from tilewright.model.compiler import Compiling
from tilewright.records import Database
from tilewright.runtime.cache import default_caches
from tilewright.runtime.pool import default_threads, most_threads, require_threads
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tune.budget import Budget
from tilewright.tune.cost_model.boosted import Objective, Settings
from tilewright.tune.kernel_tuner import SearchOptions
from tilewright.tune.measure.runners import runner_named
from tilewright.tune.model_tuner import ModelTuner
from tilewright.tune.task import task_of_func
from tilewright.tune.tuner import Search, TuneReport

if TYPE_CHECKING:
    from tilewright.model.sources import Source
    from tilewright.tune.events import OnEvent
    from tilewright.tune.measure.trial import Runner

__all__ = ["tune"]

U021 = Code("U021", "a search needs a budget that can be spent")
U022 = Code("U022", "code for `{target}` cannot be measured on this machine")
U023 = Code("U023", "there is no place to keep what a search finds")

DEFAULT_SECONDS: Final = 600.0
"""The budget of those who give none."""


def tune(
    model: Source | tir.Func,
    *,
    trials: int | None = None,
    budget_s: float | None = None,
    database: Database | str | os.PathLike[str] | None = None,
    runner: Runner | str | None = None,
    on_event: OnEvent | None = None,
    target: str | Target = "host",
    threads: int | None = None,
    accuracy: str = "default",
    joint: bool = True,
    strategy: str = "evolution",
    objective: Objective = "rank",
    seed: int = 0,
    dims: Mapping[str, int] | None = None,
    sizes: Mapping[str, int] | None = None,
    constants: Collection[str] = (),
    options: SearchOptions | None = None,
    against: Sequence[str] = (),
) -> TuneReport:
    """Search for faster kernels of a model (a path, bytes, a `ModelProto`) or a tensor program.

    The search ends after so many `trials`, after `budget_s` seconds (ten minutes if neither is
    given), or when nothing is left to try. What it finds is in the `database` at once (by default
    the one that `tw.compile` uses by itself); the same call goes on where an earlier one ended.
    Ctrl-C ends it early: everything is kept, and the report says so. With `joint`, layouts and
    algorithms are chosen anew by what was measured. `runner` builds and measures: "local", "ray",
    "ray:ADDRESS" or a `Runner`. `dims` fixes symbolic sizes of a model, `sizes` says for which ones
    it is measured while they stay symbolic. `constants` are parameters of a tensor program whose
    arrays are known ahead. `strategy`, `objective` and `options` are for comparing searches.
    """
    if trials is None and budget_s is None:
        budget_s = DEFAULT_SECONDS
    if (trials is not None and trials < 1) or (budget_s is not None and not budget_s > 0):
        facts = {"trials": str(trials), "seconds": str(budget_s)}
        raise TuneError(U021, facts, hint="give trials=200 or budget_s=600, for example")
    require_accuracy(accuracy)
    if threads is not None:
        require_threads(threads, most_threads())
    threads = threads or default_threads()
    machine = Target.named(target) if isinstance(target, str) else target
    missing = machine.missing_on(Target.host())
    if missing:
        hint = f"this machine lacks: {', '.join(sorted(missing))}"
        raise TuneError(U022, {"target": machine.cpu}, hint=hint)
    machine = with_machine_model(machine, None)
    how = options or SearchOptions(strategy, Settings(objective=objective, seed=seed))
    budget = Budget(trials, budget_s)
    with _opened(database) as records, _running(runner) as measuring:
        if isinstance(model, tir.Func):
            task = task_of_func(model, machine, constants, threads)
            about = threads, how, budget, seed, None, sizes, on_event
            search = Search(model.name, [task], records, measuring, *about)
            is_interrupted = _finished(search)
            return TuneReport(search.state, records.path, is_interrupted)
        given = source_of(model)
        given = with_dims(given, dims) if dims else given
        compiling = Compiling(machine, threads, accuracy, AUTO, default_caches(None))
        tuner = ModelTuner(
            name_of(given), given, compiling, records, measuring, how, budget, threads, seed
        )
        tuner = replace(tuner, sizes=sizes or {}, on_event=on_event, joint=joint, against=against)
        is_interrupted = tuner.run()
        return TuneReport(tuner.state, records.path, is_interrupted)


def _finished(search: Search) -> bool:
    """Run a search to its end; whether somebody ended it early."""
    search.tell("begin", stage="loops")
    try:
        search.run()
    except KeyboardInterrupt:
        return True
    finally:
        search.tell("end")
    return False


@contextmanager
def _opened(database: Database | str | os.PathLike[str] | None) -> Iterator[Database]:
    """The database: the one given, the one at a path, or the default one."""
    if isinstance(database, Database):
        yield database
        return
    path = environment.database() if database is None else Path(database)
    if path is None:
        raise TuneError(U023, hint="unset TILEWRIGHT_DATABASE, or give `database`")
    path.parent.mkdir(parents=True, exist_ok=True)
    with Database(path) as opened:
        yield opened


@contextmanager
def _running(runner: Runner | str | None) -> Iterator[Runner]:
    """The runner: one that is given stays open for others."""
    if runner is not None and not isinstance(runner, str):
        yield runner
        return
    made = runner_named(runner or "local")
    try:
        yield made
    finally:
        made.close()


def name_of(model: Source) -> str:
    """What a model is called: its file, or its graph."""
    if isinstance(model, str | os.PathLike):
        return Path(model).name
    graph = getattr(model, "graph", None)
    return str(getattr(graph, "name", "")) or "model"
