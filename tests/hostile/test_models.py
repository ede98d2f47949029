"""Models that contradict themselves: each is an error with a code, and never anything else."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, TensorProto, helper, numpy_helper, parser

import tilewright as tw
from tests.expect import raises_code
from tests.hostile.texts import HEAD, OTHER_DOMAINS, compiled
from tests.small import make, two_outputs


def with_weight(**fields: object) -> onnx.ModelProto:
    """`two_outputs` with another tensor in place of its weights."""
    model = two_outputs()
    model.graph.initializer[0].CopyFrom(TensorProto(name="w", **fields))
    return model


@pytest.mark.parametrize("cut", [1, 10, 100, 200])
def test_a_file_that_was_cut_off(cut):
    with raises_code("M001"):
        tw.compile(two_outputs().SerializeToString()[:-cut], cache=False)


@pytest.mark.parametrize("content", [b"", b"\0", b"\xff" * 100, b"PK\x03\x04", b"<html>" * 50])
def test_something_else_than_a_model(content):
    with raises_code("M001"):
        tw.compile(content, cache=False)


def test_messages_nested_beyond_the_parser():
    content = b""
    for _ in range(200):  # graph (7) of a model, node (1), attribute (5), graph (6), …
        for field in (6, 5, 1):
            content = bytes([field << 3 | 2]) + _varint(len(content)) + content
    with raises_code("M001"):
        tw.compile(b"\x3a" + _varint(len(content)) + content, cache=False)


def _varint(number: int) -> bytes:
    found = b""
    while number > 127:
        found += bytes([number & 127 | 128])
        number >>= 7
    return found + bytes([number])


@pytest.mark.parametrize(
    "fields",
    [
        {"data_type": 1, "dims": [8, 4], "raw_data": bytes(127)},
        {"data_type": 1, "dims": [8, 4], "raw_data": bytes(129)},
        {"data_type": 1, "dims": [8, 4]},
        {"data_type": 1, "dims": [8, 4], "float_data": [1.0] * 31},
        {"data_type": 1, "dims": [8, 4], "int32_data": [1] * 32},
        {"data_type": 1, "dims": [8, 4], "float_data": [1.0] * 32, "raw_data": bytes(128)},
        {"data_type": 1, "dims": [-8, -4], "raw_data": bytes(128)},
        {"data_type": 1, "dims": [2**62, 4], "raw_data": bytes(128)},
        {"data_type": 1, "dims": [2**32, 2**32], "raw_data": b""},
        {"data_type": 1, "dims": [1] * 100, "raw_data": bytes(4)},
        {"data_type": 0, "dims": [8, 4], "raw_data": bytes(128)},
        {"data_type": 99, "dims": [8, 4], "raw_data": bytes(128)},
        {"data_type": 8, "dims": [8, 4], "raw_data": bytes(128)},
        {"data_type": 8, "dims": [8, 4], "string_data": [b"x"]},
    ],
)
def test_weights_that_are_not_what_they_say(fields):
    with raises_code("M002"):
        compiled(with_weight(**fields))


TYPES = [n for n in TensorProto.DataType.values() if n != TensorProto.UNDEFINED]
IMPOSSIBLE = [[0, 2**62], [2**40, 0, 2**40], [2**63 - 1, 2**63 - 1, 0], [2**57, 0]]


@pytest.mark.parametrize("dims", IMPOSSIBLE)
def test_nothing_beside_dimensions_that_no_array_has(dims):
    """They hold all of their elements, which are none."""
    for kind in TYPES:
        for fields in ({}, {"raw_data": b""}):
            with raises_code("M002"):
                compiled(with_weight(data_type=kind, dims=dims, **fields))
        value = TensorProto(name="v", data_type=kind, dims=dims)
        node = helper.make_node("Constant", [], ["y"], value=value)
        result = helper.make_tensor_value_info("y", kind, None)
        graph = helper.make_graph([node], "nothing", [], [result])
        with raises_code("M002"):
            compiled(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)]))
    sparse = helper.make_sparse_tensor(
        numpy_helper.from_array(np.zeros(0, np.float32), "w"),
        numpy_helper.from_array(np.zeros(0, np.int64), "places"),
        dims,
    )
    model = two_outputs()
    del model.graph.initializer[:]
    model.graph.sparse_initializer.append(sparse)
    with raises_code("M002"):
        compiled(model)


def test_content_of_large_weights_is_checked_too():
    """Large ones are looked at when they become arrays, so that nothing is copied twice."""
    x = helper.make_tensor_value_info("x", 1, [1])
    y = helper.make_tensor_value_info("y", 1, [2**20])
    big = TensorProto(name="w", data_type=1, dims=[2**20], raw_data=bytes(2**22 - 4))
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "big", [x], [y], [big])
    with raises_code("M002"):
        compiled(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("m (float[4] x) => (float[4] y) { a = Neg (b) b = Neg (a) y = Add (a, x) }", "M004"),
        ("m (float[4] x) => (float[4] y) { y = Neg (y) }", "M004"),
        ("m (float[4] x) => (float[4] y) { y = Neg (nothing) }", "M004"),
        ("m (float[4] x) => (float[4] y) { a = Neg (x) }", "M004"),
        ("m (float[4] x) => (float[4] y) { y = Neg (x) y = Abs (x) }", "M002"),
        ("m (float[4] x) => (float[4] x) { x = Neg (x) }", "M002"),
        ("m (float[4] x, float[4] x) => (float[4] y) { y = Neg (x) }", "M002"),
        ("m (float[4] x) => (float[4] y) { y = Sharpen (x) }", "M004"),
        ("m (float[4] x) => (float[4] y) { y = Add (x) }", "M004"),
        ("m (float[4] x, int64[4] z) => (float[4] y) { y = Add (x, z) }", "M004"),
        ("m (float[4] x) => (float[4] y) { y = BitwiseNot (x) }", "M004"),
        ("m (int64[100000000] x) => (float[n] y) { y = ConstantOfShape (x) }", "M004"),
        (
            (
                "m (float[1,2,6,6] x, float[3,4] b, int64[3,3] i) => (float[a,b,c,d] y)"
                " { y = RoiAlign <output_height = 2, output_width = 2> (x, b, i) }"
            ),
            "M004",
        ),
        (
            (
                "m (float[1,3,4] b, uint8[1,2,3] s, int64[1] n, float[1] t, float[1] u)"
                " => (int64[k,3] y) { y = NonMaxSuppression (b, s, n, t, u) }"
            ),
            "M004",
        ),
        ("m (float[4] x) => (float[4] y) { y = Softmax <axis = 9> (x) }", "M004"),
        ("m (float[4] x) => (float[4] y) { y = Transpose <perm = [0, 7]> (x) }", "M004"),
        ('m (float[4] x) => (float[4] y) { y = Einsum <equation = "i,j->"> (x) }', "M004"),
        ('m (float[4] x) => (float[n] y) { y = Einsum <equation = "i,i->i"> (x, ) }', "M004"),
        ("m (float[4] x) => (float[n] y) { y = Sum (x, , x) }", "M004"),
        ("m (float[2,3] x) => (float[n] y) { y = Transpose <perm = [1]> (x) }", "M004"),
        ("m (float[2,3] x) => (float[n] y) { y = Transpose <perm = [1, 1]> (x) }", "M004"),
        (
            (
                "m (float[1,1,4,4] x) => (float[n] y)"
                " { y = MaxPool <kernel_shape = [2, 2], strides = [2, 2, 9, 9]> (x) }"
            ),
            "M004",
        ),
        ('m (float[4] x) => (float[4] y) { y = Einsum <equation = "->->"> (x) }', "M004"),
        (
            "m (float[1,1,4,4] x) => (float[n] y) { y = MaxPool <kernel_shape = [-1, 2]> (x) }",
            "M004",
        ),
        (
            (
                "m (float[1,1,h,w] x) => (float[1,1,a,b] y) <float[1,1,1,1] k = {1}>"
                " { y = ConvTranspose <strides = [2, -2]> (x, k) }"
            ),
            "M004",
        ),
    ],
)
def test_graphs_that_make_no_sense(text, code):
    with raises_code(code):
        compiled(parser.parse_model(HEAD + text))


TREE = """ai.onnx.ml.TreeEnsembleRegressor <
  n_targets = 1, nodes_treeids = [0], nodes_nodeids = [0], nodes_featureids = [0],
  nodes_modes = ["LEAF"], nodes_values = [0.0], nodes_truenodeids = [0],
  nodes_falsenodeids = [0], target_treeids = [0], target_nodeids = [0], target_ids = [0],
  target_weights = [1.5]>"""


@pytest.mark.parametrize(
    "text",
    [
        "m (float[n,8] x, double[8] b) => (float[n,8] y) { y = com.microsoft.BiasGelu (x, b) }",
        "m (float[n,8] x, int8[8] b) => (float[n,8] y) { y = com.microsoft.BiasGelu (x, b) }",
        "m (int32[n,8] x) => (int32[n,8] y) { y = com.microsoft.QuickGelu (x) }",
        (
            "m (int8[n,t,8] x, int8[8] s) => (int8[n,t,8] y)"
            " { y = com.microsoft.SkipLayerNormalization (x, x, s) }"
        ),
        f"m (float[n,2,2] x) => (float[n,1] y) {{ y = {TREE} (x) }}",
    ],
)
def test_operators_of_other_domains_that_make_no_sense(text):
    with raises_code("M004"):
        compiled(parser.parse_model(OTHER_DOMAINS + text))


def test_features_of_one_row_may_be_a_vector():
    model = parser.parse_model(
        f"{OTHER_DOMAINS}m (float[2] x) => (float[1,1] y) {{ y = {TREE} (x) }}"
    )
    (y,) = compiled(model).run({"x": np.zeros(2, np.float32)})
    assert y.tolist() == [[1.5]]


def test_attributes_twice():
    model = two_outputs()
    node = model.graph.node[0]
    for value in (1, 2):
        node.attribute.append(helper.make_attribute("axis", value))
    with raises_code("M002", text="two attributes named `axis`"):
        compiled(model)


def test_attribute_without_a_type():
    model = two_outputs()
    model.graph.node[0].attribute.append(AttributeProto(name="axis", i=1))
    with raises_code("M002", text="has no type"):
        compiled(model)


@pytest.mark.parametrize("version", [-1, 2**31, 2**62])
def test_versions_that_do_not_exist(version):
    model = two_outputs()
    model.opset_import[0].version = version
    with raises_code("M002", text="version"):
        compiled(model)


def test_sparse_places_outside_of_the_tensor():
    model = parser.parse_model(HEAD + "m (float[2] x) => (float[2] y) { y = Add (x, w) }")
    values = helper.make_tensor("w", 1, [1], [1.0])
    indices = numpy_helper.from_array(np.array([7]), "at")
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2]))
    with raises_code("M002", text="outside"):
        compiled(model)


@pytest.mark.parametrize(
    ("values", "places"),
    [
        (helper.make_tensor("w", 1, [], [1.0]), np.array(0)),
        (helper.make_tensor("w", 1, [], [1.0]), np.array([[0, 0]])),
        (helper.make_tensor("w", 1, [1], [1.0]), np.array([0, 1])),
        (helper.make_tensor("w", 1, [1, 1], [1.0]), np.array([0])),
        (helper.make_tensor("w", 1, [2], [1.0, 2.0]), np.array([[0], [1], [0]])),
    ],
)
def test_sparse_places_of_another_form(values, places):
    model = parser.parse_model(HEAD + "m (float[2] x) => (float[2] y) { y = Add (x, w) }")
    sparse = onnx.SparseTensorProto(values=values, dims=[2])
    sparse.indices.CopyFrom(numpy_helper.from_array(places.astype(np.int64), "at"))
    model.graph.sparse_initializer.append(sparse)
    with raises_code("M002"):
        compiled(model)


def test_a_tensor_where_a_sequence_belongs():
    text = "m (float[4] x) => (float[n] y) { y = ConcatFromSequence <axis = 0> (x) }"
    with raises_code("M004"):
        compiled(parser.parse_model(HEAD + text))


def test_integers_where_only_floats_make_sense():
    text = "m (int64[4] x) => (int64[4] y) { y = Softmax (x) }"
    with raises_code("M004", text="takes floats"):
        compiled(parser.parse_model(HEAD + text))


def test_graphs_where_one_belongs():
    text = """m (float[4] x, int64 n, bool c) => (float[4] y) {
        y = Loop (n, c, x) <
            body = b (int64 i, bool d, float[4] v) => (bool e, float[4] w) {
                e = Identity (d) w = Neg (v)
            }
        >
    }"""
    model = parser.parse_model(HEAD + text)
    attribute = model.graph.node[0].attribute[0]
    attribute.graphs.append(attribute.g)
    attribute.type = AttributeProto.GRAPHS
    with raises_code("M004"):
        compiled(model)


def test_an_output_twice():
    model = two_outputs()
    model.graph.output.append(model.graph.output[0])
    with raises_code("M002", text="two outputs"):
        compiled(model)


def test_values_of_a_type_that_does_not_exist():
    model = two_outputs()
    model.graph.input[0].type.tensor_type.elem_type = 127
    with raises_code("M002", text="number 127"):
        compiled(model)


@pytest.mark.parametrize(("op", "wanted"), [("Sum", 500.0), ("Mean", 1.0), ("Max", 1.0)])
def test_hundreds_of_operands(op, wanted):
    """They became one expression that was nested too deeply."""
    model = make([helper.make_node(op, ["x"] * 500, ["y"])], [("x", [4])], [("y", [4])])
    (found,) = compiled(model).run({"x": np.ones(4, np.float32)})  # type: ignore[attr-defined]
    assert np.allclose(found, wanted)


def test_a_sparse_tensor_without_dimensions():
    model = parser.parse_model(HEAD + "m (float[2] x) => (float[2] y) { y = Add (x, w) }")
    sparse = onnx.SparseTensorProto(values=helper.make_tensor("w", 1, [1], [1.0]))
    sparse.indices.CopyFrom(helper.make_tensor("at", 7, [1, 0], []))
    model.graph.sparse_initializer.append(sparse)
    with raises_code("M002", text="no dimensions"):
        compiled(model)
