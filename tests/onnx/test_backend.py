"""The backend interface of ONNX."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.expect import raises_code
from tilewright import backend


def adder() -> onnx.ModelProto:
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n"]) for n in "xyz"]
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "y"], ["z"])], "adder", infos[:2], infos[2:]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])


def test_run_model_takes_inputs_in_order_and_by_name():
    x, y = np.arange(3, dtype=np.float32), np.ones(3, np.float32)
    assert backend.is_compatible(adder())
    made = backend.prepare(adder(), "CPU")
    np.testing.assert_array_equal(made.run([x, y])[0], x + y)
    np.testing.assert_array_equal(made.run({"y": y, "x": x}).z, x + y)
    np.testing.assert_array_equal(backend.run_model(adder(), [x, y]).z, x + y)


def test_run_node_infers_the_types_of_its_outputs():
    node = helper.make_node("Split", ["x"], ["first", "second"], num_outputs=2)
    x = np.arange(6, dtype=np.float32)
    first, second = backend.run_node(node, [x])
    np.testing.assert_array_equal(np.concatenate([first, second]), x)
    (mean,) = backend.run_node(
        helper.make_node("ReduceMean", ["x"], ["y"]), {"x": x}, opset_version=13
    )
    assert mean.shape == (1,)


def test_run_node_takes_operators_of_other_domains():
    node = helper.make_node("Binarizer", ["x"], ["y"], domain="ai.onnx.ml", threshold=0.5)
    (found,) = backend.run_node(node, [np.array([0.0, 1.0], np.float32)])
    np.testing.assert_array_equal(found, np.array([0, 1], np.float32))


def test_other_devices_are_refused():
    assert backend.supports_device("CPU")
    for other in ("CUDA:0", "OPENCL", "CPU:one", ""):
        assert not backend.supports_device(other)
    with raises_code("M010"):
        backend.prepare(adder(), "CUDA")


def test_a_wrong_number_of_inputs_is_refused():
    with raises_code("M011"):
        backend.prepare(adder()).run([np.ones(3, np.float32)])


def test_a_model_that_cannot_be_understood_is_not_compatible():
    model = adder()
    model.graph.node[0].input[1] = "nobody"
    assert not backend.is_compatible(model)
