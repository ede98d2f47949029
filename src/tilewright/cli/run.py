"""`tilewright run`: a model once, on arrays from files or made up."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.cli.inputs import arrays_for
from tilewright.cli.models import (
    add_command,
    add_compile_arguments,
    add_input_arguments,
    open_module,
)
from tilewright.cli.output import say, say_json
from tilewright.shown import shown

__all__ = ["add_to"]

_EXAMPLES = """\
examples:
  tilewright run model.onnx                           with made up inputs: does it run at all?
  tilewright run model.onnx --size batch=4 --size seq=128
  tilewright run model.onnx --input x=picture.npy --output results/
  tilewright run model.onnx --input sr=16000 --print
  tilewright run model.tw --json                      a compiled model; results for programs

exit codes: 0 done, 1 the model or an array cannot be used, 2 wrong arguments
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
    ways = arguments.input, arguments.size, arguments.seed, module.settled, module.overridable
    feeds = arrays_for(module.inputs, *ways)
    results = module.run(feeds)
    named = dict(zip([info.name for info in module.outputs], results, strict=True))
    if arguments.output is not None:
        _write(arguments.output, named)
    if arguments.json:
        facts = {name: _facts(array, with_values=arguments.show) for name, array in named.items()}
        say_json(facts)
        return 0
    for name, array in named.items():
        say(_line(name, array))
        if arguments.show:
            say(np.array2string(np.asarray(array), threshold=10**9, max_line_width=120))
    return 0


def _write(folder: Path, results: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in results.items():
        np.save(folder / f"{re.sub(r'[^-.0-9A-Za-z_]', '_', name)}.npy", array, allow_pickle=False)


def _line(name: str, value: Any) -> str:
    facts = _facts(value, with_values=False)
    text = f"{shown(name)}: {facts['dtype']}{facts['shape']}"
    if "mean" in facts:
        text += f"  min {facts['min']:.6g}  mean {facts['mean']:.6g}  max {facts['max']:.6g}"
    return text + (f"  {facts['nan']} NaN" if facts.get("nan") else "")


def _facts(value: Any, *, with_values: bool) -> dict[str, Any]:
    array: NDArray[Any] = np.asarray(value)
    facts: dict[str, Any] = {"dtype": str(array.dtype), "shape": list(array.shape)}
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
