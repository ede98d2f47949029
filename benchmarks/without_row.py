"""How fast a processor is that no table knows: this one, with its row taken out of the table.

    python -m benchmarks.without_row [models] [--threads 1,2] [--figures] [--out FILE]

The closest other row takes its place, and the machine is calibrated anew with each. First come the
figures that differ: those that were measured should not, but for noise; the others are what only a
row can tell. Then products and models are compiled for both and take turns in one process; the
least time of each counts, and the ratio should be 0.95 and more.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

import tilewright as tw
from benchmarks import machine
from benchmarks.ablation import geomean
from benchmarks.bench import progress
from benchmarks.models import MODELS
from benchmarks.models.make import Choice, default_folder, make
from tilewright.build import build
from tilewright.calibration.model import measured_model
from tilewright.target import MachineModel, Target
from tilewright.target.host import without_row
from tilewright.target.machine import PARTS
from tilewright.tensor.library import matmul

__all__ = ["differences", "figures", "main"]

WITH, WITHOUT = "with its row", "without"
NETWORKS: Final = ("resnet18", "mobilenet-v2", "minilm-l6")
PRODUCTS: Final = (
    (128, 768, 768), (18, 1008, 4096), (256, 256, 256), (1024, 1024, 1024), (1, 4096, 1024),
    (197, 3072, 768), (3136, 64, 576), (49, 512, 4608),
)  # fmt: skip
ROUNDS: Final = 20
TURN_SECONDS: Final = 0.01

Runs = dict[str, Callable[[], object]]


def figures(model: MachineModel) -> dict[str, float]:
    """All figures of a model by name."""
    items: list[Any] = [*model.levels, *model.vectors, *model.instructions]
    named = {item.name: item for item in items}
    parts = {name: getattr(model, name) for name in PARTS}
    found = {k: v for k, v in model.to_dict().items() if isinstance(v, int | float)}
    for owner, item in {**named, **parts}.items():
        numbers = {k: v for k, v in asdict(item).items() if isinstance(v, int | float)}
        found |= {f"{owner}.{name}": value for name, value in numbers.items()}
    return found


def differences(models: Mapping[str, MachineModel]) -> dict[str, dict[str, tuple[float, float]]]:
    """Figures that differ between two models: those measured, and those that are nominal."""
    one, other = models[WITH], models[WITHOUT]
    ours, theirs = figures(one), figures(other)
    found: dict[str, dict[str, tuple[float, float]]] = {"measured": {}, "nominal": {}}
    for name in sorted(ours.keys() | theirs.keys()):
        pair = ours.get(name, math.nan), theirs.get(name, math.nan)
        if pair[0] != pair[1]:
            is_measured = name in one.measured and name in other.measured
            found["measured" if is_measured else "nominal"][name] = pair
    return found


def product_runs(targets: Mapping[str, Target], threads: int) -> Iterator[tuple[str, Runs]]:
    """Products with a constant right operand, packed as each target wants it."""
    for m, n, k in PRODUCTS:
        left, right = np.ones((m, k), np.float32), np.ones((k, n), np.float32)
        runs: Runs = {}
        for name, target in targets.items():
            kernel = build(matmul(m, n, k), target, threads, constants={"B": right})
            result = np.empty((m, n), np.float32)
            runs[name] = partial(kernel, left, result)
        yield f"product {m}x{n}x{k}", runs


def model_runs(
    names: Sequence[str], targets: Mapping[str, Target], threads: int
) -> Iterator[tuple[str, Runs]]:
    """Whole models."""
    for name in names:
        model = MODELS[name]
        path = make(model, default_folder(), Choice(), progress)
        feeds = model.arrays(model.sizes[0])
        modules = {
            who: tw.compile(path, target=target, threads=threads, cache=False)
            for who, target in targets.items()
        }
        yield name, {who: partial(module.run, feeds) for who, module in modules.items()}


def best_ms(runs: Runs) -> dict[str, float]:
    """The least time of each, by turns."""
    best = dict.fromkeys(runs, math.inf)
    for _ in range(ROUNDS):
        for name, run in runs.items():
            run()
            end = time.perf_counter() + TURN_SECONDS
            while (start := time.perf_counter()) < end:
                run()
                best[name] = min(best[name], time.perf_counter() - start)
    return {name: 1e3 * seconds for name, seconds in best.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser("python -m benchmarks.without_row", description=__doc__)
    parser.add_argument("models", nargs="*", default=list(NETWORKS))
    parser.add_argument("--threads", default="1", help="thread counts, separated by commas")
    parser.add_argument("--figures", action="store_true", help="compare figures, run nothing")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore", tw.TilewrightWarning)
    host = replace(Target.host(), model=None)
    bare = {WITH: host, WITHOUT: without_row(host)}
    models = {name: measured_model(target) for name, target in bare.items()}
    print(f"rows: {host.core_of}; without it: {bare[WITHOUT].core_of}")
    differing = differences(models)
    for kind, found in differing.items():
        print(f"{kind} figures that differ: {len(found)}")
        for name, (one, other) in found.items():
            print(f"  {name:<32} {one:.4g} {other:.4g}")
    rows: list[dict[str, Any]] = []
    targets = {name: replace(target, model=models[name]) for name, target in bare.items()}
    for threads in [] if given.figures else map(int, given.threads.split(",")):
        every = (*product_runs(targets, threads), *model_runs(given.models, targets, threads))
        for name, runs in every:
            ms = best_ms(runs)
            ratio = ms[WITH] / ms[WITHOUT]
            rows.append({"name": name, "threads": threads, "ms": ms, "ratio": ratio})
            times = f"{ms[WITH]:.3f} ms, without {ms[WITHOUT]:.3f} ms"
            print(f"{threads} threads, {name}: {times}: {ratio:.3f}", flush=True)
    if rows:
        ratios = [row["ratio"] for row in rows]
        print(f"geometric mean {geomean(ratios):.3f}, least {min(ratios):.3f}")
    if given.out is not None:
        facts = {"commit": machine.commit(), "machine": machine.describe()}
        found_too = {"differences": differing, "results": rows}
        given.out.write_text(json.dumps({**facts, **found_too}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
