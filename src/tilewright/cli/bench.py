"""`tilewright bench`: how fast a model runs, and how fast others run it."""

from __future__ import annotations

import argparse
import difflib
import math
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tilewright.cli.models import (
    add_command,
    add_compile_arguments,
    add_input_arguments,
    open_module,
    require_onnx,
    time_text,
)
from tilewright.cli.output import line, paragraph, say, say_json, screen_width
from tilewright.cli.progress import ProgressLine
from tilewright.cli.table import fitted
from tilewright.contest.engines import ENGINES
from tilewright.contest.turns import TOLERANCE, Outcome, compete
from tilewright.errors import Code, UserError
from tilewright.feeds.first_run import first_run
from tilewright.shown import counted

__all__ = ["add_to", "engines_of"]

K045 = Code("K045", "there is no engine `{name}`")

SUBJECT = "tilewright"
DIFFERENT = 3
NOT_RUN = 4
MOST_SECONDS = 3600

_EXAMPLES = """\
examples:
  tilewright bench model.onnx
  tilewright bench model.onnx --against onnxruntime,openvino --threads 1
  tilewright bench model.onnx --against onnxruntime --seconds 10
  tilewright bench model.onnx --size batch=8 --json
  tilewright bench model.tw                 a compiled model alone

Each engine has a process of its own and short turns in a random order; only
one runs at any moment. torch needs the package onnx2torch to read ONNX files.
exit codes: 0 done, 1 the model cannot be used, 2 wrong arguments,
3 results differ, 4 an engine that was asked for did not run, 130 interrupted
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
    others = engines_of(arguments.against)
    path = Path(arguments.model).absolute()
    if others:
        require_onnx(Path(arguments.model), f"`--against {arguments.against}`")
    start = time.perf_counter()
    module = open_module(arguments)
    prepare_s = time.perf_counter() - start
    first = first_run(module, arguments.input, arguments.size, arguments.seed)
    with ProgressLine() as progress, tempfile.TemporaryDirectory() as folder:
        own = Path(folder, "model.tw")
        module.save(own)
        models = {SUBJECT: own} | dict.fromkeys(others, path)
        outcomes = compete(models, first.feeds, module.threads, arguments.seconds, progress.say)
    if arguments.json:
        facts = {"threads": module.threads, "prepare_s": prepare_s, **first.facts()}
        say_json({**facts, "engines": [_facts(o, _own(outcomes)) for o in outcomes]})
    else:
        head = f"{line(path.name)}, {counted(module.threads, 'thread')}"
        say(f"{head}; compiled or found in the cache in {time_text(prepare_s)}")
        say(f"{paragraph(first.text, rest='  ')}\n" if first.text else "")
        say(_table(outcomes))
    if any(outcome.differs for outcome in outcomes):
        return DIFFERENT
    return NOT_RUN if any(outcome.problem for outcome in outcomes) else 0


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= MOST_SECONDS:
        wish = f"more than 0, at most {MOST_SECONDS}"
        raise argparse.ArgumentTypeError(f"`{text}` is not a number of seconds: {wish}")
    return value


def engines_of(text: str) -> list[str]:
    """The engines that are named in a list with commas; K045 for what is none."""
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in ENGINES:
            near = difflib.get_close_matches(name, ENGINES, n=1)
            hint = f"is `{near[0]}` meant?" if near else f"known: {', '.join(ENGINES)}"
            raise UserError(K045, {"name": name}, hint=hint)
    return names


def _own(outcomes: list[Outcome]) -> Outcome | None:
    return next((o for o in outcomes if o.engine == SUBJECT and o.samples), None)


def _facts(outcome: Outcome, own: Outcome | None) -> dict[str, Any]:
    facts: dict[str, Any] = {"engine": outcome.engine, "version": outcome.version}
    if outcome.problem or not outcome.samples:
        return facts | {"problem": outcome.problem}
    return facts | {
        "median_s": outcome.median_s,
        "min_s": outcome.min_s,
        "std_s": outcome.std_s,
        "load_s": outcome.load_s,
        "samples": len(outcome.samples),
        "ratio_to_tilewright": None if own is None else outcome.median_s / own.median_s,
        "difference": outcome.error,
        "difference_from": outcome.compared_with or None,
        "differs": outcome.differs,
    }


def _table(outcomes: list[Outcome]) -> str:
    own = _own(outcomes)
    lines = [["engine", "version", "median", "min", "std", "load", "ratio", "difference"]]
    notes = []
    for outcome in outcomes:
        if outcome.problem or not outcome.samples:
            notes.append(f"{outcome.engine} did not run: {line(outcome.problem)}")
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
    table = fitted(lines, 2, {"version": 5}, ["std", "load", "version"], screen_width())
    return "\n".join([table, "", *notes, *_legend(outcomes)])


def _legend(outcomes: list[Outcome]) -> Iterator[str]:
    """What the columns mean, as far as they say something."""
    counts = [len(outcome.samples) for outcome in outcomes if outcome.samples]
    if counts:
        yield f"times: of one run, over at least {counted(min(counts), 'sample')} of each engine"
    pairs = {o.engine: o.compared_with for o in outcomes if o.compared_with}
    if pairs:
        yield "ratio: median of the engine / median of tilewright; above 1, tilewright is faster"
        yield "difference: the greatest one, relative to the greatest element of its output:"
        yield "  " + ", ".join(f"{own} from {other}" for own, other in pairs.items())
    if any(outcome.differs for outcome in outcomes):
        yield f"! results differ by more than {TOLERANCE:.1%} of the greatest element"
