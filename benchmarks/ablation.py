"""How much the joint choice of layouts is worth: the same build with one layout for everything.

    python -m benchmarks.ablation [models] [--threads 1,2] [--out FILE]

Every model is compiled with the layouts chosen jointly and with each fixed one; algorithms, packed
weights, fusion and schedules are those of the same compiler in all cases. The modules take turns in
one process (they share one engine and its threads), 3 runs each, 8 rounds; the least time counts.
One more column has neither choice: channels last and direct convolutions. With `--exact`, all keep
to direct convolutions.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import tilewright as tw
from benchmarks import machine
from benchmarks.bench import progress
from benchmarks.models import MODELS
from benchmarks.models.make import Choice, default_folder, make
from benchmarks.models.spec import Model

__all__ = ["main"]

JOINT: Final = "auto"
FIXED: Final = ("nhwc", "nchw", "nchw8c", "nchw16c")
NEITHER: Final = "nhwc, direct"
NETWORKS: Final = (
    "resnet18", "resnet50", "mobilenet-v2", "efficientnet-b0", "filled-squeezenet",
    "filled-densenet121", "filled-vgg19", "filled-inception-v1", "filled-shufflenet", "r3d-18",
    "dcgan-generator", "yolo", "ocr-detection",
)  # fmt: skip
ROUNDS: Final = 8
RUNS: Final = 3


def measure(model: Model, threads: int, *, exact: bool) -> dict[str, float]:
    """Milliseconds with each layout."""
    accuracy = "strict" if exact else "default"
    path = make(model, default_folder(), Choice(), progress)
    variants = {layout: (layout, accuracy) for layout in (JOINT, *FIXED)}
    variants[NEITHER] = ("nhwc", "strict")
    modules = {
        name: tw.compile(path, threads=threads, accuracy=how, cache=False, layouts=layout)
        for name, (layout, how) in variants.items()
    }
    feeds = model.arrays(model.sizes[0])
    best = dict.fromkeys(modules, math.inf)
    for _ in range(ROUNDS):
        for layout, module in modules.items():
            module.run(feeds)
            for _ in range(RUNS):
                start = time.perf_counter()
                module.run(feeds)
                best[layout] = min(best[layout], time.perf_counter() - start)
    return {layout: 1e3 * seconds for layout, seconds in best.items()}


def geomean(values: Sequence[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """How much faster the joint choice is than each other variant, over all networks."""
    return {f: geomean([r["ms"][f] / r["ms"][JOINT] for r in rows]) for f in (*FIXED, NEITHER)}


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The result as Markdown: milliseconds, and the joint choice against the best fixed layout."""
    lines = [
        f"| network | joint | {' | '.join(FIXED)} | best fixed / joint | {NEITHER} |",
        f"| --- | --: | {' | '.join('--:' for _ in FIXED)} | --: | --: |",
    ]
    for row in rows:
        ms = row["ms"]
        shown = " | ".join(f"{ms[f]:.2f}" for f in FIXED)
        ratio = min(ms[f] for f in FIXED) / ms[JOINT]
        neither = f"{ms[NEITHER]:.2f}"
        lines.append(f"| {row['model']} | {ms[JOINT]:.2f} | {shown} | {ratio:.2f} | {neither} |")
    means = summary(rows)
    shown = " | ".join(f"{means[f]:.2f}" for f in FIXED)
    best = geomean([min(r["ms"][f] for f in FIXED) / r["ms"][JOINT] for r in rows])
    neither = f"{means[NEITHER]:.2f}"
    lines.append(f"| **fixed / joint, geometric mean** | 1 | {shown} | {best:.2f} | {neither} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser("python -m benchmarks.ablation", description=__doc__)
    parser.add_argument("models", nargs="*", default=list(NETWORKS))
    parser.add_argument("--threads", default="1", help="thread counts, separated by commas")
    parser.add_argument("--exact", action="store_true", help="direct convolutions only")
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore", tw.TilewrightWarning)
    results = []
    for threads in map(int, given.threads.split(",")):
        rows: list[dict[str, Any]] = []
        for name in given.models:
            print(f"{threads} threads: {name}", file=sys.stderr, flush=True)
            ms = measure(MODELS[name], threads, exact=given.exact)
            rows.append({"model": name, "threads": threads, "ms": ms})
            print(f"  {', '.join(f'{k} {v:.2f}' for k, v in ms.items())}", file=sys.stderr)
        results += rows
        kind = "direct convolutions" if given.exact else "algorithms chosen as well"
        print(f"\n{threads} threads, ms, {kind}\n\n{table(rows)}\n", flush=True)
    if given.out is not None:
        facts = {"commit": machine.commit(), "machine": machine.describe(), "exact": given.exact}
        given.out.write_text(json.dumps({**facts, "results": results}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
