"""A small model with all that a face of the product shows: names, symbolic sizes, two outputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WEIGHTS = np.linspace(-1, 1, 32, dtype=np.float32).reshape(8, 4)


def two_outputs() -> onnx.ModelProto:
    """`positive = relu(x)` and `scores = positive · w`, for x of shape [rows, 8]."""
    nodes = [
        helper.make_node("Relu", ["x"], ["positive"], "relu"),
        helper.make_node("MatMul", ["positive", "w"], ["scores"], "product"),
    ]
    outputs = [("scores", ["rows", 4]), ("positive", ["rows", 8])]
    model = make(nodes, [("x", ["rows", 8])], outputs, {"w": WEIGHTS})
    model.producer_name, model.domain, model.model_version = "tests", "example.org", 7
    model.doc_string, model.graph.doc_string = "a small model", "its graph"
    helper.set_model_props(model, {"author": "nobody"})
    return model


def make(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[tuple[str, list[int | str]]],
    outputs: Sequence[tuple[str, list[int | str]]],
    weights: dict[str, np.ndarray] | None = None,
    kind: int = TensorProto.FLOAT,
) -> onnx.ModelProto:
    """A model of these nodes; all inputs and outputs have one element type."""
    graph = helper.make_graph(
        list(nodes),
        "small",
        [helper.make_tensor_value_info(name, kind, shape) for name, shape in inputs],
        [helper.make_tensor_value_info(name, kind, shape) for name, shape in outputs],
        [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def expected(x: np.ndarray) -> list[np.ndarray]:
    """What `two_outputs` gives."""
    positive = np.maximum(x, 0)
    return [positive @ WEIGHTS, positive]


def rows(count: int) -> np.ndarray:
    """An input of `two_outputs`."""
    return np.random.default_rng(count).standard_normal((count, 8), np.float32)


def sequence_model(kind: int = TensorProto.STRING) -> onnx.ModelProto:
    """`whole = concat(parts)` of a sequence of vectors; those of strings no program can take."""
    parts = helper.make_tensor_sequence_value_info("parts", kind, None)
    whole = helper.make_tensor_value_info("whole", kind, ["n"])
    node = helper.make_node("ConcatFromSequence", ["parts"], ["whole"], axis=0)
    graph = helper.make_graph([node], "joined", [parts], [whole])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def text_inside() -> onnx.ModelProto:
    """`y = float(text(x))`: tensors outside, strings inside, which no kernel can hold."""
    nodes = [
        helper.make_node("Cast", ["x"], ["t"], to=TensorProto.STRING),
        helper.make_node("Cast", ["t"], ["y"], to=TensorProto.FLOAT),
    ]
    return make(nodes, [("x", ["n"])], [("y", ["n"])])
