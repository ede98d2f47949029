"""Chains of operators whose ranks follow from sizes: one module is right for every size.

The rank of each value is what a run makes of it, so later axes are counted from where every run has
them; the model is compiled once and runs with sizes of zero, one and more.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import tilewright as tw
from tilewright.errors import TilewrightError

OPSET = 20
SIZES = (1, 2, 3)
WEIGHTS = {
    "zero": [0],
    "one": [1],
    "minus": [-1],
    "most": [2**63 - 1],
    "flat": [-1],
    "two": [2, 1],
}


def step(op: str, read: str, made: str) -> list[onnx.NodeProto]:
    """Nodes that make a value of another; those that need a dimension make one first."""
    node = helper.make_node
    wide = node("Unsqueeze", [read, "zero"], [f"{made}_wide"])
    match op:
        case "squeeze":
            return [node("Squeeze", [read], [made])]
        case "unsqueeze":
            return [node("Unsqueeze", [read, "zero"], [made])]
        case "tail":
            return [wide, node("Concat", [f"{made}_wide"] * 2, [f"{made}_both"], axis=0),
                    node("Slice", [f"{made}_both", "one", "most", "zero"], [made])]  # fmt: skip
        case "join":
            return [wide, node("Concat", [f"{made}_wide"] * 2, [made], axis=-1)]
        case "sum":
            return [wide, node("ReduceSum", [f"{made}_wide", "minus"], [made], keepdims=0)]
        case "turn":
            return [node("Transpose", [read], [made])]
        case "lines":
            shape = node("Shape", [f"{made}_wide"], [f"{made}_shape"], start=-1)
            wanted = node("Concat", [f"{made}_shape", "flat"], [f"{made}_to"], axis=0)
            return [wide, shape, wanted, node("Reshape", [f"{made}_wide", f"{made}_to"], [made])]
        case "add":
            return [node("Add", [read, "x"], [made])]
    return [node("Expand", [read, "two"], [made])]


OPS = ["squeeze", "squeeze", "unsqueeze", "tail", "join", "sum", "turn", "lines", "add", "expand"]
chains = st.lists(st.sampled_from(OPS), min_size=1, max_size=5).filter(lambda c: "squeeze" in c)
shapes = st.lists(st.sampled_from(["n", "m", 1, 2]), min_size=1, max_size=3).filter(
    lambda dims: "n" in dims or "m" in dims
)


def model_of(chain: list[str], dims: list[str | int]) -> onnx.ModelProto:
    names = ["x", *(f"v{k}" for k in range(len(chain)))]
    pairs = zip(chain, names, names[1:], strict=False)
    nodes = [node for op, read, made in pairs for node in step(op, read, made)]
    weights = [numpy_helper.from_array(np.array(v), n) for n, v in WEIGHTS.items()]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)
    y = helper.make_tensor_value_info(names[-1], TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "chain", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)


@given(chain=chains, dims=shapes)
@settings(max_examples=25, deadline=None)
def test_one_module_has_the_ranks_of_every_run(chain: list[str], dims: list[str | int]) -> None:
    model = model_of(chain, dims)
    module = tw.compile(model, cache=False, threads=1)
    reference = ReferenceEvaluator(model)
    names = [name for name in "nm" if name in dims]
    for sizes in product(SIZES, repeat=len(names)):
        size: dict[str | int, int] = dict(zip(names, sizes, strict=True))
        shape = [size.get(d, d) for d in dims]
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        try:
            (wanted,) = reference.run(None, {"x": x})
        except (TypeError, ValueError):  # shapes that cannot be broadcast
            with pytest.raises(TilewrightError):
                module.run({"x": x})
            continue
        (found,) = module.run({"x": x})
        assert found.shape == np.shape(wanted), size
        assert np.array_equal(found, wanted), size
