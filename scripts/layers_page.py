"""Write docs/layers.md from files that `python -m benchmarks conv --out FILE` made.

python scripts/layers_page.py one.json two.json > docs/layers.md
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from scripts.pages import (
    MISSING,
    SUBJECT,
    Row,
    Run,
    origin,
    print_page,
    table,
    threads_of,
    workload,
)

PEERS = ("onnxruntime", "openvino", "torch", "ncnn", "mnn")

INTRODUCTION = """\
Made by `scripts/layers_page.py` from runs of the benchmark
([how it measures](../benchmarks/README.md)). Single convolutions with a bias and a ReLU, fp32,
batch 1, channels first at both ends: what an engine converts at the borders counts (torch is also
tried with channels-last borders, which cost it nothing). GFLOP/s of the best turn with every
product counted, so that minimal filters exceed the FMA peak; the ratio is that of tilewright to the
best peer. Schedules, algorithms and layouts are the analytic draft's; nothing is tuned.

Shapes are (size, channels, filters, window, stride, border); depthwise ones have no filters,
`conv3d` begins with a depth, `dilated` has gaps of 2, `grouped` four groups.
"""


def page(runs: Sequence[Run]) -> str:
    """All runs on one page."""
    return "\n".join(["# Speed of single convolutions\n", INTRODUCTION, *map(_run, runs)])


def _run(run: Run) -> str:
    noisy = sum(row["noisy"] for row in run["results"])
    parts = [
        f"## {threads_of(run['results'][0]['threads'])}\n",
        f"{origin(run)}\n",
        _families(run["summary"]),
        _rows(run["results"]),
        f"`~`: other processes used the machine meanwhile ({noisy} rows).\n",
    ]
    return "\n".join(parts)


def _families(summary: Sequence[dict[str, Any]]) -> str:
    lines = [
        [
            group["group"].removeprefix("conv").strip() or "**all**",
            str(group["rows"]),
            f"{group['geomean_min']:.2f}",
            f"{group['geomean_median']:.2f}",
            f"{group['worst']['ratio']:.2f} ({group['worst']['workload']})",
        ]
        for group in summary
    ]
    head = ["family", "layers", "geometric mean, best turns", "medians", "lowest"]
    return table(head, lines)


def _rows(rows: Sequence[Row]) -> str:
    head = ["layer", SUBJECT, *PEERS, "of the best"]
    lines = [
        [
            workload(row),
            *(_gflops(row, engine) for engine in (SUBJECT, *PEERS)),
            f"{row['ratio_min']:.2f}",
        ]
        for row in rows
    ]
    return table(head, lines)


def _gflops(row: Row, engine: str) -> str:
    found = row["engines"].get(engine)
    if found is None or found["state"] != "ok":
        return MISSING
    return f"{row['flops'] / found['min_s'] / 1e9:.0f}"


if __name__ == "__main__":
    print_page(page, __doc__)
