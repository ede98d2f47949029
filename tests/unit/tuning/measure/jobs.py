"""Jobs for runners: small kernels of models, a builder that works in this process, faults."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

import numpy as np
from onnx import helper

from tests.small import make
from tilewright.model.compiler import Compiling
from tilewright.model.kernel_store import encode
from tilewright.model.kernels import KernelTask, compile_task
from tilewright.pipeline import ModelPipeline
from tilewright.schedule.draft import draft
from tilewright.schedule.source import source_of
from tilewright.target import Target
from tilewright.tuning.measure.build import Built
from tilewright.tuning.measure.faults import FaultyBuilder
from tilewright.tuning.measure.limits import Limits
from tilewright.tuning.measure.local import LocalRunner
from tilewright.tuning.measure.trial import Job, Trial

HOST = Target.host()
FAULT = "a fault"
"""In points, instead of a block: the fault that a candidate is to have."""


def tasks_of(model) -> list[KernelTask]:
    how = Compiling(HOST, 1, "default", "auto")
    return ModelPipeline(how).run(model, until="plan").value.planned.kernels


def product_model():
    w = np.random.default_rng(1).uniform(-1, 1, (24, 32)).astype(np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    return make(nodes, [("x", [8, 24])], [("y", None)], {"w": w})


def biased_model():
    rng = np.random.default_rng(1)
    weights = {"w": rng.uniform(-1, 1, (24, 32)), "b": rng.uniform(-1, 1, 32)}
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["y"])]
    arrays = {name: array.astype(np.float32) for name, array in weights.items()}
    return make(nodes, [("x", [8, 24])], [("y", None)], arrays)


def convolution_model():
    w = np.random.default_rng(1).uniform(-1, 1, (8, 3, 3, 3)).astype(np.float32)
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])]
    return make(nodes, [("x", ["n", 3, 9, 7])], [("y", None)], {"w": w})


def elementwise_model(op="Relu", kind=1):
    names = ["x", "z"] if op in ("Add", "Sub") else ["x"]
    nodes = [helper.make_node(op, names, ["y"])]
    return make(nodes, [(name, [4, 16]) for name in names], [("y", None)], kind=kind)


def job_of(model, threads=1, **rest) -> Job:
    (task,) = tasks_of(model)
    return Job(task, HOST, threads, **rest)


class HereBuilder:
    """Builds in this process: quick to start, and without limits. A fault may be another task."""

    def __init__(self):
        self.built = []

    def build(self, task, target, schedule="draft"):
        self.built.append((task.key, schedule))
        begin = time.perf_counter()
        if isinstance(task.points.get(FAULT), KernelTask):
            task = task.points[FAULT]
        task = replace(task, points={b: p for b, p in task.points.items() if b != FAULT})
        data = encode(compile_task(task, target, source_of(schedule)))
        return Built(data, seconds=time.perf_counter() - begin)

    def pause(self, but):
        pass

    def go_on(self):
        pass

    def close(self):
        pass


def faulty_runner(run_s: float = 1.5) -> LocalRunner:
    """Candidates have the fault that their points name; a hang is soon found out."""

    def choose(task):
        fault = task.points.get(FAULT)
        return fault if isinstance(fault, str) else None

    wrap = partial(FaultyBuilder, choose=choose)
    return LocalRunner(1, Limits(run_s=run_s), HereBuilder(), wrap)


def trial(job, fault=None, tag=None) -> Trial:
    return Trial(job, {} if fault is None else {FAULT: fault}, tag)


def drafted_points(job: Job) -> dict[str, object]:
    """The points of the draft, written down."""
    made = draft(job.task.program, HOST, 1, job.task.constants)
    return {decision.block: decision.point for decision in made.decisions}
