"""Kernels of a model, built and measured on a node by the runner that measures locally."""

from __future__ import annotations

import numpy as np
from onnx import helper

from tests.small import make
from tilewright.model.compiler import Compiling
from tilewright.pipeline import ModelPipeline
from tilewright.target import Target
from tilewright.tuning.measure.ray_runner import RayRunner
from tilewright.tuning.measure.trial import BUILD, OK, Job, Trial


def _job() -> Job:
    weights = {"w": np.linspace(-1, 1, 64 * 48, dtype=np.float32).reshape(64, 48)}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    model = make(nodes, [("x", [32, 64])], [("y", [32, 48])], weights)
    path = ModelPipeline(Compiling(Target.host(), 1, "default", "auto"))
    (task,) = path.run(model, until="plan").value.planned.kernels
    return Job(task, Target.host())


def test_kernels_are_measured_on_a_node(add_node):
    add_node()
    job = _job()
    asked = [Trial(job, {}, tag="drafted"), Trial(job, {}, tag="again")]
    asked.append(Trial(job, {"nothing": object}, tag="no point"))
    runner = RayRunner()
    try:
        answers = {trial.tag: outcome for trial, outcome in runner.run(asked)}
    finally:
        runner.close()
    assert answers.keys() == {"drafted", "again", "no point"}
    for tag in ("drafted", "again"):
        assert answers[tag].status == OK, answers[tag]
        assert answers[tag].time_ns > 0 < answers[tag].reference_ns
    assert answers["no point"].status == BUILD
