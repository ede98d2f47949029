"""Several tasks at once, each in a process that has a processor of its own.

    python -m benchmarks tuner search --at-once 2 …

Searches that are compared by trials, not by seconds, may go on beside each other: a process that is
bound to one processor builds and measures there in turn, and its candidates take turns with their
reference, so that a neighbour in the shared cache meets both. What is said of wall time, and
kernels on several threads, needs the machine for itself.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

__all__ = ["each_apart"]

PROGRAM = ["-m", "benchmarks", "tuner"]


def each_apart(
    what: str, names: Sequence[str], arguments: Sequence[str], at_once: int
) -> Iterator[dict[str, Any]]:
    """What `python -m benchmarks tuner WHAT --tasks NAME` finds of each task, as it comes."""
    processors: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in sorted(os.sched_getaffinity(0))[:at_once]:
        processors.put(number)

    def run(name: str) -> dict[str, Any]:
        own = processors.get()
        try:
            return _run([what, "--tasks", name, *arguments], own)
        finally:
            processors.put(own)

    with ThreadPoolExecutor(at_once) as pool:
        try:
            for done in as_completed([pool.submit(run, name) for name in names]):
                yield done.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _run(arguments: Sequence[str], processor: int) -> dict[str, Any]:
    """One process of its own, bound to a processor before it imports anything."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "found.json")
        command = [sys.executable, *PROGRAM, *arguments, "--out", str(out)]
        exec_args = repr([sys.executable, command])
        bound = f"import os; os.sched_setaffinity(0, {{{processor}}}); os.execv(*{exec_args})"
        subprocess.run([sys.executable, "-c", bound], check=True)
        found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        return found
