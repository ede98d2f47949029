"""`tilewright compile`: a model into a file that runs without the compiler."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tilewright.cli.inputs import values_of
from tilewright.cli.models import (
    add_command,
    add_compile_arguments,
    bytes_text,
    open_module,
    require_file,
    time_text,
)
from tilewright.cli.output import line, say, say_json
from tilewright.cli.progress import ProgressLine
from tilewright.errors import ArtefactError, Code, TargetError, UserError
from tilewright.model.compiler import NotCompiled, Unsettled, compile_parts
from tilewright.model.module import infos_of
from tilewright.model.settled import settled_values
from tilewright.model.whole import A121
from tilewright.runtime.artefact import SUFFIX, save
from tilewright.shown import quoted
from tilewright.target import Target

__all__ = ["add_to"]

K048 = Code("K048", "`{path}` cannot be written: {problem}")

_EXAMPLES = """\
examples:
  tilewright compile model.onnx                       writes model.tw
  tilewright compile model.onnx -o m.tw
  tilewright compile model.onnx --target x86-64-v3    for all machines with AVX2
  tilewright compile model.onnx --target aarch64      for machines of another kind
  tilewright compile model.onnx --layouts nchw8c      one layout for all feature maps
  tilewright compile model.onnx --settle axes=[0,1]   an input that becomes a constant
  tilewright compile model.onnx --json                what was made, for programs

exit codes: 0 done, 1 the model cannot be compiled, 2 wrong arguments
"""


def add_to(commands: Any) -> None:
    """Add the command's parser."""
    parser = add_command(commands, "compile", "compile an ONNX model into a file", _EXAMPLES)
    parser.add_argument("model", help="an ONNX file")
    parser.add_argument("-o", "--output", type=Path, default=None, help="default: MODEL with .tw")
    add_compile_arguments(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Compile and write."""
    path = Path(arguments.model)
    output = arguments.output or Path(path.with_suffix(SUFFIX).name)
    start = time.perf_counter()
    if _runs_here(arguments.target):
        with _written(output):
            module = open_module(arguments)
            module.save(output)
        facts: dict[str, Any] = {
            "inputs": [info.exact for info in module.inputs],
            "outputs": [info.exact for info in module.outputs],
            "kernels": module.kernels,
            "settled": list(module.settled),
            "by_reference": [node.to_dict() for node in module.by_reference],
        }
    else:
        with _written(output):
            facts = _for_another_machine(arguments, path, output)
    facts |= {"file": str(output), "bytes": output.stat().st_size}
    facts["seconds"] = round(time.perf_counter() - start, 3)
    if arguments.json:
        say_json(facts)
    else:
        say(_text(facts))
    return 0


@contextmanager
def _written(path: Path) -> Iterator[None]:
    """Refuse a place where no file can be (K048), as far as possible before anything is done."""
    try:
        if path.is_dir() or not os.access(path.parent, os.W_OK):
            raise OSError("it is a folder" if path.is_dir() else "its folder cannot be written")
        yield
    except OSError as problem:
        facts = {"path": path, "problem": problem.strerror or str(problem)}
        hint = "name another file with `--output`; its folder must be there"
        raise UserError(K048, facts, hint=hint) from None


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
    require_file(path)
    target = Target.named(arguments.target)
    with ProgressLine() as progress:
        given = values_of(arguments.settle)
        source, settled = settled_values(path, given) if given else (path, None)
        made = compile_parts(
            source,
            target,
            None,
            None,
            progress.compiling,
            accuracy=arguments.accuracy,
            layouts=arguments.layouts,
            settled=settled,
        )
    if isinstance(made, Unsettled):
        names = " and ".join(map(quoted, made.needs.names))
        reason = f"it is compiled for the values of {names}, on the machine where it runs"
        facts = {"model": str(made.model.graph.name), "reason": reason}
        raise ArtefactError(A121, facts, hint="give these values now, with `--settle`")
    if isinstance(made, NotCompiled):
        facts = {"model": made.model.name, "reason": made.model.reason}
        raise ArtefactError(A121, facts, hint="it can run from its ONNX file only")
    save(output, made.parts)
    program = made.made.program
    return {
        "inputs": [info.exact for info in infos_of(program.inputs)],
        "outputs": [info.exact for info in infos_of(program.outputs)],
        "kernels": len(program.kernels),
        "settled": [],
        "by_reference": made.parts.extra["by_reference"],
    }


def _text(facts: dict[str, Any]) -> str:
    size, seconds = bytes_text(facts["bytes"]), time_text(facts["seconds"])
    lines = [
        f"{line(facts['file'])}: {size}, {facts['kernels']} kernels, in {seconds}",
        *(f"  input   {line(text)}" for text in facts["inputs"]),
        *(f"  output  {line(text)}" for text in facts["outputs"]),
        *(
            f"  compiled when it runs, for each value of {quoted(name)}"
            for name in facts["settled"]
        ),
    ]
    return "\n".join(lines)
