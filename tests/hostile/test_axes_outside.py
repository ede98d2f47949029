"""Axes that a tensor does not have, of every operator that is given one, where only tilewright
knows the rank: the shape inference of onnx does not look behind operators of another domain.
"""

from __future__ import annotations

import warnings

import onnx
import pytest
from onnx import TensorProto, defs, helper

import tilewright as tw
from tilewright.errors import ModelError
from tilewright.frontend.onnx.registry import Unknown, operators

BORDERS = {
    "Flatten",
    "OneHot",
    "Softmax",
    "LogSoftmax",
    "Hardmax",
    "QuantizeLinear",
    "DequantizeLinear",
}
"""Operators for which the axis behind the last one has a meaning."""


def named_axes() -> list[tuple[str, str]]:
    """The operators of the standard with an attribute that is an axis."""
    found = []
    for domain, op in operators():
        if domain == "" and defs.has(op) and {"axis", "axes"} & set(defs.get_schema(op).attributes):
            found.append((op, "axis" if "axis" in defs.get_schema(op).attributes else "axes"))
    return sorted(found)


def hidden(op: str, attribute: str, axis: int, rank: int, opset: int) -> onnx.ModelProto:
    """The operator on inputs of a rank that the checks of onnx do not know."""
    count = max(defs.get_schema(op).min_input, 1)
    kinds = [TensorProto.FLOAT] + [
        TensorProto.INT64 if "int64" in "".join(formal.types) else TensorProto.FLOAT
        for formal in defs.get_schema(op).inputs[1:count]
    ]
    inputs = [
        helper.make_tensor_value_info(f"x{k}", kind, [2] * rank) for k, kind in enumerate(kinds)
    ]
    first = helper.make_node("Gelu", ["x0"], ["h"], domain="com.microsoft")
    value = axis if attribute == "axis" else [axis]
    names = ["h", *(f"x{k}" for k in range(1, count))]
    node = helper.make_node(op, names, ["y"], **{attribute: value})
    graph = helper.make_graph([first, node], op, inputs, [onnx.ValueInfoProto(name="y")])
    sets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=sets, ir_version=8)


@pytest.mark.parametrize("opset", [11, 24])
@pytest.mark.parametrize(("op", "attribute"), named_axes())
def test_it_is_refused(op, attribute, opset):
    for rank in range(3):
        for axis in (rank, -rank - 1):
            model = hidden(op, attribute, axis, rank, opset)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", tw.TilewrightWarning)
                try:
                    module = tw.compile(model, cache=False, threads=1)
                except (ModelError, Unknown):
                    continue
            allowed = op in BORDERS or not rank or module.by_reference or module.settled
            assert allowed, f"axis {axis} of {rank} dimensions"
