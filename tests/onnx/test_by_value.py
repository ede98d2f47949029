"""Models without a graph: what their nodes give is what native code gives, whatever is beside."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, parser

import tilewright as tw
from tests.expect import raises_code
from tests.onnx.beside_ort import assert_alike, onnxruntime_results
from tests.onnx.conformance import by_value, outcomes
from tests.onnx.node_cases import node_cases

pytestmark = pytest.mark.filterwarnings("ignore::tilewright.TilewrightWarning")

ROUNDING_NOISE = ("test_dft_inverse", "test_dft_inverse_opset19")
"""Cases that expect what rounding made of zero; no way through tilewright gives it."""


def wrong_by_value(cases: list[Any]) -> list[Any]:
    found = [o for o in outcomes(cases, by_value) if o.operator != "ImageDecoder"]
    return [o for o in found if o.kind == "failing" and o.name not in ROUNDING_NOISE]


def test_every_fortieth_node_test_is_right_by_value():
    assert wrong_by_value(node_cases()[::40]) == []


@pytest.mark.slow
def test_all_node_tests_are_right_by_value():
    assert wrong_by_value(node_cases()) == []


def head(*domains: str, opset: int = 20) -> str:
    imports = ", ".join(f'"{domain}" : 1' for domain in domains)
    return f'<ir_version: 10, opset_import: ["" : {opset}{", " if domains else ""}{imports}]>'


def beside_texts(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same model with a text that goes through it: it has no graph then."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    string = onnx.TensorProto.STRING
    made.graph.input.append(helper.make_tensor_value_info("text", string, ["t"]))
    made.graph.node.append(helper.make_node("Identity", ["text"], ["same_text"]))
    made.graph.output.append(helper.make_tensor_value_info("same_text", string, ["t"]))
    return made


def floats(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).uniform(-2, 2, shape).astype(np.float32)


FORMS = {
    "of another vendor": (
        head("com.microsoft") + "g (float[n, 4] x) => (float[n, 4] y)"
        "{ z = com.microsoft.Gelu(x) y = com.microsoft.QuickGelu(z) }",
        {"x": floats(3, 4)},
    ),
    "quantised, of 32 bits": (
        head() + "g (int32[n] x, float s) => (float[n] y) { y = DequantizeLinear(x, s) }",
        {"x": np.arange(-3, 3, dtype=np.int32), "s": np.array(0.5, np.float32)},
    ),
    "limits that are scalars": (
        head(opset=11) + "g (float[1, n, 4] b, float[1, 1, n] s, int64 k) => (int64[m, 3] y)"
        "{ y = NonMaxSuppression(b, s, k) }",
        {"b": np.abs(floats(1, 5, 4)), "s": floats(1, 1, 5), "k": np.array(2)},
    ),
    "old names of modes": (
        head(opset=16) + "g (float[1, 1, n, m] x, float[1, 2, 2, 2] p) => (float[1, 1, 2, 2] y)"
        '{ y = GridSample <mode = "bilinear"> (x, p) }',
        {"x": floats(1, 1, 3, 4), "p": floats(1, 2, 2, 2) / 2},
    ),
    "quotients by zero": (
        head() + "g (float[n] x) => (float[n] y) { z = Sub(x, x) y = Div(x, z) }",
        {"x": floats(3)},
    ),
    "rows before opset 13": (
        head(opset=11) + "g (float[n, 2, 3] x) => (float[n, 2, 3] y) { y = Softmax (x) }",
        {"x": floats(2, 2, 3)},
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_texts_beside_a_node_do_not_change_it(name: str):
    text, feeds = FORMS[name]
    model = parser.parse_model(text)
    (wanted,) = onnxruntime_results(model, feeds)
    module = tw.compile(beside_texts(model), cache=False)
    assert module.by_reference
    for _ in range(2):  # the second time with what is known of the first
        found, words = module.run({**feeds, "text": ["a", "b"]})
        assert words.tolist() == ["a", "b"]
        assert found.dtype == wanted.dtype
        assert_alike(found, wanted)


FUNCTIONS = (
    head("own")
    + """
    g (string[n] t, float[n] x) => (float[n] y, float[n] z, string[n] u)
    { y, u = own.Outer <alpha = 2.0> (x, t)  z, w = own.Outer (x, t, x) }
    <domain: "own", opset_import: ["" : 20, "own" : 1]>
    Outer <alpha: float = 0.5> (a, t, b) => (c, u)
    {
        d = own.Inner <slope: float = @alpha> (a)
        has = OptionalHasElement(b)
        c = If (has) <
            then_branch = yes () => (float[n] e) { e = Add(d, b) },
            else_branch = no () => (float[n] f) { f = Identity(d) }
        >
        u = StringConcat(t, t)
    }
    <domain: "own", opset_import: ["" : 20, "own" : 1]>
    Inner <slope> (v) => (w) { w = LeakyRelu <alpha: float = @slope> (v) }
    """
)


def test_functions_of_texts_have_defaults_and_leave_inputs_out():
    x = np.float32([-1, 2])
    y, z, u = tw.compile(parser.parse_model(FUNCTIONS), cache=False).run({"t": ["a", "b"], "x": x})
    np.testing.assert_array_equal(y, [-2, 2])
    np.testing.assert_array_equal(z, [-1.5, 4])
    assert u.tolist() == ["aa", "bb"]


MAPPED = parser.parse_model(
    head()
    + """
    g (seq(string[n]) texts, seq(string[n]) others, string[1] tail) => (seq(string[n]) y)
    {
        y = SequenceMap (texts, others) <
            body = each (string[n] a, string[n] b) => (string[n] d)
            { c = StringConcat(a, b) d = StringConcat(c, tail) }
        >
    }"""
)


def test_bodies_see_all_sequences_and_what_lies_around():
    feeds = {"texts": [["a"], ["b"]], "others": [["c"], ["d"]], "tail": ["!"]}
    (found,) = tw.compile(MAPPED, cache=False).run(feeds)
    assert [texts.tolist() for texts in found] == [["ac!"], ["bd!"]]


def test_what_no_way_takes_says_why():
    """A text where the operator has numbers: the reason is that of the node, not of a way."""
    model = parser.parse_model(
        head("com.microsoft")
        + """g (string[n] t, float[k] x, float[m] b) => (float[j] y, string[n] u)
        { u = Identity(t) y = com.microsoft.BiasGelu(x, b) }"""
    )
    module = tw.compile(model, cache=False)
    (y, _) = module.run({"t": ["a"], "x": floats(3), "b": floats(3)})
    assert y.shape == (3,)
    with raises_code("C302"):
        module.run({"t": ["a"], "x": floats(3), "b": floats(2)})


WORDS = np.array(["", "a", "apple", "b", "zebra", "ä"], object)
"""In order, the empty one first: places in it are what native code gets instead of them."""

MOVES = {
    "Compress": ("y = Compress <axis = 1> (x, keep)", "string[n, k] y"),
    "Concat": ("y = Concat <axis = 0> (x, z, x)", "string[m, 3] y"),
    "Equal": ("y = Equal (x, z)", "bool[n, 3] y"),
    "GatherElements": ("y = GatherElements (x, at)", "string[2, 3] y"),
    "OneHot": ("y = OneHot (at, depth, ends)", "string[2, 3, 4] y"),
    "Pad": ("y = Pad (x, border, last)", "string[3, 4] y"),
    "Pad without a value": ("y = Pad (x, border)", "string[3, 4] y"),
    "ScatterElements": ("y = ScatterElements (x, at, z)", "string[2, 3] y"),
    "Split": ("a, y = Split <axis = 1, num_outputs = 2> (x)", "string[2, 1] y"),
    "Trilu": ("y = Trilu (x)", "string[2, 3] y"),
    "Unique": ("y, i, j, h = Unique (x)", "string[k] y, int64[k] i, int64[l] j, int64[k] h"),
    "Where": ("y = Where (c, x, z)", "string[2, 3] y"),
}


@pytest.mark.parametrize("name", MOVES)
def test_texts_are_moved_as_numbers_are(name: str):
    text, outputs = MOVES[name]
    inputs = "TYPE[n, 3] x, TYPE[n, 3] z, TYPE[2] ends, TYPE last, bool[n, 3] c, bool[3] keep"
    signature = f"g ({inputs}, int64[n, 3] at, int64 depth, int64[4] border) => ({outputs})"
    rng = np.random.default_rng(7)
    shapes = {"x": (2, 3), "z": (2, 3), "ends": (2,), "last": ()}
    codes = {key: np.asarray(rng.integers(0, len(WORDS), shape)) for key, shape in shapes.items()}
    others = {
        "c": rng.integers(0, 2, (2, 3)).astype(bool),
        "keep": np.array([True, False, True]),
        "at": rng.permuted(np.tile([0, 1, 0], (2, 1)), axis=1),
        "depth": np.array(4),
        "border": np.array([0, 1, 1, 0]),
    }
    others["at"][1] = 1 - others["at"][0]  # each place is written once
    as_texts, as_numbers = (
        tw.compile(
            parser.parse_model(
                f"{head()} {signature.replace('TYPE', kind).replace('string', kind)} {{ {text} }}"
            ),
            cache=False,
        )
        for kind in ("string", "int64")
    )
    words = {key: np.asarray(WORDS[value], object) for key, value in codes.items()}
    found = as_texts.run({**words, **others})
    wanted = as_numbers.run({**codes, **others})
    for one, number in zip(found, wanted, strict=True):
        same = WORDS[number] if one.dtype == object else number
        assert one.shape == number.shape
        assert one.tolist() == same.tolist()


def test_complex_numbers_are_moved_as_well():
    model = parser.parse_model(
        head() + "g (complex64[n] x, int64[2] border) => (complex64[m] y) { y = Pad (x, border) }"
    )
    x = np.array([1j, -2, 0, 3 - 1j], np.complex64)
    (found,) = tw.compile(model, cache=False).run({"x": x, "border": np.array([1, 2])})
    np.testing.assert_array_equal(found, np.pad(x, (1, 2)))


@pytest.mark.parametrize(
    ("to", "texts", "wanted"),
    [
        ("BFLOAT16", ["1", "-0.5", "1e3", "nan"], ["1.0", "-0.5", "1000.0", "nan"]),
        ("FLOAT8E4M3FN", ["1.06", "1000", "-inf", "0"], ["1.0", "448.0", "-448.0", "0.0"]),
        ("INT4", ["7", "-8", "3.9", "1e0"], ["7", "-8", "3", "1"]),
        ("UINT64", ["18446744073709551615", "0"], ["18446744073709551615", "0"]),
        ("BOOL", ["0", "1", "True", "false"], ["False", "True", "True", "False"]),
    ],
)
def test_texts_become_numbers_of_every_type(to: str, texts: list[str], wanted: list[str]):
    number = onnx.TensorProto.DataType.Value(to)
    casts = f"z = Cast <to = {number}> (x) y = Cast <to = 8> (z)"
    model = parser.parse_model(f"{head(opset=21)} g (string[n] x) => (string[n] y) {{ {casts} }}")
    (found,) = tw.compile(model, cache=False).run({"x": texts})
    assert found.tolist() == wanted


def test_a_sequence_begins_with_its_first_member():
    model = parser.parse_model(
        head("own")
        + """g (string[n] x) => (string[m] y) { y = own.Begun(x) }
        <domain: "own", opset_import: ["" : 20]>
        Begun (x) => (y) {
            nothing = SequenceEmpty <dtype = 8> ()
            first = Constant <value_int = 0> ()
            one = SequenceInsert(nothing, x, first)
            two = SequenceInsert(one, x, first)
            y = ConcatFromSequence <axis = 0> (two)
        }"""
    )
    (found,) = tw.compile(model, cache=False).run({"x": ["a", "b"]})
    assert found.tolist() == ["a", "b", "a", "b"]
