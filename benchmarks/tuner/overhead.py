"""Where the time of a search goes, and how fast its model ranks."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tuner.comparisons import Keep
from benchmarks.tuner.tasks import task_named
from tilewright.calibration import with_machine_model
from tilewright.records import Database
from tilewright.target import Target
from tilewright.tuning.budget import Budget
from tilewright.tuning.kernel_tuner import SearchOptions
from tilewright.tuning.measure.runners import runner_named
from tilewright.tuning.tuner import Search

__all__ = ["overhead"]


def overhead(options: argparse.Namespace, keep: Keep) -> dict[str, Any]:
    """Share of the wall time that is measuring, trials a second, points ranked a second."""
    rows: list[dict[str, Any]] = []
    for name in options.tasks:
        rows.append(_searched(name, options.trials, options.threads))
        print(json.dumps(rows[-1]), flush=True)
        keep({"tasks": rows})
    return {"tasks": rows}


def _searched(name: str, trials: int, threads: int) -> dict[str, Any]:
    """One search of a task."""
    target = with_machine_model(Target.host(), None)
    task = task_named(name, target, threads)
    measured = [0.0]
    runner = runner_named("local")

    class Watched:
        def run(self, given: Any) -> Any:
            for trial, outcome in runner.run(given):
                measured[0] += outcome.measure_s
                yield trial, outcome

        def close(self) -> None:
            runner.close()

    with tempfile.TemporaryDirectory() as folder, Database(Path(folder, "r.sqlite")) as records:
        how = SearchOptions(patience=None)
        search = Search(name, [task], records, Watched(), threads, how, Budget(trials))
        begin = time.perf_counter()
        search.run()
        seconds = time.perf_counter() - begin
    runner.close()
    tuner = search.tuned[0].tuner
    tuner.learn()
    rows = task.space.sample(np.random.default_rng(0), 4096)
    begin = time.perf_counter()
    tuner.score(rows)
    ranked = len(rows) / (time.perf_counter() - begin)
    return {
        "task": name,
        "trials": len(tuner.costs),
        "seconds": seconds,
        "trials_per_second": len(tuner.costs) / seconds,
        "measuring": measured[0] / seconds,
        "ranked_per_second": ranked,
    }
