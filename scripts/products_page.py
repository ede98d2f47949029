"""Write docs/products.md from files that `python -m benchmarks matmul --out FILE` made.

python scripts/products_page.py one.json two.json > docs/products.md
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

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

PEERS = ("onnxruntime", "openvino", "torch", "numpy")

INTRODUCTION = """\
Made by `scripts/products_page.py` from runs of the benchmark
([how it measures](../benchmarks/README.md)). Products in fp32, of M×N×K with constant weights, and
`batched` ones of two operands of the call. Microseconds of the best turn; the ratio is the time of
the best peer over that of tilewright, and the share of the FMA peak is that of an FMA-only loop in
the same run: products that use each weight once or a few times are bound by memory instead.
"""


def page(runs: Sequence[Run]) -> str:
    """All runs on one page."""
    return "\n".join(["# Speed of products\n", INTRODUCTION, *map(_run, runs)])


def _run(run: Run) -> str:
    (group,) = run["summary"]
    worst = group["worst"]
    means = f"{group['geomean_min']:.2f} (medians {group['geomean_median']:.2f})"
    parts = [
        f"## {threads_of(run['results'][0]['threads'])}\n",
        f"{origin(run)}\n",
        f"Geometric mean {means}, lowest {worst['ratio']:.2f} ({worst['workload']}).\n",
        _rows(run["results"]),
    ]
    return "\n".join(parts)


def _rows(rows: Sequence[Row]) -> str:
    head = ["product", SUBJECT, *PEERS, "of the best", "% of FMA peak", "best peer"]
    lines = [
        [
            workload(row),
            *(_microseconds(row, engine) for engine in (SUBJECT, *PEERS)),
            f"{row['ratio_min']:.2f}",
            f"{100 * row['share_of_peak']:.0f}",
            f"{100 * row['share_of_peak'] / row['ratio_min']:.0f}",
        ]
        for row in rows
    ]
    return table(head, lines)


def _microseconds(row: Row, engine: str) -> str:
    found = row["engines"].get(engine)
    if found is None or found["state"] != "ok":
        return MISSING
    return f"{1e6 * found['min_s']:.0f}"


if __name__ == "__main__":
    print_page(page, __doc__)
