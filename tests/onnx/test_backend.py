"""The backend interface, and the node tests through it: a sample, and all of them with --long."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.expect import raises_code
from tests.onnx.conformance import by_operator, compiled, interpreted, outcomes
from tests.onnx.node_cases import node_cases
from tilewright import backend

SAMPLE = (
    "and_bcast3v1d",
    "argmax_keepdims_random",
    "attention_4d_gqa",
    "averagepool_2d_ceil",
    "concat_2d_axis_1",
    "conv_with_strides_padding",
    "convtranspose_pads",
    "einsum_batch_matmul",
    "gather_elements_1",
    "gru_defaults",
    "if",
    "layer_normalization_3d_axis1_epsilon",
    "lstm_with_peepholes",
    "matmul_4d",
    "maxpool_2d_dilations",
    "reduce_mean_default_axes_keepdims_example",
    "scan9_sum",
    "transpose_all_permutations_3",
)


def test_node_tests_sample():
    """Each of these is native code and right."""
    cases = [case for name in SAMPLE for case in node_cases(name)]
    assert len(cases) == len(SAMPLE)
    bad = [o for o in outcomes(cases, compiled) if o.kind != "native"]
    assert bad == []


@pytest.mark.slow
def test_node_tests_all():
    """None is wrong; most are native, though many take shapes and axes as data."""
    found = list(outcomes(node_cases(), compiled))
    tally = Counter(o.kind for o in found)
    assert [o for o in found if o.kind == "failing"] == []
    assert tally["native"] > 0.65 * len(found)


def test_operators_of_control_flow_and_windows_are_imported():
    """No part of these is left to the reference implementation."""
    patterns = ("conv_*", "convtranspose*", "averagepool*", "lstm*", "gru*", "loop11", "scan9*")
    cases = [case for pattern in patterns for case in node_cases(pattern)]
    table = by_operator(outcomes(cases, interpreted))
    assert {kind for row in table.values() for kind in row} == {"native"}
    assert {"Conv", "ConvTranspose", "LSTM", "Loop", "Scan"} <= set(table)


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


def test_other_devices_are_refused():
    assert backend.supports_device("CPU")
    assert not backend.supports_device("CUDA:0")
    with raises_code("M010"):
        backend.prepare(adder(), "CUDA")


def test_a_wrong_number_of_inputs_is_refused():
    with raises_code("M011"):
        backend.prepare(adder()).run([np.ones(3, np.float32)])


def test_a_model_that_cannot_be_understood_is_not_compatible():
    model = adder()
    model.graph.node[0].input[1] = "nobody"
    assert not backend.is_compatible(model)
