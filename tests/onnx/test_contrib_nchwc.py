"""Models that onnxruntime saved for this machine, with channels in blocks, beside itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright
from tests.expect import raises_code
from tests.onnx.beside_ort import assert_alike
from tilewright.frontend.onnx import contrib_nchwc
from tilewright.graph.ir import Array

ort = pytest.importorskip("onnxruntime")

DOMAIN = "com.microsoft.nchwc"
FLOAT = TensorProto.FLOAT


class Network:
    """Nodes one after another, with random weights."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, Array] = {}

    def add(self, op: str, *inputs: str | tuple[int, ...] | Array, **attributes: Any) -> str:
        names = [self._name(value) for value in inputs]
        result = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, names, [result], **attributes))
        return result

    def _name(self, value: str | tuple[int, ...] | Array) -> str:
        if isinstance(value, str):
            return value
        name = f"w{len(self.weights)}"
        made = self.rng.normal(0, 0.3, value) if isinstance(value, tuple) else value
        self.weights[name] = made.astype(np.float32)
        return name

    def model(self, channels: int, *outputs: str) -> onnx.ModelProto:
        x = helper.make_tensor_value_info("x", FLOAT, ["n", channels, "h", "w"])
        results = [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs]
        weights = [numpy_helper.from_array(a, name) for name, a in self.weights.items()]
        graph = helper.make_graph(self.nodes, "network", [x], results, weights)
        imports = [helper.make_opsetid("", 17)]
        return helper.make_model(graph, opset_imports=imports, ir_version=8)


def saved(model: onnx.ModelProto, path: Path) -> tuple[Any, onnx.ModelProto]:
    """A session of onnxruntime, and the model as it saves it."""
    options = ort.SessionOptions()
    options.optimized_model_filepath, options.log_severity_level = str(path), 4
    session = ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    written = onnx.load(path)
    if all(node.domain != DOMAIN for node in written.graph.node):
        pytest.skip("onnxruntime has no blocks of channels on this machine")
    return session, written


def check(model: onnx.ModelProto, path: Path, x: Array) -> set[str]:
    """Results are those of the session that saved the model; gives its operators."""
    session, written = saved(model, path)
    module = tilewright.compile(written, cache=False, threads=1)
    assert not module.by_reference
    for found, wanted in zip(module.run({"x": x}), session.run(None, {"x": x}), strict=True):
        assert_alike(found, wanted)
    return {node.op_type for node in written.graph.node if node.domain == DOMAIN}


def pictures(*shape: int) -> Array:
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def test_layers_in_blocks(tmp_path: Path) -> None:
    """Few channels, residuals, activations, single channels, and some that fill a block."""
    net = Network()
    x = net.add("Conv", "x", (32, 3, 3, 3), (32,), pads=[1, 1, 1, 1], strides=[2, 2])
    x = net.add("MaxPool", net.add("Relu", x), kernel_shape=[3, 3], strides=[2, 2])
    y = net.add("Conv", x, (32, 1, 3, 3), (32,), pads=[1, 1, 1, 1], group=32)
    y = net.add("Conv", y, (32, 32, 1, 1))
    y = net.add("Relu", net.add("Add", y, x))
    narrow = net.add("Conv", y, (20, 32, 3, 3), pads=[1, 1, 1, 1])
    narrow = net.add("HardSigmoid", narrow)
    small = net.add("AveragePool", net.add("Concat", y, y, axis=1), kernel_shape=[2, 2])
    means = net.add("Conv", net.add("GlobalAveragePool", small), (16, 64, 1, 1))
    peaks = net.add("GlobalMaxPool", small)
    model = net.model(3, y, narrow, net.add("Sigmoid", means), peaks)
    operators = check(model, tmp_path / "saved.onnx", pictures(2, 3, 21, 18))
    assert {"Conv", "MaxPool", "AveragePool", "GlobalAveragePool", "ReorderOutput"} <= operators


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_resized_pictures_in_blocks(tmp_path: Path, mode: str) -> None:
    net = Network()
    scales = np.float32([1, 1, 2, 3])
    words = {"mode": mode, "coordinate_transformation_mode": "asymmetric"}
    words |= {"nearest_mode": "floor"} if mode == "nearest" else {}
    x = net.add("Conv", "x", (16, 4, 3, 3))
    x = net.add("Conv", net.add("Resize", x, "", scales, **words), (16, 16, 1, 1))
    check(net.model(4, x), tmp_path / "saved.onnx", pictures(2, 4, 9, 8))


@pytest.mark.parametrize("channels", [16, 20])
def test_pictures_that_are_put_into_blocks(tmp_path: Path, channels: int) -> None:
    """Inputs with whole blocks of channels, or some more; groups of them."""
    net = Network()
    x = net.add("Conv", "x", (32, channels, 3, 3), (32,))
    y = net.add("Conv", x, (32, 16, 1, 1), group=2)
    operators = check(net.model(channels, y), tmp_path / "saved.onnx", pictures(2, channels, 9, 8))
    assert "ReorderInput" in operators


@pytest.mark.parametrize("block", [8, 16])
@pytest.mark.parametrize("channels", [3, 16])
def test_weights_are_put_in_order(
    monkeypatch: pytest.MonkeyPatch, block: int, channels: int
) -> None:
    monkeypatch.setattr(contrib_nchwc, "block_size", lambda: block)
    x, w = pictures(2, channels, 6, 5), pictures(32, channels, 3, 2)
    (wanted,) = tilewright.compile(blocked(w, w, ""), cache=False).run({"x": x})
    if channels < block:
        stored = w.reshape(-1, block, channels, 3, 2).transpose(0, 2, 3, 4, 1)
    else:
        tiles = w.reshape(-1, block, channels // block, block, 3, 2)
        stored = tiles.transpose(0, 2, 4, 5, 3, 1)
    (found,) = tilewright.compile(blocked(stored, w, DOMAIN), cache=False).run({"x": x})
    assert_alike(found, wanted)


def test_files_of_other_machines_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    w = pictures(24, 3, 3, 3)
    monkeypatch.setattr(contrib_nchwc, "block_size", lambda: 16)
    with raises_code("M004", text="not in blocks of 16, as this machine has them"):
        tilewright.compile(blocked(w, w, DOMAIN), cache=False)


def blocked(stored: Array, w: Array, domain: str) -> onnx.ModelProto:
    weights = numpy_helper.from_array(np.ascontiguousarray(stored).reshape(w.shape), "w")
    node = helper.make_node("Conv", ["x", "w"], ["y"], domain=domain)
    x = helper.make_tensor_value_info("x", FLOAT, ["n", w.shape[1], "h", "w"])
    y = helper.make_tensor_value_info("y", FLOAT, None)
    graph = helper.make_graph([node], "blocked", [x], [y], [weights])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)
