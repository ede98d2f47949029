"""`python -m benchmarks [matmul|rowwise|compile|all] [--threads 1,2] [--quick] [--out FILE]`."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import machine
from benchmarks.engines import ENGINES
from benchmarks.numbers import TOLERANCE, inputs, reference
from benchmarks.process import EngineGoneError, EngineProcess
from benchmarks.quiet import Clock
from benchmarks.report import SUBJECT, Row, summary, table
from benchmarks.turns import Settings, compete
from benchmarks.workloads import Workload, select

GROUPS = ("matmul", "rowwise", "compile")
QUICK = Settings(rounds=4, trial_rounds=1, turn_seconds=0.004)
FORMAT = 1


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    groups = GROUPS if options.group == "all" else (options.group,)
    workloads = list(select(groups, options.only))
    settings = QUICK if options.quick else Settings()
    bench = Bench([SUBJECT, *options.peers, "peak"], settings)
    rows = [row for threads in options.threads for row in bench.run(workloads, threads)]
    print(table(rows, [name for name in ENGINES if name in bench.engines and name != "peak"]))
    for name, why in bench.missing.items():
        print(f"{name}: not available ({why})")
    if options.out:
        _write(options.out, arguments, bench, rows)
    own = [row.outcomes[SUBJECT].state for row in rows if SUBJECT in row.outcomes]
    return 1 if {"wrong", "gone", "failed"} & set(own) else 0


class Bench:
    """Keeps the engines' processes and what is known of them over a whole run."""

    def __init__(self, names: list[str], settings: Settings) -> None:
        self.names, self.settings = names, settings
        self.engines: dict[str, dict[str, Any]] = {}
        self.missing: dict[str, str] = {}

    def run(self, workloads: list[Workload], threads: int) -> Iterator[Row]:
        """One row per workload, with fresh processes for this thread count."""
        processes: dict[str, EngineProcess] = {}
        try:
            with tempfile.TemporaryDirectory() as folder:
                for i, workload in enumerate(workloads, 1):
                    _progress(f"{threads} threads, {i}/{len(workloads)}: {workload.name}")
                    self._start_missing(processes, threads)
                    path = _reference_file(workload, Path(folder))
                    start = self._clock(processes)
                    outcomes = compete(processes, workload, path, self.settings)
                    foreign = self._clock(processes).foreign_since(start)
                    peers = frozenset(n for n in outcomes if self.engines[n]["peer"])
                    yield Row(workload, threads, outcomes, peers, foreign)
        finally:
            _progress("")
            for process in processes.values():
                process.close()

    @staticmethod
    def _clock(processes: dict[str, EngineProcess]) -> Clock:
        return Clock.read(process.pid for process in processes.values())

    def _start_missing(self, processes: dict[str, EngineProcess], threads: int) -> None:
        """Start what is not running yet, or was lost in the workload before."""
        for name in self.names:
            if name in processes or name in self.missing:
                continue
            try:
                process = EngineProcess(name, threads)
            except EngineGoneError as gone:
                self.missing[name] = str(gone)
                continue
            if "missing" in process.hello:
                self.missing[name] = process.hello["missing"]
                process.close()
            else:
                processes[name] = process
                self.engines[name] = process.hello


def _reference_file(workload: Workload, folder: Path) -> str | None:
    """The expected result on disk, computed once for all engines."""
    if workload.op == "trace":
        return None
    path = folder / "reference.npy"
    np.save(path, reference(workload, inputs(workload)))
    return str(path)


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def _write(path: Path, arguments: list[str], bench: Bench, rows: list[Row]) -> None:
    data = {
        "format": FORMAT,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": machine.commit(),
        "command": shlex.join(["python", "-m", "benchmarks", *arguments]),
        "machine": machine.describe(),
        "settings": {**asdict(bench.settings), "tolerance": TOLERANCE},
        "engines": bench.engines,
        "missing": bench.missing,
        "summary": summary(rows),
        "results": [row.to_dict() for row in rows],
    }
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    print(f"written to {path}")


def _parse(arguments: list[str]) -> argparse.Namespace:
    peers = [name for name in ENGINES if name not in {SUBJECT, "peak"}]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Speed against the peers: every engine in its own process, by turns.",
        epilog="example: python -m benchmarks matmul --threads 1 --only 768 --out results.json",
    )
    parser.add_argument("group", nargs="?", default="all", choices=[*GROUPS, "all"])
    parser.add_argument(
        "--threads", type=_thread_counts, default=_default_threads(), help="for example 1,2"
    )
    parser.add_argument(
        "--peers", type=_names_among(peers), default=peers, help=f"some of {','.join(peers)}"
    )
    parser.add_argument("--only", default="", metavar="PATTERN", help="part of a workload's name")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write all figures as JSON")
    parser.add_argument("--quick", action="store_true", help="few short turns: a look, no claim")
    return parser.parse_args(arguments)


def _default_threads() -> list[int]:
    return sorted({1, len(os.sched_getaffinity(0))})


def _thread_counts(text: str) -> list[int]:
    counts = [int(item) for item in text.split(",")]
    available = len(os.sched_getaffinity(0))
    if not all(1 <= count <= available for count in counts):
        raise argparse.ArgumentTypeError(f"thread counts go from 1 to {available} here")
    return counts


def _names_among(known: list[str]) -> Any:
    def parse(text: str) -> list[str]:
        names = [name for name in text.split(",") if name]
        if unknown := set(names) - set(known):
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(sorted(unknown))}")
        return names

    return parse


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
