"""One compilation runs with every size, zero and one among them, as NumPy and onnxruntime do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright
from tests.expect import raises_code
from tests.onnx.beside_ort import assert_alike, onnxruntime_results
from tilewright.graph.ir import Array

pytest.importorskip("onnxruntime")

FLOAT = TensorProto.FLOAT
LEAST, MOST = -(2**63), 2**63 - 1
SIZES = (0, 1, 2, 3, 5)
NUMBERS = {
    "zero": 0, "one": 1, "two": 2, "minus": -1, "tail": -3, "most": MOST, "least": LEAST,
}  # fmt: skip

INSIDE = ("turned", "scores", "weights")
"""Results that no output shows, so that what makes them is one operator."""

Shapes = Mapping[str, Sequence[int | str]]


def node(op: str, inputs: str, output: str, **attributes: object) -> onnx.NodeProto:
    return helper.make_node(op, inputs.split(), output.split(), **attributes)


def branch(*nodes: onnx.NodeProto) -> onnx.GraphProto:
    """A graph whose result is that of its last node."""
    return helper.make_graph(
        list(nodes), "branch", [], [onnx.ValueInfoProto(name=nodes[-1].output[0])]
    )


def model(
    nodes: Sequence[onnx.NodeProto], shapes: Shapes, constants: Mapping[str, Array] | None = None
) -> onnx.ModelProto:
    """A model whose outputs are all results of its nodes, apart from those that are `INSIDE`."""
    known = {name: np.array([number]) for name, number in NUMBERS.items()} | dict(constants or {})
    graph = helper.make_graph(
        list(nodes),
        "sizes",
        [helper.make_tensor_value_info(name, FLOAT, dims) for name, dims in shapes.items()],
        [onnx.ValueInfoProto(name=name) for n in nodes for name in n.output if name not in INSIDE],
        [numpy_helper.from_array(array, name) for name, array in known.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return onnx.shape_inference.infer_shapes(made)


def check(made: onnx.ModelProto, shapes: Shapes, sizes: Sequence[int] = SIZES) -> None:
    """Compiled once, run with every combination of sizes, beside onnxruntime.

    Sizes that fit nothing are refused by both; `test_broadcast_sizes` has more that meet others.
    """
    module = tilewright.compile(made, cache=False, threads=1)
    assert module.by_reference == ()
    names = list(dict.fromkeys(d for dims in shapes.values() for d in dims if isinstance(d, str)))
    draw = np.random.default_rng(7)
    for numbers in product(sizes, repeat=len(names)):
        size = dict(zip(names, numbers, strict=True))
        feeds = {
            name: draw.normal(0, 1, [size.get(d, d) for d in dims]).astype("f4")  # type: ignore[arg-type]
            for name, dims in shapes.items()
        }
        try:
            wanted = onnxruntime_results(made, feeds)
        except Exception:  # noqa: BLE001  (it has one for each kind of failure)
            with raises_code("C025"):
                module.run(feeds)
            continue
        for found, expected in zip(module.run(feeds), wanted, strict=True):
            assert found.shape == expected.shape, f"{size}"
            assert_alike(found, expected)


SPANS = [
    (1, MOST, 1), (2, MOST, 1), (-1, MOST, 1), (0, -1, 1), (1, -1, 1), (-3, -1, 1), (2, 4, 1),
    (3, 1, 1), (MOST, MOST, 1), (LEAST, MOST, 1), (0, LEAST, 1), (1, MOST, 2), (1, -1, 3),
    (-1, LEAST, -1), (MOST, LEAST, -1), (-2, LEAST, -1), (2, 0, -1), (2, LEAST, -2), (-1, 0, -1),
    (-1, -3, -1), (4, 1, -2), (0, 1, -1), (LEAST, MOST, MOST), (MOST, LEAST, LEAST), (-5, 5, 1),
]  # fmt: skip


def test_slices() -> None:
    """Ends on all sides of the data, forwards and backwards; results feed sums and joins."""
    nodes, constants = [], {}
    for k, span in enumerate(SPANS):
        constants |= {f"{what}{k}": np.array([n]) for what, n in zip("set", span, strict=True)}
        nodes.append(node("Slice", f"x s{k} e{k} zero t{k}", f"cut{k}"))
    for k in range(0, len(SPANS), 5):
        nodes.append(node("ReduceSum", f"cut{k} zero", f"sum{k}"))
        nodes.append(node("Concat", f"cut{k} x cut{k + 1}", f"joined{k}", axis=0))
    shapes = {"x": ["n", 2]}
    check(model(nodes, shapes, constants), shapes)


@pytest.mark.parametrize("second", [(-1, MOST, 1), (0, -1, 1), (MOST, LEAST, -1), (2, 4, 1)])
@pytest.mark.parametrize("first", [(1, MOST, 1), (-3, -1, 1), (-2, LEAST, -1)])
def test_slices_of_slices(first: tuple[int, int, int], second: tuple[int, int, int]) -> None:
    constants = {
        f"{what}{k}": np.array([n])
        for k, span in enumerate((first, second))
        for what, n in zip("set", span, strict=True)
    }
    nodes = [
        node("Slice", "x s0 e0 zero t0", "once"),
        node("Slice", "once s1 e1 zero t1", "twice"),
        node("Concat", "twice x once", "y", axis=0),
    ]
    shapes = {"x": ["n", 2]}
    check(model(nodes, shapes, constants), shapes)


def test_slices_along_several_axes() -> None:
    constants = {
        "starts": np.array([1, -1]), "ends": np.array([MOST, LEAST]),
        "axes": np.array([1, 0]), "steps": np.array([1, -1]),
    }  # fmt: skip
    shapes = {"x": ["n", "m"]}
    check(model([node("Slice", "x starts ends axes steps", "y")], shapes, constants), shapes)


REST = node("Slice", "x one most zero", "rest")
LAST = node("Slice", "x minus most zero", "last")

MODELS: dict[str, tuple[list[onnx.NodeProto], Shapes]] = {
    "differences of neighbours": (
        [
            REST,
            node("Slice", "x zero minus zero", "begin"),
            node("Sub", "rest begin", "d"),
            node("ReduceSum", "d", "y"),
        ],
        {"x": ["n", 3]},
    ),
    "a part in front of others": (
        [REST, node("Exp", "rest", "e"), node("Concat", "rest w e x", "y", axis=0)],
        {"x": ["n", 3], "w": ["m", 3]},
    ),
    "a product over a part": (
        [
            REST,
            node("Slice", "w one most one", "columns"),
            node("MatMul", "columns rest", "y"),
        ],
        {"x": ["n", 3], "w": [4, "n"]},
    ),
    "the last row": ([LAST, node("MatMul", "last w", "y")], {"x": ["n", 3], "w": [3, 4]}),
    "the last row beside others": (
        [node("Slice", "x minus most one", "end"), node("Add", "end w", "y")],
        {"x": ["batch", "n"], "w": ["m"]},
    ),
    "the last row beside all": ([LAST, node("Sub", "x last", "y")], {"x": ["n", 3]}),
    "starts that a shape tells": (
        [
            node("Shape", "w", "length", start=0, end=1),
            node("Neg", "length", "from"),
            node("Slice", "x from most zero", "y"),
            node("Slice", "x length most zero", "z"),
            node("Sub", "length two", "to"),
            node("Slice", "x zero to zero", "v"),
        ],
        {"x": ["n", 3], "w": ["m", 1]},
    ),
    "the end of a cache": (
        [
            node("Concat", "x w", "all", axis=0),
            node("Slice", "all tail most zero", "end"),
            node("ReduceSum", "end zero", "y"),
        ],
        {"x": ["past", 3], "w": ["new", 3]},
    ),
    "attention without keys": (
        [
            node("Transpose", "w", "turned", perm=[0, 2, 1]),
            node("MatMul", "x turned", "scores"),
            node("Softmax", "scores", "weights"),
            node("MatMul", "weights v", "y"),
        ],
        {"x": [2, "queries", 4], "w": [2, "keys", 4], "v": [2, "keys", 4]},
    ),
    "a branch that asks for elements": (
        [
            node("Shape", "x", "length", start=0, end=1),
            node("Greater", "length zero", "some"),
            node("Squeeze", "some zero", "is_some"),
            node(
                "If", "is_some", "y", then_branch=branch(REST), else_branch=branch(
                    node("Concat", "x w", "joined", axis=0)
                ),
            ),
        ],
        {"x": ["n", 3], "w": [2, 3]},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_models(name: str) -> None:
    nodes, shapes = MODELS[name]
    check(model(nodes, shapes), shapes)
