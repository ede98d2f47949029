"""Engines by turns on one workload, among them one engine several times, with different databases.

Results are checked against the reference, and what other processes took meanwhile is recorded, as
in all comparisons of engines (`benchmarks/turns.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.kinds import AnyWorkload, write_reference
from benchmarks.models.workload import ModelWorkload
from benchmarks.process import EngineProcess
from benchmarks.quiet import Clock
from benchmarks.report import Row
from benchmarks.turns import Settings, compete

__all__ = ["SHORT", "Entrant", "MissingError", "contest", "with_database"]

LONG: Final = Settings(rounds=12, trial_rounds=1, turn_seconds=0.1)
"""For whole models, as `benchmarks models` has it."""
SHORT: Final = Settings()


class MissingError(Exception):
    """An engine is not installed."""


@dataclass(frozen=True)
class Entrant:
    """An engine, and the variables that its process is given."""

    engine: str
    environment: Mapping[str, str] = field(default_factory=dict)


def with_database(path: Path | None) -> Entrant:
    """The engine with the records of a database; None: as drafted."""
    return Entrant("tilewright", {"TILEWRIGHT_DATABASE": "none" if path is None else str(path)})


def contest(
    entrants: Mapping[str, Entrant], workload: AnyWorkload, threads: int, folder: Path
) -> Row:
    """Outcomes by the names of the entrants; a convolution has its file already."""
    settings = LONG if isinstance(workload, ModelWorkload) else SHORT
    reference = write_reference(workload, folder)
    with ExitStack() as stack:
        processes: dict[str, EngineProcess] = {}
        for name, entrant in entrants.items():
            process = EngineProcess(entrant.engine, threads, entrant.environment, name)
            stack.callback(process.close)
            if "missing" in process.hello:
                raise MissingError(f"{entrant.engine}: {process.hello['missing']}")
            processes[name] = process
        peers = frozenset(n for n, process in processes.items() if process.hello["peer"])
        pids = [process.pid for process in processes.values()]
        start = Clock.read(pids)
        outcomes = compete(processes, workload, reference, settings)
        foreign = Clock.read(pids).foreign_since(start)
    return Row(workload, threads, outcomes, peers, foreign)
