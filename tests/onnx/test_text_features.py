"""Texts that become numbers beside onnxruntime: tokens and their sequences, and categories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, parser

import tilewright
from tests.expect import raises_code
from tests.onnx.beside_ort import assert_alike, onnxruntime_results

pytestmark = pytest.mark.filterwarnings("ignore::tilewright.TilewrightWarning")

HEADER = '<ir_version: 9, opset_import: ["" : 18, "ai.onnx.ml" : 3, "com.microsoft" : 1]>'


def texts(*values: str) -> Any:
    return np.array(values, dtype=object)


def beside(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> list[Any]:
    found = tilewright.compile(model, cache=False).run(feeds)
    for one, wanted in zip(found, onnxruntime_results(model, feeds), strict=True):
        assert (one.dtype, one.shape) == (wanted.dtype, wanted.shape)
        if one.dtype == object:
            assert one.tolist() == wanted.tolist()
        else:
            assert_alike(one, wanted)
    return found


def tokenizer(rank: int = 1, **attributes: Any) -> onnx.ModelProto:
    settings = {"mark": 0, "mincharnum": 1, "pad_value": "#", **attributes}
    node = helper.make_node("Tokenizer", ["x"], ["y"], domain="com.microsoft", **settings)
    graph = helper.make_graph(
        [node],
        "tokens",
        [helper.make_tensor_value_info("x", TensorProto.STRING, [None] * rank)],
        [helper.make_tensor_value_info("y", TensorProto.STRING, None)],
    )
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9)


WAYS: list[dict[str, Any]] = [
    *({"tokenexp": p} for p in ("[a-zü]+", ".", "a|ab", "a+?", "a*", r"\b\w+\b", "^a", "a|ab\\b")),
    *({"separators": s} for s in ([""], [" "], [" ", r"\."], ["b|bc"], ["a*"], ["", " "])),
]


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("mark", [0, 1])
def test_tokens(way: dict[str, Any], mark: int) -> None:
    """Letters, the longest of what matches first, or what lies between separators."""
    rows = texts("ab b.c", "", "über  straße\nabc", "aab")
    beside(tokenizer(mark=mark, **way), {"x": rows})
    beside(tokenizer(2, mark=mark, pad_value="", **way), {"x": rows.reshape(2, 2)})
    beside(tokenizer(mark=mark, **way), {"x": texts("", "")})
    for shape in ((0, 3), (2, 0)):
        beside(tokenizer(2, mark=mark, **way), {"x": np.empty(shape, object)})


def test_short_tokens_are_left_out() -> None:
    x = {"x": texts("a bb ccc", "d")}
    for way in ({"tokenexp": "[a-z]+"}, {"separators": [" "]}):
        (found,) = beside(tokenizer(mincharnum=2, **way), x)
        assert found.tolist() == [["bb", "ccc"], ["#", "#"]]


@pytest.mark.parametrize(
    "wrong",
    [{}, {"separators": [""], "mincharnum": 2}, {"tokenexp": "a", "mincharnum": 0}],
    ids=str,
)
def test_tokenizers_without_a_meaning_are_refused(wrong: dict[str, Any]) -> None:
    module = tilewright.compile(tokenizer(**wrong), cache=False)
    with raises_code("C302"):
        module.run({"x": texts("a")})


def test_texts_keep_their_lengths_where_others_are_shorter() -> None:
    """An imputer of texts: what is short stands first."""
    model = parser.parse_model(f"""{HEADER}
    imputer (string[n] x) => (string[n] y) <int64[1] zero = {{0}}> {{
        filled = ai.onnx.ml.LabelEncoder <keys_int64s = [0], values_strings = ["zz"]> (zero)
        number = ai.onnx.ml.LabelEncoder <
            keys_strings = [""], values_int64s = [1], default_int64 = 0> (x)
        is_missing = Cast <to = 9> (number)
        y = Where (is_missing, filled, x)
    }}""")
    (found,) = beside(model, {"x": texts("longer", "", "a")})
    assert found.tolist() == ["longer", "zz", "a"]


@pytest.mark.parametrize("kind", ["int64s", "floats", "strings"])
def test_encoders_of_texts_have_defaults(kind: str) -> None:
    values: dict[str, list[Any]] = {
        "int64s": [5, 7],
        "floats": [0.5, 2.0],
        "strings": ["x", "long"],
    }
    node = helper.make_node(
        "LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml",
        keys_strings=["a", "b"], **{f"values_{kind}": values[kind]},
    )  # fmt: skip
    types = {
        "int64s": TensorProto.INT64,
        "floats": TensorProto.FLOAT,
        "strings": TensorProto.STRING,
    }
    graph = helper.make_graph(
        [node],
        "encode",
        [helper.make_tensor_value_info("x", TensorProto.STRING, ["n", "m"])],
        [helper.make_tensor_value_info("y", types[kind], ["n", "m"])],
    )
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=9)
    beside(model, {"x": texts("b", "?", "a", "").reshape(2, 2)})
    beside(model, {"x": np.empty((0, 2), object)})
