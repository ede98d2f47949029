"""`tilewright bench`: how fast a model runs, and how fast others run it."""

from __future__ import annotations

import argparse
import difflib
import tempfile
import time
from pathlib import Path
from typing import Any

from tilewright.cli.inputs import arrays_for
from tilewright.cli.models import (
    add_command,
    add_compile_arguments,
    add_input_arguments,
    aligned,
    open_module,
    time_text,
)
from tilewright.cli.output import line, say, say_json
from tilewright.cli.progress import ProgressLine
from tilewright.contest.engines import ENGINES
from tilewright.contest.turns import Outcome, compete
from tilewright.errors import Code, UserError

__all__ = ["add_to"]

K045 = Code("K045", "there is no engine `{name}`")

SUBJECT = "tilewright"
DIFFERENT = 3

_EXAMPLES = """\
examples:
  tilewright bench model.onnx
  tilewright bench model.onnx --against onnxruntime,openvino --threads 1 --seconds 10
  tilewright bench model.onnx --size batch=8 --json
  tilewright bench model.tw                           a compiled model alone

Each engine has a process of its own and short turns in a random order; only one runs at any moment.
An engine that is not installed is left out. torch needs the package onnx2torch to read ONNX files.
exit codes: 0 done, 1 the model cannot be used, 2 wrong arguments, 3 results differ
"""


def add_to(commands: Any) -> None:
    """Add the command's parser."""
    parser = add_command(commands, "bench", "time a model, also on other engines", _EXAMPLES)
    parser.add_argument("model", help="an ONNX file, or a compiled model (.tw)")
    parser.add_argument(
        "--against", default="", help="engines: onnxruntime,openvino,torch,reference"
    )
    parser.add_argument(
        "--seconds", type=_seconds, default=3.0, help="for each engine (default: 3)"
    )
    add_input_arguments(parser)
    add_compile_arguments(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Measure, print, compare."""
    others = [name for name in arguments.against.split(",") if name]
    for name in others:
        _require_engine(name)
    start = time.perf_counter()
    module = open_module(arguments)
    prepare_s = time.perf_counter() - start
    feeds = arrays_for(
        module.inputs, arguments.input, arguments.size, arguments.seed, module.settled
    )
    with ProgressLine() as progress, tempfile.TemporaryDirectory() as folder:
        own, path = Path(folder, "model.tw"), Path(arguments.model).absolute()
        module.save(own)
        models = {SUBJECT: own} | dict.fromkeys(others, path)
        outcomes = compete(models, feeds, module.threads, arguments.seconds, progress.say)
    if arguments.json:
        facts = {"threads": module.threads, "prepare_s": prepare_s}
        say_json({**facts, "engines": [_facts(o) for o in outcomes]})
    else:
        head = (
            f"{line(path.name)}, {module.threads} {'thread' if module.threads == 1 else 'threads'}"
        )
        say(f"{head}; compiled or found in the cache in {time_text(prepare_s)}\n")
        say(_table(outcomes))
    return DIFFERENT if any(outcome.differs for outcome in outcomes) else 0


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value <= 3600:
        raise argparse.ArgumentTypeError(f"`{text}` is not a time between 0 and 3600 seconds")
    return value


def _require_engine(name: str) -> None:
    if name not in ENGINES:
        near = difflib.get_close_matches(name, ENGINES, n=1)
        hint = f"is `{near[0]}` meant?" if near else f"known: {', '.join(ENGINES)}"
        raise UserError(K045, {"name": name}, hint=hint)


def _facts(outcome: Outcome) -> dict[str, Any]:
    facts: dict[str, Any] = {"engine": outcome.engine, "version": outcome.version}
    if outcome.problem or not outcome.samples:
        return facts | {"problem": outcome.problem}
    return facts | {
        "median_s": outcome.median_s,
        "min_s": outcome.min_s,
        "std_s": outcome.std_s,
        "load_s": outcome.load_s,
        "samples": len(outcome.samples),
        "error": outcome.error,
        "differs": outcome.differs,
    }


def _table(outcomes: list[Outcome]) -> str:
    own = next((o for o in outcomes if o.engine == SUBJECT and o.samples), None)
    lines = [["engine", "version", "median", "min", "std", "load", "ratio", "difference"]]
    notes = []
    for outcome in outcomes:
        if outcome.problem or not outcome.samples:
            notes.append(f"{outcome.engine}: {line(outcome.problem)}")
            continue
        ratio = outcome.median_s / own.median_s if own is not None else None
        times = (outcome.median_s, outcome.min_s, outcome.std_s, outcome.load_s)
        error = "-" if outcome.error is None else f"{outcome.error:.1e}"
        lines.append(
            [
                outcome.engine,
                outcome.version,
                *map(time_text, times),
                "-" if ratio is None else f"{ratio:.2f}",
                f"{error} !" if outcome.differs else error,
            ]
        )
    end = "ratio: median time over that of tilewright; difference: to the results of another engine"
    if any(outcome.differs for outcome in outcomes):
        end += "\n! results differ by more than 0.1 % of the greatest element"
    return "\n".join([aligned(lines, left=2), "", *notes, end])
