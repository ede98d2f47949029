"""`tilewright tune`: search for faster kernels, show what is found, remember it."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tilewright.cli.bench import engines_of
from tilewright.cli.db import database_path
from tilewright.cli.models import add_command, add_threads_argument, require_onnx
from tilewright.cli.output import complain, say, say_json_line, screen_width
from tilewright.cli.tune_summary import Summary
from tilewright.cli.tune_watch import Watcher, watcher_for
from tilewright.feeds.inputs import sizes_of
from tilewright.model.compiler import ACCURACIES
from tilewright.shown import in_line

if TYPE_CHECKING:
    from tilewright.tuning.tuner import TuneReport

__all__ = ["add_to"]

INTERRUPTED: Final = 130
LOCAL: Final = "local"
BUDGET: Final = "10m"
STRATEGIES: Final = ("evolution", "annealing", "genetic", "random", "grid")

_EXAMPLES = """\
examples:
  tilewright tune model.onnx                        for ten minutes
  tilewright tune model.onnx --budget 1h30m
  tilewright tune model.onnx --trials 2000 --threads 1
  tilewright tune model.onnx --against onnxruntime  beside another engine
  tilewright tune model.onnx --size batch=8         for batches of eight
  tilewright tune model.onnx --database my.sqlite   records of its own
  tilewright tune model.onnx --runner ray:HOST:6379 measure on other machines
  tilewright tune model.onnx --json > events.jsonl  a line for each event
  tilewright report model.onnx                      then: a page about it

Each measurement is saved at once. Stop whenever you like (Ctrl-C): the best so
far is in use already, and the same command goes on. See docs/tuning.md.
exit codes: 0 done, 1 an error (its code is printed), 2 wrong arguments,
130 interrupted
"""


def add_to(commands: Any) -> None:
    """Add the command's parser."""
    summary = "search for faster kernels of a model, and remember them"
    parser = add_command(commands, "tune", summary, _EXAMPLES)
    parser.add_argument("model", help="an ONNX file")
    parser.add_argument(
        "--budget", default=None, metavar="TIME",
        help=f"how long: 90s, 10m, 1h30m (default: {BUDGET}, or none with --trials)",
    )  # fmt: skip
    parser.add_argument("--trials", type=_count, metavar="N", help="how many measurements at most")
    add_threads_argument(parser)
    parser.add_argument(
        "--accuracy", choices=ACCURACIES, default="default", help="see docs/models.md"
    )
    parser.add_argument(
        "--database", type=Path, default=None, metavar="FILE",
        help="where records go (default: TILEWRIGHT_DATABASE, or the user's own)",
    )  # fmt: skip
    parser.add_argument(
        "--against", default="", metavar="ENGINES",
        help="also time these: onnxruntime,openvino,torch,reference",
    )  # fmt: skip
    parser.add_argument(
        "--runner", type=_runner, default=LOCAL, help="local (default), ray, or ray:ADDRESS"
    )
    parser.add_argument(
        "--strategy", choices=STRATEGIES, default=STRATEGIES[0], help="how to search"
    )
    parser.add_argument(
        "--loops-only", action="store_true", help="keep the layouts and algorithms as they are"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the search")
    parser.add_argument(
        "--size", action="append", default=[], metavar="NAME=N",
        help="a symbolic dimension that is to have this size",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print events as lines of JSON")
    parser.add_argument("--quiet", action="store_true", help="print the summary alone")
    parser.set_defaults(run=run, say_error=say_json_line)


def run(arguments: argparse.Namespace) -> int:
    """Tune, show how it goes, and sum it up."""
    path = Path(arguments.model)
    require_onnx(path, "`tilewright tune`")
    options = _options(arguments)
    with watcher_for(is_json=arguments.json, is_quiet=arguments.quiet) as watcher:
        report = _tuned(path, options, watcher)
    state = watcher.state if report is None else report.state
    if state is None:  # interrupted before there was anything to save
        complain("tilewright: interrupted")
        return INTERRUPTED
    summary = Summary(
        state,
        options["database"] if report is None else report.database,
        watcher.outcomes,
        is_interrupted=report is None or report.is_interrupted,
        use=_use(arguments),
        again=_command(arguments),
    )
    if arguments.json:
        say_json_line({"event": "report", **summary.facts()})
    else:
        say(summary.text(screen_width()))
    return INTERRUPTED if summary.is_interrupted else 0


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    """What `tilewright.tune` is called with."""
    from tilewright.tuning.budget import parse_budget

    text = arguments.budget or (None if arguments.trials else BUDGET)
    return {
        "trials": arguments.trials,
        "budget_s": None if text is None else parse_budget(text),
        "database": database_path(arguments),
        "runner": arguments.runner,
        "threads": arguments.threads,
        "accuracy": arguments.accuracy,
        "joint": not arguments.loops_only,
        "strategy": arguments.strategy,
        "seed": arguments.seed,
        "dims": sizes_of(arguments.size) or None,
        "against": engines_of(arguments.against),
    }


def _tuned(path: Path, options: dict[str, Any], watcher: Watcher) -> TuneReport | None:
    """The tuner's report; None where it was interrupted before it could make one."""
    from tilewright.tuning.api import tune

    try:
        return tune(path, on_event=watcher, **options)
    except KeyboardInterrupt:
        return None


def _use(arguments: argparse.Namespace) -> str:
    """The call by which the records are used."""
    given = [json.dumps(arguments.model)]
    if arguments.threads is not None:
        given.append(f"threads={arguments.threads}")
    if arguments.accuracy != "default":
        given.append(f"accuracy={json.dumps(arguments.accuracy)}")
    if arguments.size:
        given.append(f"dims={json.dumps(sizes_of(arguments.size))}")
    if arguments.database is not None:
        given.append(f"database={json.dumps(str(arguments.database))}")
    return f"tw.compile({', '.join(given)})"


def _command(arguments: argparse.Namespace) -> str:
    """The command line that goes on."""
    words = ["tilewright", "tune", arguments.model]
    usual = {"accuracy": "default", "runner": LOCAL, "strategy": STRATEGIES[0], "seed": 0}
    names = ("budget", "trials", "threads", "accuracy", "database", "against", "runner")
    for name in (*names, "strategy", "seed"):
        value = getattr(arguments, name)
        if value not in (None, "", usual.get(name)):
            words += [f"--{name}", str(value)]
    words += [word for size in arguments.size for word in ("--size", size)]
    words += ["--loops-only"] if arguments.loops_only else []
    return in_line(shlex.join(words))


def _runner(text: str) -> str:
    kind, _, address = text.partition(":")
    if kind not in {LOCAL, "ray"} or (address and kind == LOCAL) or text.endswith(":"):
        raise argparse.ArgumentTypeError(f"`{text}` is none of: local, ray, ray:ADDRESS")
    return text


def _count(text: str) -> int:
    if not re.fullmatch("[1-9][0-9]{0,8}", text, flags=re.ASCII):
        raise argparse.ArgumentTypeError(f"`{text}` is not a number of trials")
    return int(text)
