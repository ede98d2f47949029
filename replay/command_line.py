"""The commands: `record` a corpus, `compare` two recordings, the tree `against` a commit."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from replay.against import base_commit, record_both
from replay.compare import LINES, report
from replay.record import TARGETS, items, record

__all__ = ["main"]

SAME, DIFFERENT, WRONG = 0, 1, 2
"""How a command ends."""


def main(arguments: list[str]) -> int:
    """Run a command; 1 if something differs, 2 if it cannot be done."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except (ValueError, OSError, RuntimeError, subprocess.CalledProcessError) as problem:
        print(f"replay: {problem}", file=sys.stderr)
        return WRONG


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m replay", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    one = commands.add_parser("record", help="record the tilewright that is imported")
    one.add_argument("folder", type=Path, metavar="FOLDER")
    _add_selection(one)
    one.set_defaults(run=_record)
    two = commands.add_parser("compare", help="compare two recordings")
    two.add_argument("first", type=Path, metavar="A")
    two.add_argument("second", type=Path, metavar="B")
    _add_differences(two)
    two.set_defaults(run=_compare)
    both = commands.add_parser("against", help="compare the working tree with a commit")
    about = "default: HEAD if something has changed since, else HEAD~1"
    both.add_argument("revision", nargs="?", metavar="REV", help=about)
    _add_selection(both)
    _add_differences(both)
    both.set_defaults(run=_against)
    listed = commands.add_parser("list", help="names of the corpus")
    listed.add_argument("--only", default="*", metavar="PATTERN")
    listed.set_defaults(run=_list)
    return parser


def _add_selection(parser: argparse.ArgumentParser) -> None:
    about = "items whose names match, such as 'matmul-*x64' or 'models/'"
    parser.add_argument("--only", default="*", metavar="PATTERN", help=about)
    targets = f"default: {' '.join(TARGETS)}"
    parser.add_argument("--targets", nargs="+", default=list(TARGETS), metavar="T", help=targets)
    parser.add_argument("--workers", type=int, default=2, help="processes (default 2)")


def _add_differences(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--diff", type=int, default=3, metavar="N", help="texts shown (default 3)")
    about = f"lines of each (default {LINES})"
    parser.add_argument("--lines", type=int, default=LINES, metavar="N", help=about)


def _record(options: argparse.Namespace) -> int:
    names = items(options.only)
    if not names:
        raise ValueError(f"nothing in the corpus matches {options.only}")
    begin = time.monotonic()

    def tell(done: int, total: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{done} of {total}", end="", file=sys.stderr, flush=True)

    made = record(options.folder, names, options.targets, options.workers, tell)
    seconds = time.monotonic() - begin
    counted = f"{len(names)} programs and models, {len(made.records)} records"
    print(f"{made.package}: {counted} in {seconds:.0f} s", file=sys.stderr)
    for text in made.missing:
        print(f"missing: {text}", file=sys.stderr)
    return SAME


def _compare(options: argparse.Namespace) -> int:
    text, is_null = report(options.first, options.second, options.diff, options.lines)
    print(text)
    return SAME if is_null else DIFFERENT


def _against(options: argparse.Namespace) -> int:
    commit = base_commit(options.revision)
    print(f"the working tree against {commit}", file=sys.stderr, flush=True)
    passed = ["--workers", str(options.workers)]
    is_part = options.only != "*" or options.targets != list(TARGETS)
    part = ["--only", options.only, "--targets", *options.targets] if is_part else []
    options.first, options.second = record_both(commit, passed, part)
    return _compare(options)


def _list(options: argparse.Namespace) -> int:
    print("\n".join(items(options.only)))
    return SAME
