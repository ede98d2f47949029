"""`tilewright run`: a model once, on arrays from files or made up."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.cli.models import (
    add_command,
    add_compile_arguments,
    add_input_arguments,
    open_module,
)
from tilewright.cli.output import paragraph, say, say_json, screen_width
from tilewright.cli.writing import writing, written_file
from tilewright.feeds.first_run import first_run
from tilewright.shown import shown

__all__ = ["add_to"]

_EXAMPLES = """\
examples:
  tilewright run model.onnx                 made up inputs: does it run at all?
  tilewright run model.onnx --size batch=4 --size seq=128
  tilewright run model.onnx --input x=picture.npy --output results/
  tilewright run model.onnx --input sr=16000 --print
  tilewright run model.tw --json            a compiled model; for programs

Sizes that are not given are chosen such that the model accepts them, and
printed.
exit codes: 0 done, 1 the model or an array cannot be used, 2 wrong arguments,
130 interrupted
"""


def add_to(commands: Any) -> None:
    """Add the command's parser."""
    parser = add_command(commands, "run", "run a model once and show its results", _EXAMPLES)
    parser.add_argument("model", help="an ONNX file, or a compiled model (.tw)")
    add_input_arguments(parser)
    parser.add_argument("--output", type=Path, default=None, metavar="DIR", help="write .npy files")
    parser.add_argument("--print", action="store_true", dest="show", help="print all values")
    add_compile_arguments(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run and print."""
    module = open_module(arguments)
    first = first_run(module, arguments.input, arguments.size, arguments.seed)
    named = dict(zip([info.name for info in module.outputs], first.results, strict=True))
    if arguments.output is not None:
        _write(arguments.output, named)
    if arguments.json:
        outputs = [_facts(name, value, with_values=arguments.show) for name, value in named.items()]
        say_json({**first.facts(), "outputs": outputs})
        return 0
    if first.text:
        say(paragraph(first.text, rest="  "))
    for name, array in named.items():
        say(_line(name, array))
        if arguments.show:
            say(np.array2string(np.asarray(array), threshold=10**9, max_line_width=screen_width()))
    return 0


def _write(folder: Path, results: Mapping[str, Any]) -> None:
    hint = "name a folder that can be made, on a disk with room"
    with writing(folder, hint):
        folder.mkdir(parents=True, exist_ok=True)
    for name, value in zip(_file_names(results), results.values(), strict=True):
        array = np.asarray(value)
        if array.dtype.kind == "O" and all(isinstance(e, str) for e in array.flat):
            array = array.astype(np.str_)
        with written_file(folder / name, hint) as file:
            np.save(file, array, allow_pickle=False)


def _file_names(names: Mapping[str, Any]) -> Iterator[str]:
    """A file for each output: safe characters only, and no two alike."""
    taken: set[str] = set()
    for name in names:
        stem = safe = re.sub(r"[^-.0-9A-Za-z_]", "_", name)[:100]
        while stem in taken:
            stem = f"{safe}_{len(taken)}"
        taken.add(stem)
        yield f"{stem}.npy"


def _line(name: str, value: Any) -> str:
    facts = _facts(name, value, with_values=False)
    text = f"{shown(name)}: {facts['dtype']}{facts['shape']}"
    if "mean" in facts:
        text += f"  min {facts['min']:.6g}  mean {facts['mean']:.6g}  max {facts['max']:.6g}"
    return text + (f"  {facts['nan']} NaN" if facts.get("nan") else "")


def _facts(name: str, value: Any, *, with_values: bool) -> dict[str, Any]:
    array: NDArray[Any] = np.asarray(value)
    facts: dict[str, Any] = {"name": name, "dtype": str(array.dtype), "shape": list(array.shape)}
    if array.size and array.dtype.kind in "fiubV":
        numbers = array.astype(np.float64)
        finite = numbers[np.isfinite(numbers)]
        if finite.size:
            extremes = {"min": finite.min(), "mean": finite.mean(), "max": finite.max()}
            facts |= {key: float(number) for key, number in extremes.items()}
        facts["nan"] = int(np.isnan(numbers).sum())
    if with_values:
        facts["values"] = array.tolist()
    return facts
