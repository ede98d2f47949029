"""Models whose records put the bias with the weights: their results are those of the drafts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from onnx import ModelProto, helper

import tilewright as tw
from tests.background import wait_for_writers
from tests.small import make
from tilewright.calibration import with_machine_model
from tilewright.model.compiler import Compiling
from tilewright.model.kernels import KernelTask, compile_task
from tilewright.model.standalone import standalone
from tilewright.pipeline import ModelPipeline
from tilewright.records import Database, Record, Records
from tilewright.schedule.recipes.contraction.recipe import CONTRACTION
from tilewright.schedule.source import DRAFT, Points
from tilewright.target import Target

TARGET = with_machine_model(Target.host())


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype(np.float32)


def convolutions() -> ModelProto:
    """Single places, groups, and windows that move by two, which no other algorithm computes."""
    sizes = {"0": (24, 16, 1, 1), "1": (40, 12, 1, 1), "2": (20, 24, 3, 3)}
    weights = {f"w{n}": random(*shape) for n, shape in sizes.items()}
    weights |= {f"b{n}": random(shape[0]) for n, shape in sizes.items()}
    nodes = [
        helper.make_node("Conv", ["x", "w0", "b0"], ["c0"]),
        helper.make_node("Relu", ["c0"], ["r0"]),
        helper.make_node("Conv", ["r0", "w1", "b1"], ["c1"], group=2),
        helper.make_node("Sigmoid", ["c1"], ["y"]),
        helper.make_node("Conv", ["r0", "w2", "b2"], ["z"], strides=[2, 2], pads=[1] * 4),
    ]
    return make(nodes, [("x", [1, 16, 10, 10])], [("y", None), ("z", None)], weights)


def classifiers() -> ModelProto:
    """Two products have the same weights and bias, a third the bias, which is used alone, too."""
    weights = {"w": random(40, 50), "v": random(40, 50) + 1, "b": random(50)}
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["first"]),
        helper.make_node("Sin", ["x"], ["other"]),
        helper.make_node("Gemm", ["other", "w", "b"], ["second"]),
        helper.make_node("Relu", ["second"], ["r"]),
        helper.make_node("Gemm", ["other", "v", "b"], ["third"]),
        helper.make_node("Softmax", ["first"], ["s"]),
        helper.make_node("Add", ["s", "b"], ["y"]),
    ]
    outputs = [(name, None) for name in ("first", "r", "third", "y")]
    return make(nodes, [("x", [6, 40])], outputs, weights)


MODELS = {"convolutions": convolutions, "classifiers": classifiers}
SHAPES = {"convolutions": (1, 16, 10, 10), "classifiers": (6, 40)}


def tasks_of(model: ModelProto, threads: int) -> list[KernelTask]:
    how = Compiling(TARGET, threads, "default", "auto")
    return ModelPipeline(how, lambda _: None).run(model, until="plan").value.planned.kernels


def with_bias(task: KernelTask) -> dict[str, object]:
    """The drafted points of a kernel, with what is added to columns behind their panels."""
    decisions = DRAFT.schedule(task.workload(TARGET)).decisions
    return {
        d.block: replace(d.point, bias_in_panels=1, parts=1)
        for d in decisions
        if d.recipe is CONTRACTION and d.shape.biases
    }


@pytest.fixture(params=MODELS)
def name(request) -> str:
    return request.param


@pytest.fixture
def database(name, tmp_path):
    """Records that prefer the bias with the weights wherever it can be."""
    with Database(tmp_path / "records.sqlite") as opened:
        for task in tasks_of(MODELS[name](), 1):
            workload, points = task.workload(TARGET), with_bias(task)
            if points:
                times = {"time_ns": 1.0, "reference_ns": 100.0, "label": "a layer"}
                opened.add(Record.of(workload, 1, points, **times))
        yield opened


def compiled(name: str, cache: object = False, **settings: object):
    made = tw.compile(MODELS[name](), threads=1, cache=cache, **settings)
    wait_for_writers()
    return made


def same(found, expected) -> None:
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_models_by_records_compute_what_drafts_do(name, database, rng, tmp_path):
    x = rng.uniform(-1, 1, SHAPES[name]).astype(np.float32)
    drafted = compiled(name, database=False).run(x)
    source = Records(database, TARGET, 1)
    stored = [
        spec.packing
        for task in tasks_of(MODELS[name](), 1)
        for spec in compile_task(task, TARGET, source).interface.params
        if spec.packing is not None and spec.packing.guests
    ]
    assert len(stored) >= 2
    cache = tmp_path / "cache"
    made = compiled(name, cache, database=database)
    same(made.run(x), drafted)
    same(compiled(name, cache, database=database).run(x), drafted)
    made.save(tmp_path / "model.tw")
    same(tw.load(tmp_path / "model.tw").run(x), drafted)


def test_single_kernels_take_the_arrays_of_their_program(name):
    found = 0
    for task in tasks_of(MODELS[name](), 1):
        points = with_bias(task)
        if points:
            plain, own = (
                standalone(task, TARGET),
                standalone(task, TARGET, schedules=Points(points)),
            )
            (numbers,) = [n for n in own.compiled.interface.sources if len(n) > 1]
            assert {task.program.params[n].name for n in numbers} == task.constants
            arrays = plain.arrays()
            assert arrays.keys() == own.arrays().keys()
            same(own.run(arrays).values(), plain.run(arrays).values())
            found += 1
    assert found >= 2
