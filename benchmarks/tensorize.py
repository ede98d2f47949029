"""`python -m benchmarks tensorize [--threads 1,2] [--only TEXT] [--quick] [--out FILE]`

Quantised products and convolutions against ONNX Runtime and OpenVINO, every engine in its own
process, by turns; and beside them the same layer of floats, by this compiler.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

from benchmarks.bench import Bench, write_results
from benchmarks.command_line import default_threads, thread_counts
from benchmarks.quantised import FORMS, LAYERS, QuantisedWorkload, write_quantised
from benchmarks.report import SUBJECT, summary, table
from benchmarks.turns import Settings

__all__ = ["main"]

PEERS = ("onnxruntime", "openvino")
QUICK = Settings(rounds=4, trial_rounds=1, turn_seconds=0.004)


def main(arguments: list[str]) -> int:
    """Measure, print, and write what was found."""
    options = _parse(arguments)
    bench = Bench([SUBJECT, *PEERS, "peak"], QUICK if options.quick else Settings())
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        workloads = [_written(w, Path(folder)) for w in _selected(options.only)]
        for threads in options.threads:
            for row in bench.run(workloads, threads):
                rows.append(row)
                if options.out:
                    command = ["tensorize", *arguments]
                    write_results(options.out, command, bench, {}, summary(rows), rows)
    print(table(rows, [name for name in (SUBJECT, *PEERS) if name in bench.engines]))
    for name, why in bench.missing.items():
        print(f"{name}: not available ({why})")
    own = [row.outcomes[SUBJECT].state for row in rows if SUBJECT in row.outcomes]
    return 1 if {"wrong", "gone", "failed"} & set(own) or not rows else 0


def _selected(text: str) -> list[QuantisedWorkload]:
    every = (
        QuantisedWorkload(form, op, shape)
        for op, shape in LAYERS
        for form in FORMS["matmul" if op == "matmul" else "conv"]
    )
    return [workload for workload in every if text in workload.name]


def _written(workload: QuantisedWorkload, folder: Path) -> QuantisedWorkload:
    path = folder / f"{workload.name}.onnx"
    write_quantised(workload, path)
    return replace(workload, path=str(path))


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks tensorize",
        description="Quantised layers against ONNX Runtime and OpenVINO, by turns.",
        epilog="example: python -m benchmarks tensorize --threads 1 --only C2 --out results.json",
    )
    parser.add_argument(
        "--threads", type=thread_counts, default=default_threads(), help="for example 1,2"
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="names that contain it")
    parser.add_argument("--quick", action="store_true", help="few rounds: a first look")
    parser.add_argument("--out", type=Path, help="write all figures as JSON")
    return parser.parse_args(arguments)
