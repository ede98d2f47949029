"""Nodes in any order, and functions that share a name: beside onnxruntime and the reference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, parser
from onnx.reference import ReferenceEvaluator

import tilewright
from tests.expect import raises_code
from tests.onnx.beside_ort import assert_alike, onnxruntime_results
from tilewright.frontend.onnx import read_model

FLOAT = TensorProto.FLOAT
X = np.array([-1.0, 2.0, -3.0], np.float32)
NESTED = """
    <ir_version: 9, opset_import: ["" : 20, "own" : 1]>
    nested (float[n] x, bool c) => (float[n] y) {
        first = Neg(x)
        y = If(c) <
            then_branch = yes () => (float[n] a) {
                p = Exp(first)
                q = If(c) <
                    then_branch = inner () => (float[n] u) { t = Add(p, first)
                        u = Abs(t) },
                    else_branch = other () => (float[n] v) { v = Identity(p) }>
                a = Neg(q) },
            else_branch = no () => (float[n] b) { b = own.Twice(first) }>
    }
    <domain: "own", opset_import: ["" : 20]>
    Twice (z) => (w) {
        half = Add(z, z)
        w = Relu(half)
    }"""


def reversed_nodes(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with all nodes in the opposite order, inside of nodes and functions, too."""
    own = onnx.ModelProto()
    own.CopyFrom(model)
    waiting = [own.graph, *own.functions]
    while waiting:
        body = waiting.pop()
        turned = onnx.GraphProto()
        turned.node.extend(reversed(body.node))
        del body.node[:]
        body.node.extend(turned.node)
        waiting += [a.g for node in body.node for a in node.attribute if a.HasField("g")]
    return own


def test_nodes_are_sorted_everywhere():
    model = parser.parse_model(NESTED)
    turned = reversed_nodes(model)
    before = turned.SerializeToString()
    module = tilewright.compile(turned, cache=False, threads=1)
    assert not module.by_reference
    assert turned.SerializeToString() == before  # what callers give is theirs
    for flag in (True, False):
        feeds = {"x": X, "c": np.array(flag)}
        (wanted,) = ReferenceEvaluator(model).run(None, feeds)
        (found,) = module.run(feeds)
        assert_alike(found, wanted)


def test_onnxruntime_sorts_them_as_well():
    nodes = [helper.make_node("Neg", ["h"], ["y"]), helper.make_node("Relu", ["x"], ["h"])]
    model = model_of(nodes, ["y"])
    (found,) = tilewright.compile(model, cache=False).run({"x": X})
    assert_alike(found, onnxruntime_results(model, {"x": X})[0])


def test_what_is_in_order_stays_the_same_message():
    model = parser.parse_model(NESTED)
    assert read_model(model) is model


@given(data=st.data())
def test_a_shuffled_graph_means_the_same(data):
    """Every node stands behind what it reads, and those that did stay in their order."""
    count = data.draw(st.integers(1, 12))
    names = ["x"]
    nodes = []
    for k in range(count):
        read = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=3))
        nodes.append(helper.make_node("Sum", read, [f"v{k}"]))
        names.append(f"v{k}")
    shuffled = data.draw(st.permutations(nodes))
    sorted_ = read_model(model_of(shuffled, [f"v{count - 1}"])).graph.node
    known = {"x"}
    for node in sorted_:
        assert known.issuperset(node.input)
        known.update(node.output)
    assert sorted(n.output[0] for n in sorted_) == sorted(n.output[0] for n in nodes)
    assert list(read_model(model_of(nodes, ["v0"])).graph.node) == nodes


@pytest.mark.parametrize(
    "nodes",
    [
        [("Neg", "b", "a"), ("Neg", "a", "b")],
        [("Neg", "a", "a")],
        [("Neg", "x", "z"), ("Neg", "c", "a"), ("Neg", "a", "b"), ("Neg", "b", "c")],
    ],
    ids=["two", "itself", "three"],
)
def test_circles_are_refused(nodes):
    made = [helper.make_node(op, [read], [result]) for op, read, result in nodes]
    with raises_code("M004", text="it needs a result that needs its own"):
        tilewright.compile(model_of(made, ["a"]), cache=False)


def test_a_circle_through_a_graph_inside_is_refused():
    text = NESTED.replace("first = Neg(x)", "first = Neg(y)")
    with raises_code("M004", text="it needs a result that needs its own"):
        tilewright.compile(parser.parse_model(text), cache=False)


def test_a_long_chain_backwards_is_sorted():
    nodes = [helper.make_node("Neg", [f"v{k + 1}"], [f"v{k}"]) for k in range(5000)]
    nodes[-1].input[0] = "x"
    sorted_ = read_model(model_of(nodes, ["v0"])).graph.node
    assert [n.output[0] for n in sorted_] == [f"v{k}" for k in reversed(range(5000))]


def model_of(
    nodes: Sequence[onnx.NodeProto],
    outputs: Sequence[str],
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    infos = [helper.make_tensor_value_info(name, FLOAT, ["n"]) for name in ("x", *outputs)]
    graph = helper.make_graph(list(nodes), "small", infos[:1], infos[1:])
    imports = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10, functions=list(functions))


def overload(name: str, op: str, domain: str = "") -> onnx.FunctionProto:
    node = helper.make_node(op, ["a"], ["b"], domain=domain)
    if domain:
        node.op_type, node.overload = op.split(":")
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]
    return helper.make_function("own", "F", ["a"], ["b"], [node], opsets, overload=name)


def call(name: str, result: str) -> onnx.NodeProto:
    node = helper.make_node("F", ["x"], [result], domain="own")
    node.overload = name
    return node


def test_functions_are_told_apart_by_their_overloads():
    functions = [overload("", "Exp"), overload("neg", "Neg"), overload("size", "Abs")]
    model = model_of([call("size", "a"), call("", "b"), call("neg", "c")], "abc", functions)
    onnx.checker.check_model(model)
    module = tilewright.compile(model, cache=False)
    assert not module.by_reference
    found = module.run({"x": X})
    for a, wanted in zip(found, onnxruntime_results(model, {"x": X}), strict=True):
        assert_alike(a, wanted)
    assert_alike(found[2], -X)


def test_one_overload_may_call_another():
    functions = [overload("outer", "F:inner", "own"), overload("inner", "Neg")]
    (found,) = tilewright.compile(model_of([call("outer", "y")], "y", functions)).run({"x": X})
    assert_alike(found, -X)


def test_names_that_look_like_overloads_are_kept():
    other = helper.make_function(
        "own",
        "F:neg",
        ["a"],
        ["b"],
        [helper.make_node("Abs", ["a"], ["b"])],
        [helper.make_opsetid("", 20)],
    )
    model = model_of(
        [call("neg", "y"), helper.make_node("F:neg", ["x"], ["z"], domain="own")],
        "yz",
        [overload("neg", "Neg"), other],
    )
    found = tilewright.compile(model, cache=False).run({"x": X})
    assert_alike(found[0], -X)
    assert_alike(found[1], np.abs(X))


def test_overloads_that_contradict_themselves_are_refused():
    twice = [overload("neg", "Neg"), overload("neg", "Abs")]
    with raises_code("M002", text="two functions named `own::F with the overload neg`"):
        tilewright.compile(model_of([call("neg", "y")], "y", twice), cache=False)
    with raises_code("M004", text="F:other"):
        tilewright.compile(model_of([call("other", "y")], "y", twice[:1]), cache=False)
    with raises_code("M004", text="F:other"):
        tilewright.compile(model_of([call("other", "y")], "y", [overload("", "Neg")]), cache=False)
    round_ = [overload("a", "F:b", "own"), overload("b", "F:a", "own")]
    with raises_code("M002", text="its calls lead back to where they began"):
        tilewright.compile(model_of([call("a", "y")], "y", round_), cache=False)
