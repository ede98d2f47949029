"""Models with inputs for whose values they are compiled, and what they are compiled for."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from tests.small import make
from tilewright.model import settled

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def summed(axes_type=TensorProto.INT64, axes_shape=("k",)):
    """`y = sum(relu(x), axes)`, where axes are an input: the rank of y depends on their values."""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("ReduceSum", ["r", "axes"], ["y"], keepdims=0),
    ]
    model = make(nodes, [("x", ["n", 3, 4])], [])
    axes = helper.make_tensor_value_info("axes", axes_type, axes_shape)
    model.graph.input.append(axes)
    model.graph.output.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, None))
    return model


def axes(*numbers):
    return np.array(numbers, np.int64)


def reshaped():
    """`y = reshape(x, shape)`: only sizes of y depend on values, its rank on their number."""
    model = make([helper.make_node("Reshape", ["x", "shape"], ["y"])], [("x", [2, 3, 4])], [])
    shape = helper.make_tensor_value_info("shape", TensorProto.INT64, ["rank"])
    model.graph.input.append(shape)
    model.graph.output.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, None))
    return model


def compilations(monkeypatch) -> list[object]:
    """What models are compiled for from now on."""
    seen: list[object] = []
    whole = settled.Unsettled.compiled

    def counted(self, values):
        seen.append(values)
        return whole(self, values)

    monkeypatch.setattr(settled.Unsettled, "compiled", counted)
    return seen
