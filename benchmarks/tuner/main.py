"""`python -m benchmarks tuner WHAT`: what tuning finds, how soon, and what it survives.

Run nothing else meanwhile. Figures are written as JSON with the name of the CPU.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import machine
from benchmarks.tuner.models import tuned_models
from benchmarks.tuner.searches import WAYS, Curve, by_way, geomean, searched, trials_to
from benchmarks.tuner.tasks import LAYERS, NAMES, task_named
from tilewright.calibration import with_machine_model
from tilewright.target import Target
from tilewright.tuning.kernel_tuner import SearchOptions
from tilewright.tuning.measure.runners import runner_named

__all__ = ["main"]

HISTORY = tuple(f"C{n}" for n in range(1, 7))
FRESH = (*(f"C{n}" for n in range(7, 13)), "1024x1024x1024")
NEARLY = 0.95
"""Of the speed of the best point of all searches of a task."""


def main(arguments: Sequence[str]) -> int:
    """Run one of the comparisons."""
    options = _parse(arguments)
    found = {"search": _search, "transfer": _transfer, "models": _models}
    found |= {"overhead": _overhead, "faults": _faults}
    result = found[options.what](options)
    if options.out:
        facts: dict[str, Any] = {"command": f"python -m benchmarks tuner {' '.join(arguments)}"}
        facts |= {"commit": machine.commit(), "machine": machine.describe()}
        options.out.write_text(json.dumps(facts | result, indent=1))
        print(f"written to {options.out}")
    return 0


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks tuner", description=__doc__)
    parser.add_argument("what", choices=["search", "transfer", "models", "overhead", "faults"])
    parser.add_argument("names", nargs="*", help="for models: which ones")
    parser.add_argument("--tasks", default=",".join(LAYERS), help=f"some of {','.join(NAMES)}")
    parser.add_argument("--ways", default="random,evolution", help=f"some of {','.join(WAYS)}")
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--budget", type=float, default=600.0, help="seconds for each model")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--loops-only", action="store_true", help="for models: layouts stay")
    parser.add_argument("--layouts", type=int, default=16, help="of the template, for search")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write all figures as JSON")
    return parser.parse_args(arguments)


def _search(options: argparse.Namespace) -> dict[str, Any]:
    """The best of so many trials, by strategy."""
    target = with_machine_model(Target.host(), None)
    ways, curves = options.ways.split(","), list[Curve]()
    runner = runner_named("local")
    try:
        for name in options.tasks.split(","):
            task = task_named(name, target, options.threads, options.layouts)
            points = f"{task.space.size:.2e} of {task.size:.2e} points"
            print(f"{name}: {points}, {len(task.variants)} variants")
            for seed in range(options.seeds):
                for way in ways:
                    about = name, task, way, seed, options.trials, runner, options.threads
                    curves.append(searched(*about))
                    _say(curves[-1])
    finally:
        runner.close()
    summary = _compared(curves, ways[0])
    print(json.dumps(summary, indent=1))
    return {"curves": [curve.to_dict() for curve in curves], "summary": summary}


def _say(curve: Curve) -> None:
    rate = len(curve.best) / curve.seconds
    print(
        f"  {curve.way:<12} seed {curve.seed}: {1 / curve.final:.3f} of the draft, "
        f"{len(curve.best)} trials, {rate:.1f} a second, {curve.failures} failures",
        flush=True,
    )


def _compared(curves: Sequence[Curve], baseline: str) -> dict[str, Any]:
    """Each way beside the first one: speed of the best, and trials to the baseline's result."""
    found = by_way(curves)
    base = {t: float(np.mean([c.final for c in own])) for t, own in found[baseline].items()}
    summary: dict[str, Any] = {}
    for way, tasks in found.items():
        final = {t: float(np.mean([c.final for c in own])) for t, own in tasks.items()}
        reached = {
            task: float(np.mean([trials_to(c, base[task]) or len(c.best) + 1 for c in own]))
            for task, own in tasks.items()
        }
        summary[way] = {
            f"of_{baseline}": geomean(base[task] / final[task] for task in final),
            "of_draft": geomean(1 / cost for cost in final.values()),
            "trials_to_baseline": reached,
            "within_60": sum(count <= 60 for count in reached.values()),
        }
    return summary


def _transfer(options: argparse.Namespace) -> dict[str, Any]:
    """Trials to nearly the best, with and without the history of other layers."""
    target = with_machine_model(Target.host(), None)
    how = {"alone": replace(SearchOptions(patience=None), transfers=False, starts_at_draft=False)}
    how["history"] = replace(how["alone"], transfers=True)
    curves: list[Curve] = []
    runner = runner_named("local")
    try:
        with tempfile.TemporaryDirectory() as folder:
            history = Path(folder, "history.sqlite")
            for name in HISTORY:
                task = task_named(name, target, options.threads)
                about = name, task, "history", 0, options.trials, runner, options.threads
                _say(searched(*about, history, how["alone"]))
            for name in FRESH:
                task = task_named(name, target, options.threads)
                for seed in range(options.seeds):
                    for way, own in how.items():
                        copy = Path(folder, f"{name}-{seed}-{way}.sqlite")
                        if way == "history":
                            copy.write_bytes(history.read_bytes())
                        about = name, task, way, seed, options.trials, runner, options.threads
                        curves.append(searched(*about, copy, own))
                        _say(curves[-1])
    finally:
        runner.close()
    summary = _transferred(curves)
    print(json.dumps(summary, indent=1))
    return {"curves": [curve.to_dict() for curve in curves], "summary": summary}


def _transferred(curves: Sequence[Curve]) -> dict[str, Any]:
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


def _models(options: argparse.Namespace) -> dict[str, Any]:
    """Whole models before and after."""
    about = options.names, options.budget, options.threads
    rows = tuned_models(*about, joint=not options.loops_only)
    gain = geomean(row["gain"] for row in rows)
    print(f"geometric mean {gain:.3f}, least {min(row['gain'] for row in rows):.3f}")
    return {"models": rows, "geomean": gain}


def _faults(options: argparse.Namespace) -> dict[str, Any]:
    """A search that is disturbed in every way, beside one that is not."""
    from benchmarks.tuner.faults import fault_search

    found = fault_search(options.trials)
    print(json.dumps(found, indent=1))
    return found


def _overhead(options: argparse.Namespace) -> dict[str, Any]:
    """Share of the wall time that is measuring, trials a second, points ranked a second."""
    from benchmarks.tuner.overhead import overhead

    rows = [overhead(name, options.trials, options.threads) for name in options.tasks.split(",")]
    for row in rows:
        print(json.dumps(row))
    return {"tasks": rows}
