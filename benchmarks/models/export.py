"""From a torch module, or from the file of a package, to the ONNX file of a model."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from inspect import signature
from pathlib import Path
from typing import Any, Final

from benchmarks.models.spec import Exported, Model, Packaged

__all__ = ["write"]

OPSETS: Final = {"dynamo": 18, "script": 17}
"""What each exporter speaks without converting."""


def write(model: Model, path: Path, *, dynamic: bool, exporter: str) -> None:
    """Make the file; ImportError: a package is missing."""
    match model.source:
        case Packaged() as source:
            _copy(model, source, path, dynamic=dynamic)
        case Exported() as source:
            with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                warnings.simplefilter("ignore")
                logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # packages it did not find
                _export(model, source, path, dynamic=dynamic, exporter=exporter)


def _export(model: Model, source: Exported, path: Path, *, dynamic: bool, exporter: str) -> None:
    import torch

    module = source.module()
    arrays = model.arrays(_traced_sizes(model) if dynamic else model.sizes[0])
    options: dict[str, Any] = {
        "input_names": [given.name for given in model.inputs],
        "output_names": list(source.outputs),
        "opset_version": OPSETS[exporter],
        "dynamo": exporter == "dynamo",
    }
    if exporter == "dynamo":
        options |= {"external_data": False, "verbose": False}
    if dynamic and exporter == "dynamo":
        options["dynamic_shapes"] = _dynamic_shapes(model, module)
    elif dynamic:
        options["dynamic_axes"] = _named_axes(model)
    with torch.no_grad():
        tensors = tuple(torch.from_numpy(array) for array in arrays.values())
        torch.onnx.export(module, tensors, path, **options)


def _traced_sizes(model: Model) -> dict[str, int]:
    """Sizes to trace with: an extent of one would be taken for a constant."""
    return {name: max(size, 2) for name, size in model.sizes[0].items()}


def _named_axes(model: Model) -> dict[str, dict[int, str]]:
    """By input: which dimension has which name."""
    return {
        given.name: {axis: dim for axis, dim in enumerate(given.dims) if isinstance(dim, str)}
        for given in model.inputs
    }


def _dynamic_shapes(model: Model, module: Any) -> tuple[Any, ...]:
    """The same for the newer exporter, nested as the parameters of the module are."""
    from torch.export import Dim

    def extent(name: str) -> Any:
        return Dim.DYNAMIC if "+" in name else Dim(name)  # it finds out about sums by itself

    axes = _named_axes(model).values()
    shapes = [{axis: extent(name) for axis, name in item.items()} for item in axes]
    plain = [p for p in signature(module.forward).parameters.values() if p.kind != p.VAR_POSITIONAL]
    rest = tuple(shapes[len(plain) :])
    return (*shapes[: len(plain)], *([rest] if rest else []))


def _copy(model: Model, source: Packaged, path: Path, *, dynamic: bool) -> None:
    """The file with named dimensions, or with numbers in their place."""
    import onnx

    loaded = onnx.load(source.find())
    if source.edit is not None:
        source.edit(loaded)
    given = {item.name: item for item in loaded.graph.input}
    for wanted in model.inputs:
        dims = given[wanted.name].type.tensor_type.shape.dim
        numbers = wanted.shape(model.sizes[0])
        for dim, number, name in zip(dims, numbers, wanted.dims, strict=True):
            if isinstance(name, str) and (dynamic or not source.takes_numbers):
                dim.dim_param = name
            else:
                dim.dim_value = number
    inputs = [given[wanted.name] for wanted in model.inputs]
    loaded.graph.ClearField("input")  # in old files every weight is an input as well
    loaded.graph.input.extend(inputs)
    loaded.ir_version = max(loaded.ir_version, 4)
    onnx.save(loaded, path)
