"""Convolutions as ONNX files of one layer: what every engine that reads models is given."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx import helper, numpy_helper

from benchmarks.convolutions import Convolution
from benchmarks.numbers import Arrays

__all__ = ["write_layer"]

OPSET, IR_VERSION = 17, 8  # what all converters read


def write_layer(conv: Convolution, arrays: Arrays, path: Path) -> None:
    """The convolution with its bias and a ReLU; `x` is the input, `y` the output."""
    attributes = {
        "strides": [conv.stride] * conv.rank,
        "pads": [conv.padding] * (2 * conv.rank),
        "dilations": [conv.dilation] * conv.rank,
        "group": conv.groups,
        "kernel_shape": conv.window,
    }
    op = "ConvTranspose" if conv.op == "transposed" else "Conv"
    f32 = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [
            helper.make_node(op, ["x", "w", "b"], ["sums"], **attributes),
            helper.make_node("Relu", ["sums"], ["y"]),
        ],
        "layer",
        [helper.make_tensor_value_info("x", f32, conv.shapes["x"])],
        [helper.make_tensor_value_info("y", f32, conv.result_shape)],
        [numpy_helper.from_array(arrays[name], name) for name in "wb"],
    )
    opset = helper.make_opsetid("", OPSET)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION), path)
