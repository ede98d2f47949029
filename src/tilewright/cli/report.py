"""`tilewright report`: a page about what tuning has done to a model."""

from __future__ import annotations

import argparse
import webbrowser
from pathlib import Path
from typing import Any, Final

from tilewright.calibration import with_machine_model
from tilewright.cli.db import K070, database_path
from tilewright.cli.models import (
    add_command,
    add_database_argument,
    add_settle_argument,
    add_threads_argument,
    require_onnx,
)
from tilewright.cli.output import line, say, say_json
from tilewright.cli.progress import ProgressLine
from tilewright.cli.show_model import K046
from tilewright.cli.writing import require_writable, written_file
from tilewright.errors import UserError
from tilewright.feeds.inputs import sizes_of, values_of
from tilewright.model.compilation import NotCompiled, Unsettled
from tilewright.model.compile_arguments import schedules_of, with_dims
from tilewright.model.compiler import ACCURACIES, AUTO, Compiling
from tilewright.model.settled import settled_values
from tilewright.model.sources import Source
from tilewright.pipeline import ModelPipeline
from tilewright.pipeline.model import PlannedModel
from tilewright.records import Database
from tilewright.report.data import About, Report, gather
from tilewright.report.page import page_of
from tilewright.runtime import default_threads
from tilewright.shown import counted, time_text
from tilewright.target import Target
from tilewright.target.host import cpu_name

__all__ = ["add_to"]

HINT: Final = "name another file with `--output`; its folder must be there"

_EXAMPLES = """\
examples:
  tilewright report model.onnx                      writes model.report.html
  tilewright report model.onnx -o report.html --open yes
  tilewright report model.onnx --database my.sqlite --threads 1
  tilewright report model.onnx --json               the same data for programs

The page is one file that needs no network: tuning curves, a roofline, the
algorithm and layout of each kernel, and what failed. Give the options with
which the model was tuned. Nothing is compiled or run. See docs/tuning.md.
exit codes: 0 done, 1 an error (its code is printed), 2 wrong arguments,
130 interrupted
"""


def add_to(commands: Any) -> None:
    """Add the command's parser."""
    summary = "write a page about what tuning has done to a model"
    parser = add_command(commands, "report", summary, _EXAMPLES)
    parser.add_argument("model", help="an ONNX file")
    parser.add_argument(
        "-o", "--output", type=Path, default=None, metavar="FILE",
        help="the page (default: MODEL.report.html)",
    )  # fmt: skip
    parser.add_argument(
        "--open", choices=("yes", "no"), default="no", help="show it in a browser (default: no)"
    )
    add_threads_argument(parser)
    parser.add_argument("--target", default="host", help="for example x86-64-v3 (default: host)")
    parser.add_argument(
        "--accuracy", choices=ACCURACIES, default="default", help="see docs/models.md"
    )
    add_database_argument(parser)
    add_settle_argument(parser)
    parser.add_argument(
        "--size", action="append", default=[], metavar="NAME=N",
        help="a symbolic dimension that has this size",
    )  # fmt: skip
    parser.add_argument(
        "--json", action="store_true", help="print the data as JSON; a page with -o alone"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Gather, write, and say where it is."""
    path = Path(arguments.model)
    require_onnx(path, "`tilewright report`")
    output = arguments.output or Path(f"{path.stem}.report.html")
    is_written = arguments.output is not None or not arguments.json
    if is_written:
        require_writable(output, HINT)
    report = _report(path, arguments)
    if is_written:
        with written_file(output, HINT) as file:
            file.write(page_of(report).encode("utf-8", "backslashreplace"))
    if arguments.json:
        say_json(report.to_dict())
    else:
        say(_text(report, output))
    if is_written and arguments.open == "yes":
        webbrowser.open(output.absolute().as_uri())
    return 0


def _text(report: Report, output: Path) -> str:
    where = f"{line(output)}: {line(report.about.model)}"
    if not report.measured:
        return f"{where}, no records of its kernels yet (`tilewright tune` makes some)"
    times = " → ".join(time_text(time / 1e9) for time in (report.before_ns, report.after_ns))
    kernels = f"{len(report.measured)} of {counted(len(report.kernels), 'kernel')}"
    return f"{where}, {times} for {kernels}, {counted(report.trials, 'trial')}"


def _report(path: Path, arguments: argparse.Namespace) -> Report:
    target = with_machine_model(Target.named(arguments.target))
    known = database_path(arguments)
    threads = arguments.threads or default_threads()
    about = About(path.name, _cpu(target), threads, known)
    if not known.exists():
        if arguments.database is not None:
            raise UserError(K070, {"path": known}, hint="check the path")
        return gather(_planned(path, arguments, target), about, target, None)
    with Database(known, readonly=True) as database:
        return gather(_planned(path, arguments, target), about, target, database)


def _planned(path: Path, arguments: argparse.Namespace, target: Target) -> PlannedModel:
    """The model up to its kernels, as `tw.compile` would make it with the same records."""
    sizes, given = sizes_of(arguments.size), values_of(arguments.settle)
    source: Source = with_dims(path, sizes) if sizes else path
    source, settled = settled_values(source, given) if given else (source, None)
    schedules = schedules_of(arguments.database, target, arguments.threads)
    how = Compiling(target, arguments.threads, arguments.accuracy, AUTO, schedules=schedules)
    with ProgressLine() as progress:
        made = ModelPipeline(how, progress.compiling, settled).run(source, until="plan").value
    if isinstance(made, NotCompiled | Unsettled):
        raise _without_kernels(path, made)
    assert isinstance(made, PlannedModel)
    return made


def _without_kernels(path: Path, made: NotCompiled | Unsettled) -> UserError:
    reason, hint = "values of its inputs decide what is compiled", "give some with --settle"
    if isinstance(made, NotCompiled):
        reason = f"it runs by reference as a whole, because {made.model.reason}"
        hint = "run it as it is"
    facts = {"model": path.name, "what": "its kernels", "reason": reason}
    return UserError(K046, facts, hint=hint)


def _cpu(target: Target) -> str:
    """What the processor calls itself, if it is this one."""
    is_here = target.fingerprint == Target.host().fingerprint
    return (cpu_name() if is_here else "") or target.cpu
