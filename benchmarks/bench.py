"""A run over many workloads: starts the engines, lets them compete, and writes down the figures."""

from __future__ import annotations

import json
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from benchmarks import kinds, machine
from benchmarks.kinds import AnyWorkload
from benchmarks.process import EngineGoneError, EngineProcess
from benchmarks.quiet import Clock
from benchmarks.report import Row
from benchmarks.turns import Settings, compete

__all__ = ["Bench", "progress", "write_results"]

FORMAT: Final = 1


class Bench:
    """Keeps the engines' processes and what is known of them over a whole run.

    `environment` is added to the variables of every engine.
    """

    def __init__(
        self,
        names: Sequence[str],
        settings: Settings,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.names, self.settings, self.environment = names, settings, environment
        self.engines: dict[str, dict[str, Any]] = {}
        self.missing: dict[str, str] = {}

    def run(self, workloads: Sequence[AnyWorkload], threads: int) -> Iterator[Row]:
        """One row per workload, with fresh processes for this thread count."""
        processes: dict[str, EngineProcess] = {}
        try:
            for i, workload in enumerate(workloads, 1):
                progress(f"{threads} threads, {i}/{len(workloads)}: {workload.name}")
                self._start_missing(processes, threads)
                with tempfile.TemporaryDirectory() as folder:
                    path = kinds.write_reference(workload, Path(folder))
                    given = kinds.with_file(workload, Path(folder))
                    start = self._clock(processes)
                    outcomes = compete(processes, given, path, self.settings)
                    foreign = self._clock(processes).foreign_since(start)
                peers = frozenset(n for n in outcomes if self.engines[n]["peer"])
                yield Row(workload, threads, outcomes, peers, foreign)
        finally:
            progress("")
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
                process = EngineProcess(name, threads, self.environment)
            except EngineGoneError as gone:
                self.missing[name] = str(gone)
                continue
            if "missing" in process.hello:
                self.missing[name] = process.hello["missing"]
                process.close()
            else:
                processes[name] = process
                self.engines[name] = process.hello


def progress(text: str) -> None:
    """What is under way: a line that overwrites itself on a terminal, else one line each."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
    elif text:
        print(text, file=sys.stderr, flush=True)


def write_results(
    path: Path,
    arguments: Sequence[str],
    bench: Bench,
    settings: dict[str, Any],
    summary: list[dict[str, Any]],
    rows: Sequence[Row],
) -> None:
    """All figures so far as JSON, with what is needed to cite them."""
    data = {
        "format": FORMAT,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": machine.commit(),
        "command": shlex.join(["python", "-m", "benchmarks", *arguments]),
        "machine": machine.describe(),
        "settings": {**asdict(bench.settings), **settings},
        "engines": bench.engines,
        "missing": bench.missing,
        "summary": summary,
        "results": [row.to_dict() for row in rows],
    }
    unfinished = path.with_name(f"{path.name}.part")
    unfinished.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    unfinished.replace(path)
