"""Whole models by this checkout and by another one, in turns: did anything become slower?

    python -m benchmarks.versions OTHER [models] [--threads 1,2] [--out FILE]

OTHER is the folder of another checkout of the repository, with its native library built in place
(`python setup.py build_ext --inplace`). Each version runs in a process of its own, without the
cache of compiled models; they take turns of 0.2 s, 12 rounds, and the least time counts. Which one
is loaded first changes from model to model: the second finds less memory that is ready to use.
Results are compared: `equal` means the same bits.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks import machine
from benchmarks.ablation import geomean
from benchmarks.bench import progress
from benchmarks.models import MODELS
from benchmarks.models.make import Choice, default_folder, make
from benchmarks.models.spec import Model
from tilewright.contest.process import EngineGoneError, EngineProcess
from tilewright.contest.turns import distance

__all__ = ["main", "measure", "table"]

ROUNDS: Final = 12
TURN_SECONDS: Final = 0.2
HERE: Final = Path(__file__).parents[1]
BEFORE, NOW = "before", "now"


@contextmanager
def _version(checkout: Path, threads: int) -> Iterator[EngineProcess]:
    """A process that runs models with the tilewright of a checkout."""
    with tempfile.TemporaryDirectory() as cache:
        own = {"PYTHONPATH": str(checkout / "src"), "TILEWRIGHT_CACHE_DIR": cache}
        with EngineProcess("tilewright", threads, {**os.environ, **own}) as process:
            yield process


def measure(model: Model, checkouts: Mapping[str, Path], threads: int) -> dict[str, Any]:
    """Milliseconds of a run and seconds until the first one, by version; `problem` if one fails."""
    path = make(model, default_folder(), Choice(), progress)
    feeds = model.arrays(model.sizes[0])
    row: dict[str, Any] = {"model": model.name, "threads": threads}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        np.savez(folder / "inputs.npz", *feeds.values())
        playing: dict[str, EngineProcess] = {}
        loads: dict[str, float] = {}
        for name, checkout in checkouts.items():
            playing[name] = stack.enter_context(_version(checkout, threads))
            answer = playing[name].load(str(path), str(folder / "inputs.npz"), list(feeds))
            if "problem" in answer:
                return {**row, "problem": f"{name}: {answer['problem']}"}
            loads[name] = answer["load_s"]
        best = dict.fromkeys(checkouts, math.inf)
        for number in range(ROUNDS):
            for name in sorted(playing, reverse=bool(number % 2)):
                best[name] = min(best[name], *playing[name].turn(TURN_SECONDS))
        for name, process in playing.items():
            process.save(str(folder / f"{name}.npz"))
        error = distance(*(_results(folder / f"{name}.npz") for name in (NOW, BEFORE)))
    return {**row, "ms": {n: 1e3 * s for n, s in best.items()}, "load_s": loads, "error": error}


def _results(path: Path) -> list[Any]:
    with np.load(path, allow_pickle=False) as arrays:
        return [arrays[key] for key in arrays.files]


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The result as Markdown."""
    lines = [
        "| model | before, ms | now, ms | before / now | first run before, s | now, s | results |",
        "| --- | --: | --: | --: | --: | --: | --: |",
    ]
    for row in rows:
        if "problem" in row:
            lines.append(f"| {row['model']} | {row['problem']} | | | | | |")
            continue
        ms, load = row["ms"], row["load_s"]
        same = "equal" if row["error"] == 0 else f"{row['error']:.0e}"
        times = f"{ms[BEFORE]:.3f} | {ms[NOW]:.3f} | {ms[BEFORE] / ms[NOW]:.2f}"
        lines.append(
            f"| {row['model']} | {times} | {load[BEFORE]:.1f} | {load[NOW]:.1f} | {same} |"
        )
    done = [row for row in rows if "problem" not in row]
    runs = geomean([row["ms"][BEFORE] / row["ms"][NOW] for row in done])
    lines.append(f"| **geometric mean** | | | {runs:.2f} | | | |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser("python -m benchmarks.versions", description=__doc__)
    parser.add_argument("other", type=Path, help="folder of the checkout before")
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--threads", default="1", help="thread counts, separated by commas")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    given = parser.parse_args(arguments)
    checkouts = {BEFORE: given.other.resolve(), NOW: HERE}
    for folder in checkouts.values():
        if not list(folder.glob("src/tilewright/runtime/_native*.so")):
            parser.error(
                f"{folder} has no native library; run `setup.py build_ext --inplace` in it"
            )
    if unknown := set(given.models) - set(MODELS):
        parser.error(f"unknown models: {', '.join(sorted(unknown))}")
    results: list[dict[str, Any]] = []
    for threads in map(int, given.threads.split(",")):
        rows = []
        for number, name in enumerate(given.models):
            try:
                order = list(checkouts.items())[:: 1 if number % 2 else -1]
                row = measure(MODELS[name], dict(order), threads)
            except EngineGoneError as problem:
                row = {"model": name, "threads": threads, "problem": str(problem)}
            rows.append(row)
            print(f"{threads} threads: {json.dumps(row)}", file=sys.stderr, flush=True)
            _write(given.out, [*results, *rows])
        results += rows
        print(f"\n{threads} threads\n\n{table(rows)}\n", flush=True)
    return 0


def _write(path: Path | None, rows: Sequence[dict[str, Any]]) -> None:
    if path is not None:
        facts = {"commit": machine.commit(), "machine": machine.describe()}
        path.write_text(json.dumps({**facts, "results": list(rows)}, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
