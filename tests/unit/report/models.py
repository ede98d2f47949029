"""A small network with a choice of layouts, and records of what was tried for its kernels."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from tests.small import make
from tilewright.model.compiler import Compiling
from tilewright.pipeline import ModelPipeline
from tilewright.pipeline.model import PlannedModel
from tilewright.records import Database, Record
from tilewright.records.record import OK
from tilewright.report.data import About, Report, gather
from tilewright.target import Target

THREADS = 2
HOSTILE = "relu<script>alert(1)</script>&\x1b[31m\u202e"
REFUSED = "the tile of `C` needs <37> registers & more"


def network() -> onnx.ModelProto:
    """Two convolutions with a short cut around the second, a pool, and a product."""
    rng = np.random.default_rng(0)
    shapes = {"w1": (16, 3, 3, 3), "w2": (16, 16, 3, 3), "fc": (16, 10)}
    weights = {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], "conv1", pads=[1] * 4, strides=[2, 2]),
        helper.make_node("Relu", ["a"], ["b"], HOSTILE),
        helper.make_node("Conv", ["b", "w2"], ["c"], "conv2", pads=[1] * 4),
        helper.make_node("Add", ["c", "b"], ["d"], "add"),
        helper.make_node("GlobalAveragePool", ["d"], ["e"], "pool"),
        helper.make_node("Flatten", ["e"], ["f"], "flatten"),
        helper.make_node("MatMul", ["f", "fc"], ["y"], "product"),
    ]
    return make(nodes, [("x", [1, 3, 32, 32])], [("y", [1, 10])], weights)


def planned(model: onnx.ModelProto) -> PlannedModel:
    """The model up to its kernels."""
    how = Compiling(Target.host(), THREADS, "default", "auto")
    made = ModelPipeline(how).run(model, until="plan").value
    assert isinstance(made, PlannedModel)
    return made


def trials(model: PlannedModel, of_each: int = 12) -> Iterator[Record]:
    """Records of two searches and some failures for every kernel but the last, which has none."""
    rng = random.Random(0)
    point = ["scattered.ScatteredPoint", {"vectors": 2}]
    for number, task in enumerate(model.planned.kernels[:-1]):
        draft_ns = 1e4 * (number + 1)
        for k in range(of_each):
            when = f"2026-01-01T00:{number:02}:{k:02}+00:00"
            facts = {"outcome": "build", "detail": REFUSED, "when": when}
            refused = Record.of(task.workload(Target.host()), THREADS, **facts)
            if k % 4 == 3:
                yield replace(refused, points={"C": ["scattered.ScatteredPoint", {"vectors": k}]})
                continue
            ratio = 0.5 if (number, k) == (1, 6) else rng.uniform(1.0, 2.5)
            by = "by random" if k % 2 else "by evolution"
            times = {"time_ns": ratio * draft_ns, "reference_ns": draft_ns}
            yield replace(refused, **times, outcome=OK, detail=by, points={"C": point})


def report_of(model: PlannedModel, path: Path) -> Report:
    """The report about a model, from a database that may not be there."""
    about = About("net.onnx", "a processor", THREADS, path)
    if not path.exists():
        return gather(model, about, Target.host(), None)
    with Database(path, readonly=True) as database:
        return gather(model, about, Target.host(), database)
