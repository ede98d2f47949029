"""`python -m benchmarks tuner WHAT`: what tuning finds, how soon, and what it survives.

Run nothing else meanwhile. Figures are written as JSON with the name of the CPU, after every task:
`scripts/tuner_page.py` makes docs/tuning-results.md of them.
"""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from benchmarks import machine
from benchmarks.command_line import names_among
from benchmarks.models import MODELS
from benchmarks.tuner.comparisons import Keep, search, transfer
from benchmarks.tuner.everywhere import EVERYWHERE
from benchmarks.tuner.faults import faults
from benchmarks.tuner.joint import ITEMS, joint
from benchmarks.tuner.models import models
from benchmarks.tuner.overhead import overhead
from benchmarks.tuner.rivals import TASKS, rivals
from benchmarks.tuner.searches import WAYS
from benchmarks.tuner.tasks import FRESH, LAYERS, NAMES, TAGGED

__all__ = ["SUBCOMMANDS", "main"]

SUBCOMMANDS: Final[dict[str, Callable[[argparse.Namespace, Keep], dict[str, Any]]]] = {
    "search": search,
    "transfer": transfer,
    "models": models,
    "joint": joint,
    "rivals": rivals,
    "overhead": overhead,
    "faults": faults,
}
DEFAULT_TASKS: Final = {"rivals": TASKS, "transfer": FRESH}
SECONDS: Final = {"models": 600.0, "joint": 240.0, "rivals": 240.0}


def main(arguments: Sequence[str]) -> int:
    """Run one of the comparisons."""
    options = _parse(arguments)
    about = {
        "what": options.what,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": machine.commit(),
        "command": shlex.join(["python", "-m", "benchmarks", "tuner", *arguments]),
        "machine": machine.describe(),
        "threads": options.threads,
    }

    def keep(found: dict[str, Any]) -> None:
        if options.out:
            unfinished = options.out.with_name(f"{options.out.name}.part")
            unfinished.write_text(json.dumps(about | found, indent=1) + "\n", encoding="utf-8")
            unfinished.replace(options.out)

    found = SUBCOMMANDS[options.what](options, keep)
    keep(found)
    print(json.dumps(found.get("summary", found), indent=1))
    if options.out:
        print(f"written to {options.out}")
    return 0


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks tuner", description=__doc__)
    parser.add_argument("what", choices=SUBCOMMANDS)
    parser.add_argument("names", nargs="*", help="for models and joint: which ones")
    parser.add_argument(
        "--tasks", type=names_among(NAMES), metavar="C1,…", help=f"some of {','.join(NAMES)}"
    )
    parser.add_argument(
        "--ways",
        type=names_among((*WAYS, *EVERYWHERE)),
        default=["random", "evolution"],
        metavar="WAY,…",
        help=f"for search: some of {','.join((*WAYS, *EVERYWHERE))}; the first is the baseline",
    )
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--budget", type=float, help="seconds for each model, item or tuner")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--loops-only", action="store_true", help="for models: layouts stay")
    parser.add_argument("--layouts", type=int, default=16, help="of the template, for search")
    parser.add_argument("--history", type=Path, help="for transfer: kept here, or taken from here")
    parser.add_argument(
        "--at-once", type=int, default=1, metavar="N", help="tasks of search and transfer at once"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write all figures as JSON")
    options = parser.parse_intermixed_args(arguments)
    if options.budget is None:
        options.budget = SECONDS.get(options.what, 0.0)
    if options.tasks is None:
        options.tasks = list(DEFAULT_TASKS.get(options.what, LAYERS))
    known = {"models": MODELS.keys(), "joint": {*TAGGED, *MODELS}}.get(options.what, set())
    if unknown := set(options.names) - set(known):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    if options.at_once > 1 and options.threads > 1:
        parser.error("--at-once is for one thread: each task has a processor of its own")
    if options.what == "models" and not options.names:
        parser.error("which models?")
    if options.what == "joint" and not options.names:
        options.names = list(ITEMS)
    return options
