"""Models that contradict themselves: each is an error with a code, and never anything else."""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, TensorProto, helper, numpy_helper, parser

import tilewright as tw
from tests.expect import raises_code
from tests.small import make, two_outputs
from tilewright.errors import CallError, ModelError

HEAD = '<ir_version: 9, opset_import: ["" : 20, "own" : 1]>\n'


def compiled(model: onnx.ModelProto) -> object:
    """The way that a file takes."""
    return tw.compile(model.SerializeToString(), cache=False, threads=1)


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


OTHER_DOMAINS = '<ir_version: 9, opset_import: ["" : 20, "ai.onnx.ml" : 3, "com.microsoft" : 1]>'
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


def test_labels_that_are_no_text():
    text = (
        "m (int64[n] x) => (string[n] y) { y = ai.onnx.ml.LabelEncoder"
        ' <keys_int64s = [3], values_strings = ["?"], default_string = "none"> (x) }'
    )
    model = parser.parse_model(OTHER_DOMAINS + text)
    labels = next(a for a in model.graph.node[0].attribute if a.name == "values_strings")
    labels.strings[0] = b"\xf6\xff"
    (y,) = compiled(model).run({"x": np.array([3, 4])})
    assert y.tolist() == ["\ufffd\ufffd", "none"]


def test_features_of_one_row_may_be_a_vector():
    model = parser.parse_model(
        f"{OTHER_DOMAINS}m (float[2] x) => (float[1,1] y) {{ y = {TREE} (x) }}"
    )
    (y,) = compiled(model).run({"x": np.zeros(2, np.float32)})
    assert y.tolist() == [[1.5]]


def test_negative_dimensions_of_what_runs_by_reference_are_not_known():
    text = "m (string[n] x, float[2] v) => (string[n] y) { y = StringConcat (x, x) }"
    model = parser.parse_model(HEAD + text)
    model.graph.input[1].type.tensor_type.shape.dim[0].dim_value = -(2**31)
    with pytest.warns(tw.TilewrightWarning):
        assert compiled(model).inputs[1].name == "v"


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


def test_names_that_are_no_text():
    content = two_outputs().SerializeToString().replace(b"positive", b"\xff\xfesitive")
    with raises_code("M002", text="not a text in UTF-8"):
        tw.compile(content, cache=False)


@pytest.mark.parametrize(
    "name", ["\x1b[31mred\x1b[0m", "two\nlines", "\r", "\u202eback", "\0", "{code}%s", "a" * 3000]
)
def test_names_cannot_change_how_an_error_reads(name):
    model = make([helper.make_node("Sharpen", [name], ["y"], name)], [(name, [4])], [("y", [4])])
    model.graph.name = name
    with raises_code("M004") as caught:
        compiled(model)
    text = str(caught.value)
    assert all(c == "\n" or c.isprintable() for c in text)
    assert len(text.splitlines()) == len(str(_error_of_plain_name()).splitlines())
    assert len(text) < 1500


def _error_of_plain_name() -> BaseException:
    model = make([helper.make_node("Sharpen", ["n"], ["y"], "n")], [("n", [4])], [("y", [4])])
    with raises_code("M004") as caught:
        compiled(model)
    return caught.value


@pytest.mark.parametrize(
    "name", ['quote"', "new\nline", "%0", "@f", "back\\slash", "é", "i64", " "]
)
def test_names_cannot_change_the_code_that_is_made(name):
    """Names of values and sizes go through texts of loops and of machine code."""
    add = helper.make_node("Add", [name, name], ["z"])
    other = helper.make_node("MatMul", ["z", "w"], [f"{name}!"])
    shape: list[int | str] = [f"{name}rows", 8]
    outputs: list[tuple[str, list[int | str]]] = [(f"{name}!", [f"{name}rows", 4])]
    model = make([add, other], [(name, shape)], outputs, {"w": np.ones((8, 4), np.float32)})
    x = np.ones((3, 8), np.float32)
    (found,) = compiled(model).run({name: x})  # type: ignore[attr-defined]
    assert np.array_equal(found, np.full((3, 4), 16, np.float32))


def test_names_have_a_longest_length():
    model = make([helper.make_node("Neg", ["x"], ["y" * 5000])], [("x", [4])], [("y" * 5000, [4])])
    with raises_code("M002", text="5000 characters"):
        compiled(model)


def test_negative_dimensions_of_inputs_are_unknown():
    """As other runtimes take them: some exporters write -1 for any size."""
    model = make([helper.make_node("Neg", ["x"], ["y"])], [("x", [-1, 4])], [("y", [-1, 4])])
    x = np.ones((3, 4), np.float32)
    (found,) = compiled(model).run({"x": x})  # type: ignore[attr-defined]
    assert np.array_equal(found, -x)


@pytest.mark.parametrize("dims", [[2**40, 2**40], [2**62, 4]])
def test_inputs_that_no_memory_holds(dims):
    model = make([helper.make_node("Neg", ["x"], ["y"])], [("x", dims)], [("y", dims)])
    with raises_code("M002", text="fits into memory"):
        compiled(model)


@pytest.mark.parametrize("size", [10**12, 2**44])
def test_a_result_for_which_there_is_no_memory_is_an_error_of_the_call(size):
    expand = helper.make_node("Expand", ["x", "shape"], ["y"])
    model = make([expand], [("x", [1])], [("y", [size])], {"shape": np.array([size])})
    module = compiled(model)
    with pytest.raises(CallError, match=r"C026|C025"):
        module.run({"x": np.ones(1, np.float32)})  # type: ignore[attr-defined]


def test_a_result_whose_size_data_tell_is_an_error_of_the_call():
    nodes = [helper.make_node("ConstantOfShape", ["s"], ["y"])]
    model = make(nodes, [("s", [2])], [("y", ["n", "m"])], kind=TensorProto.INT64)
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT
    module = compiled(model)
    for sizes in ([2**40, 2**40], [2**62, 2**62], [-5, 3], [2**35, 2**9]):
        with pytest.raises(CallError, match="C0"):
            module.run({"s": np.array(sizes)})  # type: ignore[attr-defined]
    (found,) = module.run({"s": np.array([2, 3])})  # type: ignore[attr-defined]
    assert np.array_equal(found, np.zeros((2, 3), np.float32))


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


@pytest.mark.parametrize("scale", [0.37, 1.4142135, 1e-43])
def test_a_symbolic_size_is_scaled_by_any_number(scale):
    """One that is no quotient of small numbers was an error of ours."""
    text = "m (float[1,1,h,w] x) => (float[1,1,a,b] y) { y = Resize (x, , s) }"
    model = parser.parse_model(HEAD + text)
    scales = np.array([1, 1, scale, 1], np.float32)
    model.graph.initializer.append(numpy_helper.from_array(scales, "s"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = compiled(model)
    if scale > 1e-3:
        x = np.zeros((1, 1, 100, 3), np.float32)
        (found,) = module.run({"x": x})  # type: ignore[attr-defined]
        assert found.shape == (1, 1, int(np.floor(np.float32(100) * np.float32(scale))), 3)


@pytest.mark.parametrize(("op", "wanted"), [("Sum", 500.0), ("Mean", 1.0), ("Max", 1.0)])
def test_hundreds_of_operands(op, wanted):
    """They became one expression that was nested too deeply."""
    model = make([helper.make_node(op, ["x"] * 500, ["y"])], [("x", [4])], [("y", [4])])
    (found,) = compiled(model).run({"x": np.ones(4, np.float32)})  # type: ignore[attr-defined]
    assert np.allclose(found, wanted)


def test_the_long_name_of_the_domain_of_onnx_by_reference():
    text = "m (float[4] x, float[3] u) => (float[4] y) { s = SequenceConstruct (x, u)"
    text += " t = SequenceMap (s) < body = b (float[n] v) => (float[n] w) { w = Neg (v) } >"
    model = parser.parse_model(HEAD + text + " y = SequenceAt (t, k) }")
    model.graph.input.append(helper.make_tensor_value_info("k", 7, []))
    model.opset_import[0].domain = "ai.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = compiled(model)
        feeds = {"x": np.ones(4, np.float32), "u": np.ones(3, np.float32), "k": np.int64(0)}
        (found,) = module.run(feeds)  # type: ignore[attr-defined]
    assert np.array_equal(found, -np.ones(4, np.float32))


def test_a_reduction_of_billions_is_compiled_at_once():
    """All ways to cut it in pieces were tried: ten seconds, and more for more."""
    text = "m (float[n, 4294967296] x, float[4294967296, 4] w) => (float[n, 4] y)"
    model = parser.parse_model(HEAD + text + " { y = MatMul (x, w) }")
    start = time.process_time()
    compiled(model)
    assert time.process_time() - start < 5.0


def test_a_function_that_calls_itself_by_the_other_name_of_its_domain():
    text = """m (float[4] x) => (float[4] y) { y = f (x) }
    <domain: "", opset_import: ["" : 20]> f (a) => (b) { b = ai.onnx.f (a) }"""
    model = parser.parse_model(HEAD + text)
    model.functions[0].node[0].domain = "ai.onnx"
    with pytest.raises(ModelError, match=r"M00[245]"):
        compiled(model)


@pytest.mark.parametrize("name", ["a" * 300, "nul\0l", "folder"])
def test_names_that_are_no_files(tmp_path, name):
    (tmp_path / "folder").mkdir()
    with raises_code("M001"):
        tw.compile(tmp_path / name, cache=tmp_path / "cache")


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    path = tmp_path / "model.onnx"
    path.write_bytes(two_outputs().SerializeToString())

    def refuse(*_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr("tilewright.frontend.onnx.read.os.open", refuse)
    with raises_code("M001", text="Permission denied"):
        tw.compile(path, cache=tmp_path / "cache")


def test_an_error_about_very_many_inputs_is_short():
    names = [f"i{k}" for k in range(2000)]
    model = make([helper.make_node("Sum", names, ["y"])], [("x", [4])], [("y", [4])])
    with raises_code("M004", text="1984 more") as caught:
        compiled(model)
    assert len(str(caught.value)) < 2000


def test_a_transposed_convolution_of_huge_strides_is_compiled_at_once():
    """Each step of a stride was looked at, and would have been a kernel."""
    text = """m (float[1,2,h,w] x) => (float[1,2,a,b] y) {
        y = ConvTranspose <strides = [2, 1000000000], group = 2> (x, k)
    }"""
    model = parser.parse_model(HEAD + text)
    kernel = np.ones((2, 1, 3, 3), np.float32)
    model.graph.initializer.append(numpy_helper.from_array(kernel, "k"))
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled(model)
    assert time.process_time() - start < 5.0


def test_a_sparse_tensor_without_dimensions():
    model = parser.parse_model(HEAD + "m (float[2] x) => (float[2] y) { y = Add (x, w) }")
    sparse = onnx.SparseTensorProto(values=helper.make_tensor("w", 1, [1], [1.0]))
    sparse.indices.CopyFrom(helper.make_tensor("at", 7, [1, 0], []))
    model.graph.sparse_initializer.append(sparse)
    with raises_code("M002", text="no dimensions"):
        compiled(model)


def test_more_bytes_than_can_be_counted_whatever_is_given():
    """Sizes that are symbolic escape the limits of known ones, and met a check of artefacts."""
    model = make(
        [
            helper.make_node("Expand", ["x", "a"], ["y"]),
            helper.make_node("Tile", ["y", "b"], ["z"]),
        ],
        [("x", ["n", 1])],
        [("z", ["m", "k"])],
        {"a": np.array([1, 2**40]), "b": np.array([2**40, 1])},
    )
    with pytest.raises(ModelError, match=r"M00[45]"):
        compiled(model)


def test_a_size_that_does_not_fit_into_64_bits_is_told_as_too_large():
    from tilewright.model.exhaustion import told_as_too_large
    from tilewright.model.sizing import SizeTable
    from tilewright.tensor import ir as tir

    with raises_code("M005", text="more bytes"), told_as_too_large("m"):
        SizeTable.postfix(SizeTable.__new__(SizeTable), tir.Const(1 << 70))
