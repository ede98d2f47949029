"""`tilewright.tune`: a model or a tensor program, a budget, and a report at the end."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tilewright import options as environment
from tilewright.errors import Code, TuneError
from tilewright.target import Target
from tilewright.tensor import ir as tir

if TYPE_CHECKING:
    from tilewright.model.sources import Source
    from tilewright.records import Database
    from tilewright.tuning.budget import Budget
    from tilewright.tuning.cost_model.boosted import Objective
    from tilewright.tuning.events import OnEvent
    from tilewright.tuning.kernel_tuner import SearchOptions
    from tilewright.tuning.measure.trial import Runner
    from tilewright.tuning.tuner import Search, TuneReport

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
    from tilewright.calibration import with_machine_model
    from tilewright.model.compile_arguments import require_accuracy
    from tilewright.runtime.pool import default_threads, most_threads, require_threads
    from tilewright.tuning.budget import Budget
    from tilewright.tuning.cost_model.boosted import Settings
    from tilewright.tuning.kernel_tuner import SearchOptions

    if trials is None and budget_s is None:
        budget_s = DEFAULT_SECONDS
    if (trials is not None and trials < 1) or (budget_s is not None and not budget_s > 0):
        facts = {"trials": str(trials), "seconds": str(budget_s)}
        raise TuneError(U021, facts, hint="give trials=200 or budget_s=600, for example")
    require_accuracy(accuracy)
    if threads is not None:
        require_threads(threads, most_threads())
    machine = _machine(target)
    how = options or SearchOptions(strategy, Settings(objective=objective, seed=seed))
    with _opened(database) as records, _running(runner) as measuring:
        about = records, measuring, how, Budget(trials, budget_s), threads or default_threads()
        common = _Common(with_machine_model(machine, None), *about, seed, sizes or {}, on_event)
        if isinstance(model, tir.Func):
            return _tune_func(model, common, constants)
        return _tune_model(model, common, accuracy, dims or {}, against, joint=joint)


@dataclass(frozen=True)
class _Common:
    """What searches for programs and for models share."""

    target: Target
    records: Database
    runner: Runner
    options: SearchOptions
    budget: Budget
    threads: int
    seed: int
    sizes: Mapping[str, int]
    on_event: OnEvent | None


def _tune_func(func: tir.Func, common: _Common, constants: Collection[str]) -> TuneReport:
    from tilewright.tuning.task import task_of_func
    from tilewright.tuning.tuner import Search, TuneReport

    c = common
    task = task_of_func(func, c.target, constants, c.threads)
    about = c.threads, c.options, c.budget, c.seed, None, c.sizes, c.on_event
    search = Search(func.name, [task], c.records, c.runner, *about)
    is_interrupted = _finished(search)
    return TuneReport(search.state, c.records.path, is_interrupted)


def _tune_model(
    model: Source,
    common: _Common,
    accuracy: str,
    dims: Mapping[str, int],
    against: Sequence[str],
    *,
    joint: bool,
) -> TuneReport:
    from tilewright.model.compile_arguments import AUTO, source_of, with_dims
    from tilewright.model.compiler import Compiling
    from tilewright.runtime.cache import default_caches
    from tilewright.tuning.model_tuner import ModelTuner
    from tilewright.tuning.tuner import TuneReport

    c, given = common, source_of(model)
    name = name_of(given)
    given = with_dims(given, dims) if dims else given
    how = Compiling(c.target, c.threads, accuracy, AUTO, default_caches(None))
    about = c.records, c.runner, c.options, c.budget, c.threads, c.seed, c.sizes, c.on_event
    tuner = ModelTuner(name, given, how, *about, joint=joint, against=against)
    is_interrupted = tuner.run()
    return TuneReport(tuner.state, c.records.path, is_interrupted)


def _machine(target: str | Target) -> Target:
    """The target, which this machine must be able to run."""
    machine = Target.named(target) if isinstance(target, str) else target
    missing = machine.missing_on(Target.host())
    if missing:
        hint = f"this machine lacks: {', '.join(sorted(missing))}"
        raise TuneError(U022, {"target": machine.cpu}, hint=hint)
    return machine


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
    from tilewright.records import Database

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
    from tilewright.tuning.measure.runners import runner_named

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
