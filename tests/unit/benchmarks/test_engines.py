"""Every engine that reads layers gives the right result for small ones, in a process of its own."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from benchmarks.bench import Bench
from benchmarks.turns import Settings
from benchmarks.workloads import Workload

SHORT = Settings(rounds=1, trial_rounds=1, turn_seconds=0.001)
PACKAGES = {
    "tilewright": ["onnx"],
    "torch": ["onnx", "torch"],
    "onnxruntime": ["onnx", "onnxruntime"],
    "openvino": ["onnx", "openvino"],
    "ncnn": ["onnx", "ncnn", "pnnx"],
    "mnn": ["onnx", "MNN"],
}
LAYERS = [
    Workload("conv", "conv2d", (9, 8, 16, 3, 1, 1)),
    Workload("conv", "conv1d", (9, 8, 16, 3, 2, 1)),
    Workload("conv", "conv3d", (4, 5, 8, 8, 3, 1, 1)),
    Workload("conv", "dilated", (9, 8, 16, 3, 1, 1)),
    Workload("conv", "grouped", (9, 8, 16, 3, 2, 1)),
    Workload("conv", "depthwise", (9, 8, 3, 1, 1)),
    Workload("conv", "transposed", (4, 8, 16, 4, 2, 1)),
]


@pytest.mark.parametrize("engine", PACKAGES)
def test_layers_of_all_kinds(engine):
    if missing := [package for package in PACKAGES[engine] if find_spec(package) is None]:
        pytest.skip(f"no {', '.join(missing)}")
    bench = Bench([engine], SHORT)
    rows = list(bench.run(LAYERS, threads=1))
    assert not bench.missing
    assert {row.workload.name: row.outcomes[engine].state for row in rows} == {
        layer.name: "ok" for layer in LAYERS
    }
