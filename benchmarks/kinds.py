"""What differs between single operators and models: their inputs, their reference, the check."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import numbers
from benchmarks.models import workload as models
from benchmarks.models.workload import ModelWorkload
from benchmarks.quantised import QuantisedWorkload
from benchmarks.workloads import Workload

__all__ = ["AnyWorkload", "error_of", "feeds", "inputs", "read", "read_reference", "tolerance"]
__all__ += ["with_file", "write_reference"]

AnyWorkload = Workload | ModelWorkload | QuantisedWorkload

KINDS = {kind.group: kind for kind in (ModelWorkload, QuantisedWorkload)}
"""Those that are files, with inputs and results of their own; all others are single operators."""


def read(data: dict[str, Any]) -> AnyWorkload:
    """The inverse of `to_dict`."""
    return KINDS.get(data["group"], Workload).from_dict(data)


def inputs(workload: AnyWorkload) -> dict[str, Any]:
    """Arrays by name, the same in every process."""
    return numbers.inputs(workload) if isinstance(workload, Workload) else workload.inputs()


def feeds(workload: AnyWorkload, arrays: dict[str, Any]) -> dict[str, Any]:
    """Those of the arrays that the file of a workload has as inputs."""
    return {"x": arrays["x"]} if isinstance(workload, Workload) else arrays


def with_file(workload: AnyWorkload, folder: Path) -> AnyWorkload:
    """A convolution with the file of its layer, written now; other workloads as they are."""
    if not isinstance(workload, Workload) or workload.convolution is None:
        return workload
    from benchmarks.layers import write_layer

    path = folder / f"{workload.name}.onnx"
    write_layer(workload.convolution, numbers.inputs(workload), path)
    return replace(workload, path=str(path))


def tolerance(workload: AnyWorkload) -> float:
    """The largest error of a result that counts as right."""
    return numbers.tolerance(workload) if isinstance(workload, Workload) else workload.tolerance


def write_reference(workload: AnyWorkload, folder: Path) -> str | None:
    """The expected result on disk, computed once for all engines; None where there is none."""
    if not isinstance(workload, Workload):
        path = folder / "reference.npz"
        np.savez(path, *models.reference(workload))
    elif workload.op == "trace":
        return None
    else:
        path = folder / "reference.npy"
        np.save(path, numbers.reference(workload, numbers.inputs(workload)))
    return str(path)


def read_reference(path: str | None) -> Any:
    """One array, or the list of all outputs of a model."""
    if path is None:
        return None
    if not path.endswith(".npz"):
        return np.load(path)
    with np.load(path) as arrays:
        return [arrays[name] for name in arrays.files]


def error_of(workload: AnyWorkload, result: Any, expected: Any) -> float:
    """How far a result is from the reference, relative to its largest value."""
    if not isinstance(workload, Workload):
        return models.error_of(result, expected)
    if workload.path and isinstance(result, list):  # an engine that reads the file as any model's
        (result,) = result
    return numbers.error_of(result, expected)
