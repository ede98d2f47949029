"""`python -m benchmarks [matmul|rowwise|compile|all] [--threads 1,2] [--quick] [--out FILE]`."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import machine
from benchmarks.engines import ENGINES
from benchmarks.numbers import TOLERANCE, inputs, reference
from benchmarks.process import EngineGoneError, EngineProcess
from benchmarks.report import SUBJECT, Row, summary, table
from benchmarks.turns import Settings, compete
from benchmarks.workloads import Workload, select

GROUPS = ("matmul", "rowwise", "compile")
QUICK = Settings(rounds=4, trial_rounds=1, turn_seconds=0.004)


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    groups = [options.group] if options.group != "all" else list(GROUPS)
    workloads = list(select(groups, options.only))
    engines = [e for e in ENGINES if e in {SUBJECT, "peak", *options.peers}]
    settings = QUICK if options.quick else Settings()
    rows: list[Row] = []
    states: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for threads in options.threads:
            rows += _run(workloads, engines, threads, settings, Path(folder), states)
    shown = [name for name in engines if "versions" in states[name] and name != "peak"]
    print(table(rows, shown))
    for name, state in states.items():
        if "missing" in state:
            print(f"{name}: not available ({state['missing']})")
    if options.out:
        _write(options.out, arguments, settings, states, rows)
    wrong = [row for row in rows for name, o in row.outcomes.items() if o.state in {"wrong", "gone"} and name == SUBJECT]
    return 1 if wrong else 0
