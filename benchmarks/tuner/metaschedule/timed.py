"""A search of MetaSchedule that ends when its time is over, with all processes that it started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from benchmarks.process import ROOT, THREAD_VARIABLES
from benchmarks.tuner.metaschedule.found import Found, found_in
from benchmarks.tuner.metaschedule.search import READY

__all__ = ["SearchError", "Searched", "run_search"]

COMMAND: Final = [sys.executable, "-m", "benchmarks.tuner.metaschedule.search"]


class SearchError(Exception):
    """A search ended early, or has found nothing; with its last words."""


@dataclass(frozen=True)
class Searched:
    """What was found, and how long it took."""

    found: Found
    seconds: float


def run_search(request: Mapping[str, Any], folder: Path, seconds: float) -> Searched:
    """Let a search run for so many seconds; its records are in the folder."""
    folder.mkdir()
    scratch = folder / "scratch"
    scratch.mkdir()
    threads = str(request["threads"])
    variables = dict.fromkeys((*THREAD_VARIABLES, "TVM_NUM_THREADS"), threads)
    with (folder / "log.txt").open("w+b") as log:
        process = subprocess.Popen(
            [*COMMAND, json.dumps(request), str(folder)],
            cwd=ROOT,
            env={**os.environ, **variables, "TMPDIR": str(scratch)},
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
        try:
            _wait_until_ready(process, log)
            begin = time.monotonic()
            with suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=seconds)
            spent = time.monotonic() - begin
        finally:
            _end(process)
        found = found_in(folder)
        if found.best_s is None:
            raise SearchError(f"nothing found in {spent:.0f} s; {_last_words(log)}")
    return Searched(found, spent)


def _wait_until_ready(process: subprocess.Popen[bytes], log: IO[bytes]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == READY.encode():
            return
    raise SearchError(_last_words(log))


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the search with its workers, which are of its session."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def _last_words(log: IO[bytes]) -> str:
    log.seek(0)
    lines = log.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "no message"
