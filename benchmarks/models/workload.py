"""A model at given sizes as something to measure; `benchmarks.workloads` has single operators."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from benchmarks.models.registry import MODELS
from benchmarks.models.spec import Arrays, Model

__all__ = ["ModelWorkload", "error_of", "reference"]


@dataclass(frozen=True, slots=True)
class ModelWorkload:
    """One file at one choice of sizes."""

    model_name: str
    path: str
    sizes: dict[str, int] = field(hash=False)
    dynamic: bool = False
    flops: int = 0
    weight_bytes: int = 0
    """Weights that products and convolutions read in each run."""

    group: ClassVar[str] = "models"
    op: ClassVar[str] = "model"

    @property
    def model(self) -> Model:
        return MODELS[self.model_name]

    @property
    def name(self) -> str:
        """`bert-base 1x128`, with `dynamic` behind it if the file leaves its sizes open."""
        numbers = "x".join(map(str, self.sizes.values()))
        return " ".join(filter(None, [self.model_name, numbers, "dynamic" * self.dynamic]))

    @property
    def bytes(self) -> int:
        """Bytes that must be read at least."""
        return self.weight_bytes

    @property
    def tolerance(self) -> float:
        return self.model.tolerance

    def inputs(self) -> Arrays:
        return self.model.arrays(self.sizes)

    def to_dict(self) -> dict[str, Any]:
        return {"group": self.group, **asdict(self)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        return cls(**{key: value for key, value in data.items() if key != "group"})


class OfFile(Protocol):
    """Whatever is a file with inputs."""

    @property
    def path(self) -> str: ...

    def inputs(self) -> Arrays: ...


def reference(workload: OfFile) -> list[NDArray[Any]]:
    """What onnxruntime gives with the graph as it is written: nothing fused, nothing rearranged."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = ort.InferenceSession(Path(workload.path), options, providers=["CPUExecutionProvider"])
    results: list[NDArray[Any]] = session.run(None, workload.inputs())
    return results


def error_of(results: Sequence[NDArray[Any]], expected: Sequence[NDArray[Any]]) -> float:
    """The largest deviation of an output relative to its largest value; infinite if useless."""
    if len(results) != len(expected):
        return math.inf
    return max(map(_deviation, results, expected), default=0.0)


def _deviation(result: NDArray[Any], expected: NDArray[Any]) -> float:
    if result.shape != expected.shape or result.dtype != expected.dtype:
        return math.inf
    if not expected.size:
        return 0.0
    wide = expected.astype("f8")
    scale = float(np.abs(wide).max()) or 1.0
    deviation = float(np.abs(result.astype("f8") - wide).max()) / scale
    return deviation if math.isfinite(deviation) else math.inf
