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


def test_every_thirtieth_node_test_is_right_by_value():
    assert wrong_by_value(node_cases()[::30]) == []


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
