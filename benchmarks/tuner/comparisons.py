"""`search` and `transfer`: curves of many searches of the same tasks, and what they say.

python -m benchmarks tuner search [--tasks C1,C2] [--ways random,evolution] [--trials 200]
python -m benchmarks tuner transfer [--tasks C7,C8] [--trials 100] [--history FILE]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.tuner.at_once import each_apart
from benchmarks.tuner.everywhere import EVERYWHERE, everywhere
from benchmarks.tuner.searches import WAYS, Curve, by_way, geomean, searched, trials_to
from benchmarks.tuner.tasks import HISTORY, task_named
from tilewright.calibration import with_machine_model
from tilewright.target import Target
from tilewright.tuning.measure.runners import runner_named
from tilewright.tuning.measure.trial import Runner
from tilewright.tuning.task import Task

__all__ = ["Keep", "compared", "search", "transfer", "transferred"]

Keep = Callable[[dict[str, Any]], None]
"""Writes what is known so far: a long run may be stopped."""

NEARLY: Final = 0.95
"""Of the speed of the best point of all searches of a task."""
SOON: Final = 60
"""Trials within which the result of the baseline is to be reached."""


def search(options: argparse.Namespace, keep: Keep) -> dict[str, Any]:
    """The best of so many trials, by strategy, model and batches; the first way is the baseline."""
    curves, tasks = list[Curve](), dict[str, Any]()
    found: dict[str, Any] = {}
    parts = _apart(options) if options.at_once > 1 else _search_each(options)
    for part_of_tasks, part in parts:
        tasks |= part_of_tasks
        curves = _in_order([*curves, *part], options.tasks)
        about = {name: tasks[name] for name in options.tasks if name in tasks}
        found = {"tasks": about, **_curves(curves), "summary": compared(curves)}
        keep(found)
    return found


def _search_each(options: argparse.Namespace) -> Iterator[tuple[dict[str, Any], list[Curve]]]:
    """One task after another: what is said of it, and its curves."""
    target = with_machine_model(Target.host(), None)
    runner = runner_named("local")
    try:
        for name in options.tasks:
            task = task_named(name, target, options.threads, options.layouts)
            about = {"points": task.size, "variants": len(task.variants)}
            points = f"{task.space.size:.2e} of {task.size:.2e} points"
            print(f"{name}: {points}, {len(task.variants)} variants")
            curves: list[Curve] = []
            for seed in range(options.seeds):
                for way in options.ways:
                    curves.append(_searched(name, task, way, seed, options, runner))
                    _say(curves[-1])
            yield {name: about}, curves
    finally:
        runner.close()


def _apart(options: argparse.Namespace) -> Iterator[tuple[dict[str, Any], list[Curve]]]:
    """The same with several tasks at once."""
    ways = ",".join(options.ways)
    numbers = f"--trials {options.trials} --seeds {options.seeds} --layouts {options.layouts}"
    arguments = [*numbers.split(), "--ways", ways]
    for part in each_apart("search", options.tasks, arguments, options.at_once):
        yield part["tasks"], [Curve.from_dict(curve) for curve in part["curves"]]


def _searched(
    name: str, task: Task, way: str, seed: int, options: argparse.Namespace, runner: Runner
) -> Curve:
    """Among the variants of a task, or with none of them chosen ahead."""
    about = seed, options.trials, runner, options.threads
    if way in EVERYWHERE:
        return everywhere(name, way, *about, task.target)
    return searched(name, task, way, *about)


def compared(curves: Sequence[Curve]) -> dict[str, Any]:
    """Each way beside the first one: speed of the best, and trials to the baseline's result."""
    found = by_way(curves)
    baseline = next(iter(found))
    base = {t: float(np.mean([c.final for c in own])) for t, own in found[baseline].items()}
    summary: dict[str, Any] = {}
    for way, tasks in found.items():
        final = {t: float(np.mean([c.final for c in own])) for t, own in tasks.items()}
        reached = {
            task: float(np.mean([trials_to(c, base[task]) or len(c.best) + 1 for c in own]))
            for task, own in tasks.items()
        }
        summary[way] = {
            "of_baseline": geomean(base[task] / final[task] for task in final),
            "of_draft": geomean(1 / cost for cost in final.values()),
            "by_task": {task: 1 / cost for task, cost in final.items()},
            "trials_to_baseline": reached,
            "soon": sum(count <= SOON for count in reached.values()),
        }
    return {"baseline": baseline, "soon": SOON, "ways": summary}


def transfer(options: argparse.Namespace, keep: Keep) -> dict[str, Any]:
    """Trials to nearly the best, with and without the history of other layers."""
    curves: list[Curve] = []
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        history = options.history or Path(folder, "history.sqlite")
        parts = _transfer_apart if options.at_once > 1 else _transfer_each
        for part in parts(history, options):
            curves = _in_order([*curves, *part], options.tasks)
            found = {**_curves(curves), "summary": transferred(curves)}
            keep(found)
    return found


def _transfer_each(history: Path, options: argparse.Namespace) -> Iterator[list[Curve]]:
    """The curves of each task, one after another."""
    if not history.exists():
        _make_history(history, options)
    runner = runner_named("local")
    try:
        for name, task in _tasks(options.tasks, options.threads):
            yield _with_and_without(name, task, history, options, runner)
    finally:
        runner.close()


def _transfer_apart(history: Path, options: argparse.Namespace) -> Iterator[list[Curve]]:
    """The same with several tasks at once; the first of them makes the history.

    Records belong to a number of processors: whoever has one could not use those of all.
    """
    numbers = f"--trials {options.trials} --seeds {options.seeds}"
    arguments = [*numbers.split(), "--history", str(history)]
    first, others = options.tasks[:1], options.tasks[1:]
    for names, at_once in ((first, 1), (others, options.at_once)):
        for found in each_apart("transfer", names, arguments, at_once):
            yield [Curve.from_dict(curve) for curve in found["curves"]]


def transferred(curves: Sequence[Curve]) -> dict[str, Any]:
    """Trials until 95 % of the speed of the best point that any search of the task found."""
    found = by_way(curves)
    rows = {}
    for task in found["alone"]:
        goal = min(c.final for way in found.values() for c in way[task]) / NEARLY
        counts = {
            way: float(np.mean([trials_to(c, goal) or 2 * len(c.best) for c in own[task]]))
            for way, own in found.items()
        }
        rows[task] = counts | {"fewer": counts["alone"] / counts["history"]}
    return {"tasks": rows, "fewer": geomean(row["fewer"] for row in rows.values())}


def _make_history(path: Path, options: argparse.Namespace) -> None:
    """A database with searches of other layers."""
    runner = runner_named("local")
    try:
        for name, task in _tasks(HISTORY, options.threads):
            about = name, task, "history", 0, options.trials, runner, options.threads
            _say(searched(*about, path, WAYS["evolution"]))
    finally:
        runner.close()


def _with_and_without(
    name: str, task: Task, history: Path, options: argparse.Namespace, runner: Runner
) -> list[Curve]:
    """Searches of one task from an empty database, and from a copy of one with a history."""
    curves = []
    alone = WAYS["evolution"]
    for seed in range(options.seeds):
        about = seed, options.trials, runner, options.threads
        curves.append(searched(name, task, "alone", *about, options=alone))
        _say(curves[-1])
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder, "records.sqlite")
            copy.write_bytes(history.read_bytes())
            how = replace(alone, transfers=True)
            curves.append(searched(name, task, "history", *about, copy, how))
        _say(curves[-1])
    return curves


def _tasks(names: Sequence[str], threads: int) -> Iterator[tuple[str, Task]]:
    target = with_machine_model(Target.host(), None)
    return ((name, task_named(name, target, threads)) for name in names)


def _in_order(curves: Sequence[Curve], tasks: Sequence[str]) -> list[Curve]:
    """By task, where several at once have come as they were ready."""
    return sorted(curves, key=lambda curve: tasks.index(curve.task))


def _curves(curves: Sequence[Curve]) -> dict[str, Any]:
    return {"curves": [curve.to_dict() for curve in curves]}


def _say(curve: Curve) -> None:
    rate = len(curve.best) / curve.seconds
    print(
        f"  {curve.way:<12} seed {curve.seed}: {1 / curve.final:.3f} of the draft, "
        f"{len(curve.best)} trials, {rate:.1f} a second, {curve.failures} failures",
        *curve.reasons,
        sep="\n    ",
        flush=True,
    )
