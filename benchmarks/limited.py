"""Whole models where a process may use less than the machine: quotas and few processors.

    python -m benchmarks.limited [models] [--seconds 5] [--out FILE]

A session is made as a user makes it, without a word on threads, and once for as many threads as the
machine has processors, as one that does not look at its confinement would. Engines take turns, each
in a process of its own; every figure is that of the best turn. The mean counts pauses that a quota
makes, the median shows a run without one.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks import machine
from benchmarks.bench import progress
from benchmarks.confined import CONFINEMENTS, Confinement, NotPossible, run_confined
from benchmarks.models import MODELS
from benchmarks.models.make import Choice, default_folder, make

__all__ = ["main", "table"]

NETWORKS: Final = ("resnet18", "dqn")
ENGINES: Final = ("tilewright", "tilewright, all processors", "onnxruntime")
TURNS: Final = 3


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser("python -m benchmarks.limited", description=__doc__)
    parser.add_argument("models", nargs="*", default=list(NETWORKS))
    parser.add_argument("--seconds", type=float, default=5.0, help="of each turn (default: 5)")
    parser.add_argument("--turn", choices=ENGINES, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    given = parser.parse_args(arguments)
    if given.turn:
        print(json.dumps(_turn(given.turn, given.models[0], given.seconds)))
        return 0
    rows = [
        _best(how, model, engine, given.seconds)
        for model in given.models
        for how in CONFINEMENTS
        for engine in ENGINES
    ]
    print(table(rows))
    if given.out is not None:
        facts = {"commit": machine.commit(), "machine": machine.describe(), "results": rows}
        given.out.write_text(json.dumps(facts, indent=1) + "\n")
    return 0


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The result as Markdown."""
    lines = [
        "| model | may use | engine | threads | mean ms | median ms | processor ms |",
        "| --- | --- | --- | --: | --: | --: | --: |",
    ]
    for row in rows:
        head = f"| {row['model']} | {row['confinement']} | {row['engine']} |"
        if "missing" in row:
            lines.append(f"{head} | | | {row['missing']} |")
            continue
        numbers = f"{row['mean_ms']:.2f} | {row['median_ms']:.2f} | {row['processor_ms']:.2f}"
        lines.append(f"{head} {row['threads']} | {numbers} |")
    return "\n".join(lines)


def _best(how: Confinement, model: str, engine: str, seconds: float) -> dict[str, Any]:
    """The turn with the most runs."""
    make(MODELS[model], default_folder(), Choice(), progress)
    command = [sys.executable, "-m", "benchmarks.limited", model]
    command += ["--turn", engine, "--seconds", str(seconds)]
    row = {"model": model, "confinement": how.name, "engine": engine}
    print(", ".join(row.values()), file=sys.stderr, flush=True)
    turns: list[dict[str, Any]] = []
    for _ in range(TURNS):
        try:
            result = run_confined(how, command, timeout=60 + 20 * seconds)
        except NotPossible as problem:
            return {**row, "missing": str(problem)}
        if result.returncode:
            return {**row, "missing": (result.stderr.strip().splitlines() or ["failed"])[-1]}
        turns.append(json.loads(result.stdout.splitlines()[-1]))
    return {**row, **min(turns, key=lambda turn: float(turn["mean_ms"]))}


def _turn(engine: str, name: str, seconds: float) -> dict[str, Any]:
    """Runs for some seconds: how long they took, and how much of the processors."""
    model = MODELS[name]
    path = make(model, default_folder(), Choice(), progress)
    run, threads = _session(engine, path, model.arrays(model.sizes[0]))
    for _ in range(3):
        run()
    times, begin, used = [], time.perf_counter(), time.process_time()
    while time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    used, spent = time.process_time() - used, time.perf_counter() - begin
    return {
        "runs": len(times),
        "threads": threads,
        "mean_ms": 1e3 * spent / len(times),
        "median_ms": 1e3 * float(np.median(times)),
        "within_ms": 1e3 * float(np.quantile(times, 0.95)),
        "processor_ms": 1e3 * used / len(times),
    }


def _session(engine: str, path: Path, feeds: dict[str, Any]) -> tuple[Callable[[], object], str]:
    """How to run a model once, and on how many threads that is."""
    if engine == "onnxruntime":
        import onnxruntime as ort

        session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
        return lambda: session.run(None, feeds), "its own"
    import tilewright as tw

    warnings.simplefilter("ignore", tw.TilewrightWarning)
    threads = os.cpu_count() if engine != "tilewright" else None
    module = tw.compile(path, threads=threads)
    return lambda: module.run(feeds), str(module.threads)


if __name__ == "__main__":
    sys.exit(main())
