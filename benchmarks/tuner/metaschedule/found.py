"""What a search of MetaSchedule has written before its end: lines of JSON, the last one in part."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

__all__ = ["RECORDS", "WORKLOADS", "Found", "found_in"]

WORKLOADS: Final = "database_workload.json"
RECORDS: Final = "database_tuning_record.json"
FAILED: Final = 1e9
"""Seconds of candidates that could not be built or run."""


@dataclass(frozen=True)
class Found:
    """Trials, those of them that failed, and the least seconds of a run (None without any)."""

    trials: int
    failures: int
    best_s: float | None


def found_in(folder: Path) -> Found:
    """Count the records, and drop the line that was being written: TVM refuses files with one."""
    lines = _whole_lines(folder / WORKLOADS), _whole_lines(folder / RECORDS)
    seconds = [_seconds(json.loads(line)) for line in lines[1]]
    good = [each for each in seconds if each < FAILED]
    return Found(len(seconds), len(seconds) - len(good), min(good, default=None))


def _whole_lines(path: Path) -> list[str]:
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    return whole.splitlines()


def _seconds(record: Any) -> float:
    """The mean of a record's runs: [workload, [trace, seconds, target, arguments]]."""
    runs = record[1][1]
    return math.fsum(runs) / len(runs) if runs else math.inf
