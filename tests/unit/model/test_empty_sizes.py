"""Sizes of zero: results with elements are computed all the same."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import tilewright as tw

FLOAT = TensorProto.FLOAT


def model(op, shapes, constants=(), **attributes):
    names = [*shapes, *(t.name for t in constants)]
    inputs = [helper.make_tensor_value_info(n, FLOAT, s) for n, s in shapes.items()]
    output = helper.make_tensor_value_info("y", FLOAT, None)
    nodes = [helper.make_node(op, names, ["y"], **attributes)]
    graph = helper.make_graph(nodes, "empty", inputs, [output], list(constants))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


PADS = numpy_helper.from_array(np.array([1, 2, 1, 2]), "pads")
FILTER = numpy_helper.from_array(np.ones((2, 1, 3, 3), np.float32), "filter")
SIDES = [(3, 0), (0, 6), (3, 6)]


def bordered(count):
    """Arrays of any size, each in the middle of five rows and ten columns, added up."""
    numbers = range(count)
    inputs = [helper.make_tensor_value_info(f"x{k}", FLOAT, [f"n{k}", f"m{k}"]) for k in numbers]
    whole = numpy_helper.from_array(np.array([5, 10]), "whole")
    nodes = [helper.make_node("CenterCropPad", [f"x{k}", "whole"], [f"p{k}"]) for k in numbers]
    nodes.append(helper.make_node("Sum", [f"p{k}" for k in numbers], ["y"]))
    output = helper.make_tensor_value_info("y", FLOAT, [5, 10])
    graph = helper.make_graph(nodes, "borders", inputs, [output], [whole])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


CASES = {
    "a sum over nothing": (
        model(
            "ReduceSum",
            {"x": ["n", 3]},
            [numpy_helper.from_array(np.array([0]), "axes")],
            keepdims=0,
        ),
        [{"x": (0, 3)}, {"x": (4, 3)}],
    ),
    "an empty cache in front": (
        model("Concat", {"x": [2, "past", 3], "z": [2, "new", 3]}, axis=1),
        [
            {"x": (2, 0, 3), "z": (2, 2, 3)},
            {"x": (2, 4, 3), "z": (2, 0, 3)},
            {"x": (2, 0, 3), "z": (2, 0, 3)},
        ],
    ),
    "a product over nothing": (
        model("MatMul", {"x": [5, "n"], "z": ["n", 7]}),
        [{"x": (5, 0), "z": (0, 7)}, {"x": (5, 3), "z": (3, 7)}],
    ),
    "one number of a product over nothing": (
        model("Einsum", {"x": ["n", "m"], "z": ["n", "k"]}, equation="ij,ij->"),
        [{"x": shape, "z": shape} for shape in ((0, 5), (5, 0), (0, 0), (4, 5))],
    ),
    "a border around nothing": (
        model("Pad", {"x": ["n", "m"]}, [PADS], mode="constant"),
        [{"x": (0, 4)}, {"x": (4, 0)}, {"x": (0, 0)}, {"x": (2, 3)}],
    ),
    "windows in the border": (
        model("Conv", {"x": [1, 1, "h", "w"]}, [FILTER], pads=[2] * 4),
        [{"x": (1, 1, 0, 6)}, {"x": (1, 1, 6, 0)}, {"x": (1, 1, 5, 6)}],
    ),
    "borders around some of two": (
        bordered(2),
        [{"x0": a, "x1": b} for a in SIDES for b in SIDES],
    ),
    "borders around some of four": (
        bordered(4),
        [{"x0": a, "x1": b, "x2": c, "x3": a} for a in SIDES for b in SIDES for c in SIDES],
    ),
    "rows without elements": (
        model("Softmax", {"x": ["rows", "n"]}),
        [{"x": (3, 0)}, {"x": (0, 3)}, {"x": (3, 9)}],
    ),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_empty_sizes(name, threads):
    proto, sizes = CASES[name]
    module = tw.compile(proto, threads=threads, cache=False)
    rng = np.random.default_rng(0)
    for shapes in sizes:
        feeds = {n: rng.standard_normal(s).astype(np.float32) for n, s in shapes.items()}
        (found,) = module.run(feeds)
        (expected,) = ReferenceEvaluator(proto).run(None, feeds)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
