"""Write docs/speed.md from files that `python -m benchmarks models --out FILE` made.

python scripts/speed_page.py one.json two.json > docs/speed.md
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
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

YARDSTICK = "onnxruntime"
PEERS = (YARDSTICK, "openvino", "torch", "inductor", "ncnn", "mnn")

INTRODUCTION = """\
Made by `scripts/speed_page.py` from runs of the benchmark
([how it measures](../benchmarks/README.md)). Times are the best turn in ms; ratios are time of the
peer over time of tilewright: above 1 tilewright is faster. Nothing is tuned: every kernel has its
analytic draft.
"""


def page(runs: Sequence[Run]) -> str:
    """All runs on one page."""
    parts = [
        "# Speed of whole models\n",
        INTRODUCTION,
        *(_run(run) for run in runs),
    ]
    return "\n".join(parts)


def _run(run: Run) -> str:
    by_threads: dict[tuple[int, bool], list[Row]] = {}
    for row in run["results"]:
        by_threads.setdefault((row["threads"], row["dynamic"]), []).append(row)
    parts = [origin(run), f"Peers: {_versions(run)}.\n"]
    for (threads, dynamic), rows in by_threads.items():
        kind = "Dynamic files" if dynamic else "Fixed sizes"
        parts += [f"## {kind}, {threads_of(threads)}\n", _speed(rows)]
        if any(row["footprints"] for row in rows):
            parts += ["What else they cost:\n", _costs(rows)]
    return "\n".join(parts)


def _versions(run: Run) -> str:
    known = [run["engines"].get(engine, {}).get("versions", {}) for engine in PEERS]
    versions = {name: version for found in known for name, version in found.items()}
    versions.pop("compiler", None)  # inductor's: a path
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _speed(rows: Sequence[Row]) -> str:
    peers = [p for p in PEERS if any(_milliseconds(row, p) != MISSING for row in rows)]
    head = ["model", SUBJECT, *peers, f"of {YARDSTICK}", "of the best", "% of FMA peak", "error"]
    lines = [
        [
            workload(row),
            *(_milliseconds(row, engine) for engine in (SUBJECT, *peers)),
            _number(row["ratio_to_onnxruntime_min"]),
            _number(row["ratio_min"]),
            _number(row["share_of_peak"], 100, 0),
            f"{row['errors'][SUBJECT]:.0e}",
        ]
        for row in rows
    ]
    ratios = [row["ratio_to_onnxruntime_min"] for row in rows]
    best = [row["ratio_min"] for row in rows]
    mean = ["**geometric mean**", *[""] * (1 + len(peers)), _mean(ratios), _mean(best), "", ""]
    text = table(head, [*lines, mean])
    if any(row["noisy"] for row in rows):
        text += "\n`~`: other processes used the machine meanwhile.\n"
    shares = [r for r in rows if (r["share_of_bandwidth"] or {}).get(SUBJECT)]
    for row in shares:
        share = row["share_of_bandwidth"]
        others = "; ".join(f"{p} {100 * share[p]:.0f} %" for p in peers if share.get(p))
        text += (
            f"\n{row['workload']} reads {row['streamed_bytes'] / 1e6:.0f} MB of weights in each "
            f"run: {100 * share[SUBJECT]:.0f} % of the {row['bandwidth_gbps']:.0f} GB/s that the "
            f"fastest stream moves by turns in the same run ({others}).\n"
        )
    return text


def _costs(rows: Sequence[Row]) -> str:
    head = ["model", "compile s", "again s", "load `.tw` ms", f"{YARDSTICK} load ms"]
    head += ["memory MB", f"{YARDSTICK} MB", "file MB"]
    lines = []
    for row in rows:
        own, other = (row["footprints"].get(name, {}) for name in (SUBJECT, YARDSTICK))
        lines.append(
            [
                row["workload"],
                _number(row["compile_s"].get(SUBJECT), 1, 1),
                _number(own.get("compile_again_s"), 1, 2),
                _number(own.get("load_s"), 1e3, 1),
                _number(other.get("load_s"), 1e3, 1),
                _number(own.get("resident_bytes"), 1e-6, 1),
                _number(other.get("resident_bytes"), 1e-6, 1),
                _number(own.get("artefact_bytes"), 1e-6, 1),
            ]
        )
    return table(head, lines)


def _milliseconds(row: Row, engine: str) -> str:
    outcome = row["engines"].get(engine)
    if outcome is None or outcome["state"] != "ok":
        return MISSING
    seconds = outcome["min_s"]
    return f"{1e3 * seconds:.{3 if seconds < 1e-3 else 1}f}"


def _number(value: float | None, scale: float = 1.0, digits: int = 2) -> str:
    return MISSING if value is None else f"{scale * value:.{digits}f}"


def _mean(ratios: Iterable[float | None]) -> str:
    known = [ratio for ratio in ratios if ratio is not None]
    return f"**{math.exp(sum(map(math.log, known)) / len(known)):.2f}**" if known else MISSING


if __name__ == "__main__":
    print_page(page, __doc__)
