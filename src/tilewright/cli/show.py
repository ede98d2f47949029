"""`tilewright show`: a model's kernels, or a program at any stage and on from an edited one."""

from __future__ import annotations

import argparse
import difflib
import inspect
import re
from pathlib import Path
from typing import Any

from tilewright.calibration import with_machine_model
from tilewright.cli.models import add_input_arguments, add_settle_argument, is_model
from tilewright.cli.output import paragraph, say, say_json
from tilewright.cli.show_kernels import BY, SORTS
from tilewright.cli.show_model import show_model
from tilewright.cli.writing import stage_writer
from tilewright.errors import Code, UserError
from tilewright.model.compiler import AUTO
from tilewright.pipeline import KERNEL_STAGES, MODEL_STAGES, Artefact, Pipeline, Stage
from tilewright.runtime import default_threads
from tilewright.schedule import Trace
from tilewright.schedule.points import decision_data
from tilewright.schedule.source import POINTS_FORMAT, Points
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor import library
from tilewright.tensor.build import size
from tilewright.tensor.parser import parse

__all__ = ["add_to"]

K010 = Code("K010", "there is no program `{name}`")
K011 = Code("K011", "`{name}` cannot be made from {found}")
K012 = Code("K012", "the file `{path}` cannot be read: {problem}")
K014 = Code("K014", "`{path}` is neither a model nor a program, but {found}")

_EXAMPLES = """\
examples of models:
  tilewright show model.onnx                  kernels with times, limits, memory
  tilewright show model.onnx --top 10         the steps that take longest
  tilewright show model.onnx --by kernel      steps of one kernel together
  tilewright show model.onnx --graph --size batch=4    after all passes
  tilewright show model.onnx --layouts        how values are stored, and why so
  tilewright show model.onnx --trace out.json one run for a viewer of traces
  tilewright show model.onnx --until plan     a stage: see --list for all
  tilewright show model.onnx --all out/       every stage
  tilewright show model.onnx --kernel 3 --until llvm   a kernel at a stage
  tilewright show model.onnx --kernel 3 --measure      its time, alone
  tilewright show model.onnx --kernel 3 > k.tir        edit it, and go on:
  tilewright show k.tir --from scheduled --until assembly
  tilewright show model.tw --json             a compiled model, for programs

examples of tensor programs:
  tilewright show --list                      stages and ready programs
  tilewright show matmul:128,768,768          as the draft schedules it
  tilewright show matmul:128,768,768 --constants B --until assembly
  tilewright show matmul:m,768,768 --until llvm        m is a symbolic size
  tilewright show program.tir --trace steps.json       files of your own
  tilewright show softmax:128,768 --steps     the draft's steps as Python
  tilewright show matmul:64,64,64 --until object --all out/   every stage
  tilewright show out/16-llvm.ll --from llvm --until assembly go on from one

exit codes: 0 done, 1 an error (its code is printed), 2 wrong arguments,
130 interrupted
"""


def add_to(commands: Any) -> None:
    """Add the command's parser."""
    parser = commands.add_parser(
        "show",
        help="show a model's kernels, or a program at any stage, from tensor IR to assembly",
        description="Show a model, or print a tensor program at a stage of the path.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("program", nargs="?", help="a file (.onnx, .tw, .tir, .ll) or name:sizes")
    parser.add_argument(
        "--until", "--stage", default=None, metavar="STAGE", help="stop here: see --list"
    )
    parser.add_argument("--from", dest="start", default=None, metavar="STAGE", help="file's stage")
    parser.add_argument(
        "--trace",
        default="draft",
        help="programs: draft, none, or a file with a trace or points; "
        "models: write a Chrome trace here",
    )
    parser.add_argument("--steps", action="store_true", help="print the trace as Python instead")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--target", default="host", help="for example x86-64-v3, aarch64+dotprod")
    parser.add_argument("--threads", type=int, default=None, help="threads to schedule for")
    parser.add_argument("--constants", default="", help="parameters that are known ahead: B,bias")
    parser.add_argument("--all", dest="folder", type=Path, help="write every stage to this folder")
    parser.add_argument("--times", action="store_true", help="print what each stage took")
    parser.add_argument("--list", action="store_true", help="list stages and ready programs")
    models = parser.add_argument_group("models")
    models.add_argument("--graph", action="store_true", help="print the graph after all passes")
    models.add_argument(
        "--layouts", nargs="?", const=AUTO, default=None, metavar="NAME",
        help="print layouts and conversions; with a name, those of one layout for everything",
    )  # fmt: skip
    models.add_argument("--kernels", action="store_true", help="print kernels with their times")
    models.add_argument("--by", choices=BY, default="step", help="sum kernels up by this")
    models.add_argument("--sort", choices=SORTS, help="order of kernels (default: as they run)")
    models.add_argument("--top", type=_count, metavar="N", help="only the N that take longest")
    models.add_argument("--memory", action="store_true", help="print where memory goes")
    models.add_argument(
        "--kernel", type=int, default=None, metavar="N",
        help="this kernel alone, at the stage of --until (default: scheduled)",
    )  # fmt: skip
    models.add_argument(
        "--measure", action="store_true", help="run kernels one by one, outside of their model"
    )
    add_settle_argument(models)
    models.add_argument("--no-cache", action="store_true", help="compile every kernel anew")
    add_input_arguments(models)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the artefact that was asked for."""
    if arguments.program is None and arguments.layouts and is_model(arguments.layouts):
        arguments.program, arguments.layouts = arguments.layouts, AUTO  # `--layouts model.onnx`
    if arguments.list or arguments.program is None:
        _print_lists(as_json=arguments.json)
        return 0
    if is_model(arguments.program):
        return show_model(arguments)
    pipeline = Pipeline(
        with_machine_model(Target.named(arguments.target)),
        threads=arguments.threads or default_threads(),
        trace=_trace(arguments.trace),
        constants=[name for name in arguments.constants.split(",") if name],
        observers=[stage_writer(arguments.folder, KERNEL_STAGES)] if arguments.folder else [],
    )
    _print(pipeline, _follow(pipeline, arguments), arguments)
    return 0


def _print(pipeline: Pipeline, artefact: Artefact, arguments: argparse.Namespace) -> None:
    trace = pipeline.report.trace or Trace()
    if arguments.json and arguments.steps:
        say(trace.to_json())
    elif arguments.json:
        text = None if arguments.folder else artefact.text
        times = {"time_s": pipeline.report.seconds} if arguments.times else {}
        machine, made = pipeline.target.machine, pipeline.report.decisions
        decided = {"decisions": [decision_data(own, machine) for own in made]} if made else {}
        say_json({"stage": artefact.stage, **decided, "text": text, **times})
    else:
        if arguments.steps:
            say(trace.as_python())
        elif not arguments.folder:
            say(artefact.text)
        if arguments.times:
            say(f"\n{pipeline.report}")


def _follow(pipeline: Pipeline, arguments: argparse.Namespace) -> Any:
    path = Path(arguments.program)
    if path.suffix == ".ll" or arguments.start:
        stage = arguments.start or "llvm"
        return pipeline.resume(stage, _read(path), arguments.until or "assembly")
    return pipeline.run(_program(arguments.program), arguments.until or "scheduled")


def _program(text: str) -> tir.Func:
    """A ready program, or the one in a file."""
    name, _, sizes = text.partition(":")
    if name in library.__all__:
        return _ready(name, sizes)
    path = Path(text)
    if path.is_dir() or (path.is_file() and path.suffix != ".tir"):
        raise _neither(path)
    if path.suffix or len(path.parts) > 1:
        return parse(_read(path))
    close = difflib.get_close_matches(name, library.__all__, n=1)
    near = f"did you mean `{close[0]}`? " if close else ""
    hint = f"{near}`tilewright show --list` has all; a file is told by its ending, see `--help`"
    raise UserError(K010, {"name": name}, hint=hint)


def _neither(path: Path) -> UserError:
    """What is there, and what could be: the ending of a file says what it is."""
    found = f"a file `*{path.suffix}`" if path.suffix else "a file without an ending"
    expected = "a model `*.onnx` or `*.tw`, a program `*.tir` or `*.ll`, or `name:sizes`"
    hint = "rename it, or say with `--from` which stage it is"
    if path.is_dir():
        found, hint = "a folder", "name a file in it"
    return UserError(K014, {"path": path, "found": found, "expected": expected}, hint=hint)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        hint = "check the path; a ready program is written `name:sizes`, see `--list`"
        raise UserError(K012, {"path": path, "problem": reason}, hint=hint) from None


def _trace(text: str) -> Trace | Points | str:
    """What a program is scheduled by; a file has a trace, or points."""
    if text in ("draft", "none"):
        return text
    data = _read(Path(text))
    return Points.from_json(data) if POINTS_FORMAT in data else Trace.from_json(data)


def _ready(name: str, sizes: str) -> tir.Func:
    """A program of the library, for `size,size,…`; a word is a symbolic size."""
    words = [word for word in re.split(r"[,x]", sizes) if word]
    symbols = {word: size(word) for word in words if not word.lstrip("-").isdigit()}
    values = [symbols[word] if word in symbols else int(word) for word in words]
    try:
        func: tir.Func = getattr(library, name)(*values)
    except (TypeError, ValueError, IndexError) as problem:
        facts = {"name": name, "found": sizes or "no sizes", "problem": problem}
        raise UserError(K011, facts, hint=f"write `{_usage(name)}`") from None
    return func


def _usage(name: str) -> str:
    """`matmul:m,n,k`: the sizes that a ready program needs."""
    parameters = inspect.signature(getattr(library, name)).parameters.values()
    sizes = [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    return f"{name}:{','.join(p.name for p in sizes)}"


def _print_lists(*, as_json: bool) -> None:
    programs = [{"usage": _usage(n), "summary": _summary(n)} for n in library.__all__]
    models, kernels = ([_described(s) for s in table] for table in (MODEL_STAGES, KERNEL_STAGES))
    if as_json:
        say_json({"stages": kernels, "model_stages": models, "programs": programs})
        return
    titles = {"stages of a model, in order:": models, "\nstages of a tensor program:": kernels}
    for title, stages in titles.items():
        say(title)
        for stage in stages:
            say(paragraph(stage["summary"], f"  {stage['name']:<20} ", " " * 23))
    last = [stage["name"] for stage in kernels if stage["resumable"]][-1]
    note = f"texts from program to {last} can be edited and read again (--from), those of a kernel"
    say("\n" + paragraph(f"{note} of a model as well; other texts are for people"))
    say("\nready programs (name:sizes):")
    for program in programs:
        say(f"  {program['usage']}\n{paragraph(program['summary'], ' ' * 6, ' ' * 6)}")
    say("\nsee `tilewright show --help` for examples")


def _described(stage: Stage) -> dict[str, Any]:
    return {"name": stage.name, "summary": stage.summary, "resumable": stage.is_resumable}


def _summary(name: str) -> str:
    return (getattr(library, name).__doc__ or "").partition("\n")[0]


def _count(text: str) -> int:
    if not re.fullmatch("[1-9][0-9]{0,8}", text):
        raise argparse.ArgumentTypeError(f"`{text}` is not a number of rows")
    return int(text)
