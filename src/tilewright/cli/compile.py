"""`tilewright compile`: a model into a file that runs without the compiler."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from tilewright.cli.models import (
    add_command,
    add_compile_arguments,
    bytes_text,
    open_module,
    require_onnx,
    time_text,
)
from tilewright.cli.output import line, say, say_json
from tilewright.cli.progress import ProgressLine
from tilewright.cli.writing import require_writable, writing
from tilewright.errors import ArtefactError, TargetError
from tilewright.feeds.inputs import sizes_of, values_of
from tilewright.model.compilation import NotCompiled, Unsettled
from tilewright.model.compile_arguments import schedules_of, with_dims
from tilewright.model.compiler import compile_parts
from tilewright.model.info import TensorInfo
from tilewright.model.module import infos_of
from tilewright.model.settled import settled_values
from tilewright.model.sources import Source
from tilewright.model.whole import A121
from tilewright.runtime.artefact import SUFFIX, save
from tilewright.shown import counted, quoted
from tilewright.target import Target

__all__ = ["add_to"]

_EXAMPLES = """\
examples:
  tilewright compile model.onnx                     writes model.tw
  tilewright compile model.onnx -o m.tw
  tilewright compile model.onnx --target x86-64-v3  for machines with AVX2
  tilewright compile model.onnx --target aarch64    for another kind of machine
  tilewright compile model.onnx --layouts nchw8c    one layout for everything
  tilewright compile model.onnx --settle axes=[0,1] an input that is a constant
  tilewright compile model.onnx --size batch=1      for batches of one alone
  tilewright compile model.onnx --small             smaller, loads slower
  tilewright compile model.onnx --database my.db    by records (docs/tuning.md)
  tilewright compile model.onnx --json              what was made, for programs

The file appears in one step when it is complete; a link is followed, and
what is no regular file (a pipe, a device) is refused.
exit codes: 0 done, 1 the model cannot be compiled, 2 wrong arguments,
130 interrupted
"""

HINT = "name another file with `--output`; its folder must be there"


def add_to(commands: Any) -> None:
    """Add the command's parser."""
    parser = add_command(commands, "compile", "compile an ONNX model into a file", _EXAMPLES)
    parser.add_argument("model", help="an ONNX file")
    parser.add_argument("-o", "--output", type=Path, default=None, help="default: MODEL with .tw")
    parser.add_argument(
        "--small",
        action="store_true",
        help="store what large weights are made of; they are made when the file is loaded",
    )
    parser.add_argument(
        "--size", action="append", default=[], metavar="NAME=N",
        help="fix a symbolic dimension: the file serves this size alone",
    )  # fmt: skip
    add_compile_arguments(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Compile and write."""
    path = Path(arguments.model)
    output = arguments.output or Path(path.with_suffix(SUFFIX).name)
    start = time.perf_counter()
    require_writable(output, HINT)
    require_onnx(path, "compiling")
    if _runs_here(arguments.target):
        module = open_module(arguments, small=arguments.small, dims=sizes_of(arguments.size))
        with writing(output, HINT):
            module.save(output)
        facts: dict[str, Any] = {
            "inputs": [info.to_dict() for info in module.inputs],
            "outputs": [info.to_dict() for info in module.outputs],
            "kernels": module.kernels,
            "settled": list(module.settled),
            "by_reference": [node.to_dict() for node in module.by_reference],
        }
    else:
        facts = _for_another_machine(arguments, path, output)
    facts |= {"file": str(output), "size_bytes": output.stat().st_size}
    facts["time_s"] = round(time.perf_counter() - start, 3)
    if arguments.json:
        say_json(facts)
    else:
        say(_text(facts))
    return 0


def _runs_here(target: str) -> bool:
    try:
        Target.named(target).require_runs_on(Target.host())
    except TargetError as error:
        if error.code.id != "T004":
            raise
        return False
    return True


def _for_another_machine(arguments: argparse.Namespace, path: Path, output: Path) -> dict[str, Any]:
    """Compile without ever loading the result."""
    target = Target.named(arguments.target)
    with ProgressLine() as progress:
        given, sizes = values_of(arguments.settle), sizes_of(arguments.size)
        source: Source = with_dims(path, sizes) if sizes else path
        source, settled = settled_values(source, given) if given else (source, None)
        made = compile_parts(
            source,
            target,
            None,
            None,
            progress.compiling,
            accuracy=arguments.accuracy,
            layouts=arguments.layouts,
            settled=settled,
            small=arguments.small,
            schedules=schedules_of(arguments.database, target, arguments.threads),
        )
    if isinstance(made, Unsettled):
        names = " and ".join(map(quoted, made.needs.names))
        reason = f"it is compiled for the values of {names}, on the machine where it runs"
        facts = {"model": str(made.model.graph.name), "reason": reason}
        raise ArtefactError(A121, facts, hint="give these values now, with `--settle`")
    if isinstance(made, NotCompiled):
        facts = {"model": made.model.name, "reason": made.model.reason}
        raise ArtefactError(A121, facts, hint="it can run from its ONNX file only")
    with writing(output, HINT):
        save(output, made.parts)
    program = made.made.program
    return {
        "inputs": [info.to_dict() for info in infos_of(program.inputs)],
        "outputs": [info.to_dict() for info in infos_of(program.outputs)],
        "kernels": len(program.kernels),
        "settled": [],
        "by_reference": made.parts.extra["by_reference"],
    }


def _text(facts: dict[str, Any]) -> str:
    kernels = counted(facts["kernels"], "kernel")
    size, seconds = bytes_text(facts["size_bytes"]), time_text(facts["time_s"])
    infos = {"input ": facts["inputs"], "output": facts["outputs"]}
    lines = [
        f"{line(facts['file'])}: {size}, {kernels}, in {seconds}",
        *(
            f"  {kind}  {line(TensorInfo.from_dict(data))}"
            for kind, all_ in infos.items()
            for data in all_
        ),
        *(
            f"  compiled when it runs, for each value of {quoted(name)}"
            for name in facts["settled"]
        ),
    ]
    return "\n".join(lines)
