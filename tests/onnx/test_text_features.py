"""Texts that become numbers beside onnxruntime: tokens and their sequences, and categories."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
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


MIXED = f"""{HEADER}
mixed (string[n, 1] colour, float[n, 2] x, int64[n, 1] unread)
    => (string[n] label, float[n, 3] scores)
<int64[2] rows = {{-1, 3}}> {{
    hot = ai.onnx.ml.OneHotEncoder <cats_strings = ["red", "green", "blü"], zeros = 1> (colour)
    flat = Reshape (hot, rows)
    scaled = ai.onnx.ml.Scaler <offset = [0.5, 1.0], scale = [2.0, 0.25]> (x)
    all = Concat <axis = 1> (scaled, flat)
    label, scores = ai.onnx.ml.LinearClassifier <
        coefficients = [
            0.5, 1.0, -1.0, 2.0, 0.0, -0.5, 1.0, 1.0, -2.0, 0.5, 0.1, 0.2, 0.3, 0.4, 0.5],
        intercepts = [0.1, 0.2, -0.3], classlabels_strings = ["a", "b", "c"],
        post_transform = "SOFTMAX"> (all)
}}"""


def mixed_feeds(rng: np.random.Generator, rows: int) -> dict[str, Any]:
    colours = rng.choice(texts("red", "green", "blü", "unknown"), (rows, 1))
    x = rng.normal(size=(rows, 2)).astype(np.float32)
    return {"colour": colours, "x": x, "unread": np.zeros((rows, 1), np.int64)}


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_what_follows_texts_is_native(rng: np.random.Generator, rows: int) -> None:
    module, feeds = (
        tilewright.compile(parser.parse_model(MIXED), cache=False),
        mixed_feeds(rng, rows),
    )
    assert [node.op for node in module.by_reference] == ["OneHotEncoder"]
    assert module.kernels
    beside(parser.parse_model(MIXED), feeds)


def test_the_face_of_a_module_that_begins_with_texts(rng: np.random.Generator) -> None:
    model = parser.parse_model(MIXED)
    session, feeds = tilewright.InferenceSession(model.SerializeToString()), mixed_feeds(rng, 4)
    assert [(i.name, i.type) for i in session.get_inputs()] == [
        ("colour", "tensor(string)"), ("x", "tensor(float)"), ("unread", "tensor(int64)"),
    ]  # fmt: skip
    assert [(o.name, o.type) for o in session.get_outputs()] == [
        ("label", "tensor(string)"), ("scores", "tensor(float)"),
    ]  # fmt: skip
    (scores,) = session.run(["scores"], feeds)
    module = tilewright.compile(model, cache=False)
    into = np.empty((4, 3), np.float32)
    module.run_into(feeds, {"scores": into})
    assert np.array_equal(scores, into)
    events = module.profile(feeds).events
    assert events[0].label == "mixed"
    assert len(events) > 1


def test_what_is_wrong_with_inputs_beside_texts(rng: np.random.Generator) -> None:
    module, feeds = tilewright.compile(parser.parse_model(MIXED), cache=False), mixed_feeds(rng, 4)
    with raises_code("C301"):
        module.run({name: feeds[name] for name in ("x", "unread")})
    with raises_code("C003"):
        module.run({**feeds, "x": feeds["x"].astype(np.float64)})
    with pytest.raises(tilewright.TilewrightError, match="other"):
        module.run({**feeds, "other": feeds["x"]})


def test_modules_that_begin_with_texts_are_not_saved(tmp_path: Path) -> None:
    with raises_code("A121"):
        tilewright.compile(parser.parse_model(MIXED), cache=False).save(tmp_path / "mixed.tw")


def test_words_in_front_of_a_model() -> None:
    model = parser.parse_model(f"""{HEADER}
    words (string[n] x) => (float[n, 1] y) <int64[1] flat = {{-1}}> {{
        line = Reshape (x, flat)
        small = StringNormalizer <case_change_action = "LOWER", locale = "C.UTF-8"> (line)
        tokens = com.microsoft.Tokenizer <
            mark = 0, mincharnum = 1, pad_value = "#", tokenexp = "[a-z]+"> (small)
        counts = TfIdfVectorizer <
            mode = "TFIDF", min_gram_length = 1, max_gram_length = 2, max_skip_count = 0,
            ngram_counts = [0, 2], ngram_indexes = [0, 1, 2], pool_strings = ["a", "b", "a", "b"],
            weights = [1.0, 0.5, 2.0]> (tokens)
        unit = ai.onnx.ml.Normalizer <norm = "L2"> (counts)
        y = ai.onnx.ml.LinearRegressor <coefficients = [1.0, 2.0, 4.0], intercepts = [0.5]> (unit)
    }}""")
    beside(model, {"x": texts("A b a", "c", "", "b-a-b a b")})
    module = tilewright.compile(model, cache=False)
    assert {node.op for node in module.by_reference}.isdisjoint({"Normalizer", "LinearRegressor"})
