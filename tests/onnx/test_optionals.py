"""Optionals of something or nothing, through branches, loops and texts, beside onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

import tilewright
from tests.expect import raises_code
from tests.onnx.beside_ort import onnxruntime_results

pytest.importorskip("onnxruntime")

BOOL, FLOAT, INT64, STRING = (
    TensorProto.BOOL, TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING,
)  # fmt: skip
TENSOR = {kind: helper.make_tensor_type_proto(kind, [2]) for kind in (FLOAT, STRING)}
X = {FLOAT: np.array([1, -2], np.float32), STRING: np.array(["a", "b"], object)}
EMPTY = helper.make_node("Optional", [], ["o"], type=TENSOR[FLOAT])


def tensor(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def maybe(name, kind=FLOAT):
    return helper.make_value_info(name, helper.make_optional_type_proto(TENSOR[kind]))


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def graph(nodes, inputs, outputs):
    return helper.make_graph(nodes, "graph", inputs, outputs)


def check(nodes, inputs, outputs, feeds, opset):
    model = helper.make_model(
        graph(nodes, inputs, outputs), opset_imports=[helper.make_opsetid("", opset)], ir_version=9
    )
    found = tilewright.compile(model, threads=1, cache=False).run(feeds)
    for own, other in zip(found, onnxruntime_results(model, feeds), strict=True):
        np.testing.assert_array_equal(own, other, strict=True)


HAS = node("OptionalHasElement", "o", "has")
HAS_INFO = tensor("has", BOOL, [])


@pytest.mark.parametrize("opset", [15, 16, 18, 21])
def test_nothing_is_an_input(opset):
    """An optional that holds nothing is not an input that is left out."""
    check([EMPTY, HAS], [], [HAS_INFO], {}, opset)
    for given in (None, X[FLOAT]):
        check([HAS], [maybe("o")], [HAS_INFO], {"o": given}, opset)


@pytest.mark.parametrize("opset", [16, 18, 21])
def test_nothing_through_nodes(opset):
    same = node("Identity", "o", "same")
    check([EMPTY, same, node("OptionalHasElement", "same", "has")], [], [HAS_INFO], {}, opset)
    held = graph([node("OptionalGetElement", "o", "held")], [], [tensor("held", FLOAT, [2])])
    other = graph([node("Neg", "x", "other")], [], [tensor("other", FLOAT, [2])])
    chosen = node("If", "has", "y", then_branch=held, else_branch=other)
    for given in (None, X[FLOAT]):
        inputs = [maybe("o"), tensor("x", FLOAT, [2])]
        feeds = {"o": given, "x": X[FLOAT]}
        check([HAS, chosen], inputs, [tensor("y", FLOAT, [2])], feeds, opset)


@pytest.mark.filterwarnings("ignore::tilewright.TilewrightWarning")
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("trips", [0, 2])
def test_nothing_is_carried_by_a_loop(trips, known):
    body = graph(
        [
            node("Identity", "going", "goes_on"),
            node("OptionalHasElement", "before", "had"),
            node("Identity", "before", "after"),
        ],
        [tensor("step", INT64, []), tensor("going", BOOL, []), maybe("before")],
        [tensor("goes_on", BOOL, []), maybe("after"), tensor("had", BOOL, [])],
    )
    many = helper.make_node(
        "Constant", [], ["trips"], value=helper.make_tensor("trips", INT64, [], [trips])
    )
    nodes = [
        *([many] if known else []),
        EMPTY,
        helper.make_node("Loop", ["trips", "", "o"], ["last", "hads"], body=body),
        node("OptionalHasElement", "last", "has"),
    ]
    inputs, feeds = (
        ([], {}) if known else ([tensor("trips", INT64, [])], {"trips": np.array(trips)})
    )
    check(nodes, inputs, [HAS_INFO, tensor("hads", BOOL, [None])], feeds, 18)


@pytest.mark.filterwarnings("ignore::tilewright.TilewrightWarning")
@pytest.mark.parametrize("opset", [16, 18])
def test_optionals_of_texts(opset):
    inputs, feeds = [tensor("x", STRING, [2])], {"x": X[STRING]}
    nodes = [node("Optional", "x", "o"), node("OptionalGetElement", "o", "y"), HAS]
    check(nodes, inputs, [tensor("y", STRING, [2]), HAS_INFO], feeds, opset)
    nothing = helper.make_node("Optional", [], ["o"], type=TENSOR[STRING])
    nodes = [nothing, node("Identity", "x", "y"), HAS]
    check(nodes, inputs, [tensor("y", STRING, [2]), HAS_INFO], feeds, opset)


def test_nothing_has_no_element():
    nodes = [EMPTY, node("OptionalGetElement", "o", "y")]
    model = helper.make_model(
        graph(nodes, [], [tensor("y", FLOAT, [2])]), opset_imports=[helper.make_opsetid("", 18)]
    )
    with raises_code("M004", text="the optional holds nothing"):
        tilewright.compile(model, threads=1, cache=False)
