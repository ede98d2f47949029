"""Kernels that other processes compile are those that this one would make."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from onnx import helper, numpy_helper

import tilewright as tw
from tests.small import make
from tilewright.model import compile_kernels, kernel_workers
from tilewright.model.compiler import Compiling, compile_parts
from tilewright.model.kernel_workers import KernelWorker
from tilewright.model.kernels import compile_task
from tilewright.pipeline import ModelPipeline
from tilewright.target import Target


def network():
    """Convolutions, a product and elementwise nodes of many sizes; `n` is unknown."""
    nodes, rng, channels, weights = [], np.random.default_rng(0), 4, {}
    value = "x"
    for layer, filters in enumerate([8, 12, 16, 20]):
        name = f"w{layer}"
        weights[name] = rng.normal(size=(filters, channels, 3, 3)).astype(np.float32)
        nodes.append(helper.make_node("Conv", [value, name], [f"c{layer}"], pads=[1] * 4))
        nodes.append(helper.make_node("Sigmoid", [f"c{layer}"], [f"s{layer}"]))
        nodes.append(helper.make_node("MaxPool", [f"s{layer}"], [f"p{layer}"], kernel_shape=[2, 2]))
        value, channels = f"p{layer}", filters
    nodes.append(helper.make_node("Softmax", [value], ["y"], axis=1))
    model = make(nodes, [("x", ["n", 4, 32, 32])], [("y", None)])
    model.graph.initializer.extend(numpy_helper.from_array(w, n) for n, w in weights.items())
    return model


@pytest.fixture
def tasks(monkeypatch):
    seen = []
    own = compile_kernels.compile_tasks
    monkeypatch.setattr(
        compile_kernels, "compile_tasks", lambda t, *rest: (seen.extend(t), own(t, *rest))[1]
    )
    tw.compile(network(), cache=False, threads=1)
    return list({task.key: task for task in seen}.values())


def test_a_worker_makes_the_same_kernels(tasks):
    target = Target.host()
    worker = KernelWorker(target)
    try:
        assert len(tasks) > 6
        for task in tasks:
            assert worker.compiled(task) == compile_task(task, target)
    finally:
        worker.close()


def test_a_worker_knows_what_may_be_written_in_place():
    nodes = [helper.make_node("Sigmoid", ["x"], ["y"])]
    made = compile_parts(make(nodes, [("x", [64])], [("y", [64])]), Target.host(), 1, None, print)
    (task,) = made.made.tasks
    worker = KernelWorker(Target.host())
    try:
        assert worker.compiled(task).interface.in_place == ((0, 1),)
    finally:
        worker.close()


def test_models_are_the_same_with_workers(monkeypatch):
    used = []
    own = KernelWorker.compiled
    monkeypatch.setattr(
        KernelWorker, "compiled", lambda self, task: (used.append(task), own(self, task))[1]
    )
    monkeypatch.setattr(kernel_workers, "usable_cpus", lambda: 3)
    monkeypatch.setattr(kernel_workers, "FEWEST_KERNELS", 1)
    helped = tw.compile(network(), cache=False, threads=1)
    assert used
    monkeypatch.setattr(kernel_workers, "usable_cpus", lambda: 1)
    used.clear()
    alone = tw.compile(network(), cache=False, threads=1)
    assert not used
    x = np.random.default_rng(1).normal(size=(2, 4, 32, 32)).astype(np.float32)
    assert np.array_equal(helped.run({"x": x})[0], alone.run({"x": x})[0])
    assert helped.executable.program == alone.executable.program


def test_a_helper_begins_while_kernels_are_planned(monkeypatch):
    """It is used, and ended with the others; nobody needs one for what ends at the plan."""
    made, closed = [], []
    monkeypatch.setattr(kernel_workers, "usable_cpus", lambda: 2)
    monkeypatch.setattr(kernel_workers, "FEWEST_KERNELS", 1)
    start, close = KernelWorker.__init__, KernelWorker.close
    monkeypatch.setattr(
        KernelWorker, "__init__", lambda self, target: (made.append(self), start(self, target))[1]
    )
    monkeypatch.setattr(KernelWorker, "close", lambda self: (closed.append(self), close(self))[1])
    path = ModelPipeline(Compiling(Target.host(), 1, "default", "auto", None))
    path.run(network(), until="plan")
    assert not made
    begun = []
    path.observers = (lambda a: begun.append((a.stage, len(made))),)
    path.run(network(), until="kernels")
    assert dict(begun)["choose"] == 1
    assert len(made) == 1
    assert made[0] in closed


def test_a_worker_that_is_gone_is_no_error(tasks):
    worker = KernelWorker(Target.host())
    worker._process.kill()
    worker._process.wait()
    assert worker.compiled(tasks[0]) is None
    worker.close()


def test_a_worker_that_cannot_be_started_is_no_error(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no python"))
    monkeypatch.setattr(kernel_workers, "usable_cpus", lambda: 3)
    with kernel_workers.kernel_workers(Target.host(), 100) as workers:
        assert workers == []


def test_few_kernels_have_no_workers(monkeypatch):
    monkeypatch.setattr(kernel_workers, "usable_cpus", lambda: 64)
    with kernel_workers.kernel_workers(Target.host(), 15) as workers:
        assert workers == []


def test_targets_with_a_model_arrive_as_they_are():
    target = Target.named("x86-64-v3")
    for made in (target, Target.from_dict({**target.to_dict(), "model": target.machine.to_dict()})):
        assert Target.from_dict(json.loads(json.dumps(made.to_dict()))) == made
