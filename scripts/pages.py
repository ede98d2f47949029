"""What the pages of results have in common: their command line, tables, and where runs are from.

Pages of speeds are made of the JSON files that `python -m benchmarks … --out FILE` wrote, by one
script for each kind of benchmark; the script's own part is which tables it shows.
"""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

SUBJECT = "tilewright"
MISSING = "–"
"""Shown where an engine has no result."""

Run = dict[str, Any]
"""One file of the benchmark."""

Row = dict[str, Any]
"""One of its results: a workload with the times of all engines."""


def print_page(page: Callable[[Sequence[Run]], str], description: str | None) -> None:
    """Print what `page` makes of the files on the command line."""
    print(page(read(command_line(description).parse_args().results)), end="")


def command_line(description: str | None) -> argparse.ArgumentParser:
    """Takes files of the benchmark, at least one."""
    summary = (description or "").split("\n", maxsplit=1)[0]
    parser = argparse.ArgumentParser(description=summary)
    parser.add_argument("results", nargs="+", type=Path, help="files of the benchmark")
    return parser


def read(files: Iterable[Path]) -> list[Run]:
    """The runs in some files."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in files]


def origin(run: Run) -> str:
    """The command of a run, without the name of its file, and when and where it ran."""
    command = shlex.split(run["command"])
    if "--out" in command:
        at = command.index("--out")
        del command[at : at + 2]
    machine = run["machine"]
    cpu = f"{machine['cpu']} ({machine['target']['cpu']})"  # servers share names, kinds do not
    return f"`{shlex.join(command)}`, commit {run['commit']}, {run['when'][:10]}, {cpu}."


def threads_of(count: int) -> str:
    """`1 thread` or `2 threads`."""
    return f"{count} {'thread' if count == 1 else 'threads'}"


def workload(row: Row) -> str:
    """The name of a row, with `~` if other processes disturbed it."""
    return str(row["workload"]) + (" ~" if row["noisy"] else "")


def table(head: Sequence[str], lines: Iterable[Sequence[str]], words: int = 1) -> str:
    """A table whose first columns have words and all others numbers."""
    ruler = ["---"] * words + ["--:"] * (len(head) - words)
    return "".join(f"| {' | '.join(line)} |\n" for line in (head, ruler, *lines))
