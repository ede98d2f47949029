"""Models of texts beside onnxruntime: what comes in, and the operators that only know texts."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, parser

import tilewright
from tests.expect import raises_code
from tests.onnx.beside_ort import onnxruntime_results
from tilewright.frontend.onnx.regular import NotRegular, in_python

STRING, BOOL = TensorProto.STRING, TensorProto.BOOL

pytestmark = pytest.mark.filterwarnings("ignore::tilewright.TilewrightWarning")


LOCALE = "C.UTF-8"
"""One that is there on every machine; onnxruntime's default is not."""


def text_model(op: str, kind: int = STRING, rank: int = 1, **attributes: Any) -> onnx.ModelProto:
    if op == "StringNormalizer":
        attributes["locale"] = LOCALE
    node = helper.make_node(op, ["x"], ["y"], **attributes)
    dims = ["c"] if rank == 1 else [1, "c"]
    graph = helper.make_graph(
        [node],
        "texts",
        [helper.make_tensor_value_info("x", STRING, dims)],
        [helper.make_tensor_value_info("y", kind, None)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def texts(*values: str) -> Any:
    return np.array(values, dtype=object)


def beside(model: onnx.ModelProto, x: Any) -> Any:
    (found,) = tilewright.compile(model, cache=False).run({"x": x})
    (wanted,) = onnxruntime_results(model, {"x": x})
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    assert found.tolist() == wanted.tolist()
    return found


WORDS = texts("café", "The", "the", "", "THE END", "Straße", "ÉTÉ", "日本")


@pytest.mark.parametrize("action", ["NONE", "LOWER", "UPPER"])
@pytest.mark.parametrize("sensitive", [0, 1])
def test_normalised_texts(action: str, sensitive: int) -> None:
    attributes = {"case_change_action": action, "is_case_sensitive": sensitive}
    plain = text_model("StringNormalizer", **attributes)
    beside(plain, WORDS)
    stopped = text_model("StringNormalizer", stopwords=["the", "Été"], **attributes)
    beside(stopped, WORDS)
    rows = text_model("StringNormalizer", rank=2, stopwords=["the"], **attributes)
    beside(rows, WORDS.reshape(1, -1))


def test_nothing_is_left_of_stop_words() -> None:
    model = text_model("StringNormalizer", stopwords=["a", "b"])
    assert beside(model, texts("a", "b")).tolist() == [""]
    model = text_model("StringNormalizer", rank=2, stopwords=["a", "b"])
    assert beside(model, texts("a", "b").reshape(1, 2)).tolist() == [[""]]


@pytest.mark.parametrize(
    "x",
    [
        ["é", "b"],
        np.array(["é", "b"]),
        np.array(["é".encode(), b"b"]),
        np.array(["é".encode(), "b"], dtype=object),
    ],
    ids=["list", "fixed lengths", "bytes", "objects"],
)
def test_texts_of_every_form(x: Any) -> None:
    model = text_model("StringNormalizer", case_change_action="UPPER")
    (found,) = tilewright.compile(model, cache=False).run({"x": x})
    assert found.tolist() == ["É", "B"]


def test_sequences_of_texts() -> None:
    joined = parser.parse_model("""
        <ir_version: 9, opset_import: ["" : 20]>
        joined (seq(string[n]) x) => (string[m] y) { y = ConcatFromSequence <axis = 0> (x) }""")
    parts = [["a", "b"], np.array([b"c"])]
    (found,) = tilewright.compile(joined, cache=False).run({"x": parts})
    assert found.tolist() == ["a", "b", "c"]


def test_bytes_that_are_no_text_are_refused() -> None:
    module = tilewright.compile(text_model("StringNormalizer"), cache=False)
    with raises_code("C302", text="UnicodeDecodeError"):
        module.run({"x": np.array([b"\xff"])})


SAMPLES = ["", "a", "A", "ab", "aB", "é", "1", "٣", "a1_", "\n", "a\n", "a\nb", "\t", "\v", "-"]
SAMPLES += ["]", "aaa", "{,2}", "a.b", "a+b", "Σ", "σ", "ς", "K", "日本", "\x7f", "\\", "a-b"]

PATTERNS = [
    *(r"a", r"[[:alpha:]]+", r"[[:^alpha:]]+", r"[[:word:]-]+", r"[[:punct:][:space:]]"),
    *(r"\pL+", r"\PL+", r"\p{Lu}", r"\p{^Lu}", r"\P{^Lu}", r"[\pL\d]+", r"\p{Any}+"),
    *(r"\d", r"\D", r"\w+", r"\W+", r"\s", r"\S+", r"[^\s]+", r"[\d-z]+", r"\ba\b", r"\B", r"\bé"),
    *(r"a$", r"^a$", r"\Aa\z", r"(?m)a$\nb", r"(?m:^)a", r".", r"(?s)a.b", r"(?s:a.)b"),
    *(r"(?i)ab", r"a(?i)b|A", r"(a(?i)b|x)|A", r"(?i)σ", r"(?i)[^k]", r"(?i)(?-i:a)b", r"(?)a"),
    *(r"a{2,3}", r"a{1,}", r"{,2}", r"a+?b?", r"(?U)a+", r"(|a)*b?", r"()", r"a||ab"),
    *(r"\Qa+b\E", r"\Qa.b", r"\Q\E", r"\x41", r"\x{65E5}.", r"\101", r"\_", r"\.", r"\n"),
    *(r"[]a]", r"[^]a]", r"[a-]", r"[&&a]", r"[a~~]", r"[[]", r"(?P<n>a)b", r"(?<n>a)b?"),
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_are_those_of_re2(pattern: str) -> None:
    beside(text_model("RegexFullMatch", BOOL, pattern=pattern), texts(*SAMPLES))


@pytest.mark.parametrize(
    "pattern",
    [
        *(r"a**", r"a*+", r"a+{2}", r"x{2}{3}", r"*a", r"a|*", r"a{1001}", r"(?=a)a", r"(?<=a)b"),
        *(r"(?P=n)", r"(?#c)a", r"(?x)a", r"(a)\1", r"\Z", r"\é", r"\h", r"\E", "\\", "[\\"),
        *(r"[a-\d]", r"[b-a]", r"[a--b]", r"[[:foo:]]", r"[a", r"(a", r"a)", r"\p{Foo}", r"\p{"),
        *(r"\p{Greek}", r"\C"),  # RE2 has these
    ],
)
def test_patterns_without_a_meaning_are_refused(pattern: str) -> None:
    with pytest.raises(NotRegular):
        in_python(pattern)


def test_what_is_wrong_with_a_pattern_is_said() -> None:
    module = tilewright.compile(text_model("RegexFullMatch", BOOL, pattern=r"\p{Greek}+"))
    with raises_code("C302", text="general categories are known here, not `Greek`"):
        module.run({"x": texts("a")})


@pytest.mark.parametrize("shape", [(), (1,), (4,), (2, 2)])
@pytest.mark.parametrize("attributes", [{}, {"delimiter": ","}, {"delimiter": "a", "maxsplit": 1}])
def test_parts_of_texts(shape: tuple[int, ...], attributes: dict[str, Any]) -> None:
    node = helper.make_node("StringSplit", ["x"], ["y", "z"], **attributes)
    graph = helper.make_graph(
        [node],
        "parts",
        [helper.make_tensor_value_info("x", STRING, shape)],
        [onnx.ValueInfoProto(name="y"), onnx.ValueInfoProto(name="z")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    words = texts("a,b,,c", " of tile  the ", "banana", "x")[: int(np.prod(shape))].reshape(shape)
    found = tilewright.compile(model, cache=False).run({"x": words})
    wanted = onnxruntime_results(model, {"x": words})
    for a, b in zip(found, wanted, strict=True):
        assert (a.shape, a.tolist()) == (b.shape, b.tolist())


@pytest.mark.parametrize("kind", [STRING, TensorProto.INT64])
@pytest.mark.parametrize(
    ("mode", "weights"),
    [
        ("TF", {}),
        ("IDF", {}),
        ("IDF", {"weights": [0.5, 2.0, 3.0, 0.25]}),
        ("TFIDF", {"weights": [0.5, 2.0, 3.0, 0.25]}),
    ],
)
@pytest.mark.parametrize(
    ("lengths", "skips"), [((1, 2), 1), pytest.param((2, 2), 2**40, marks=pytest.mark.slow)]
)
def test_counted_sequences(
    kind: int, mode: str, weights: dict[str, Any], lengths: tuple[int, int], skips: int
) -> None:
    """Weights are those of sequences, which are not in the order of their columns."""
    attributes = {
        "mode": mode,
        "min_gram_length": lengths[0],
        "max_gram_length": lengths[1],
        "ngram_counts": [0, 2],
        "ngram_indexes": [3, 0, 2, 1],
        **weights,
    }
    row: Any = [1, 2, 2, 7, 1, 3, 2]
    if kind == STRING:
        attributes["pool_strings"] = list("ababbc")
        x = texts(*("abcdefg"[n - 1] for n in row))
    else:
        attributes["pool_int64s"] = [1, 2, 1, 2, 2, 3]
        x = np.array(row, helper.tensor_dtype_to_np_dtype(kind))
    model = text_model("TfIdfVectorizer", TensorProto.FLOAT, max_skip_count=skips, **attributes)
    model.graph.input[0].type.tensor_type.elem_type = kind
    if skips < 2**31:
        beside(model, x)
        return
    # More than a row has places; onnxruntime would look for them all.
    (found,) = tilewright.compile(model, cache=False).run({"x": x})
    several = text_model("TfIdfVectorizer", TensorProto.FLOAT, max_skip_count=9, **attributes)
    several.graph.input[0].type.tensor_type.elem_type = kind
    assert found.tolist() == beside(several, x).tolist()


@pytest.mark.parametrize("opset", [10, 13, 15, 21])
def test_normalisation_beside_texts(opset: int) -> None:
    """What runs by reference because of texts has the statistics that it is given."""
    model = parser.parse_model(
        f"""<ir_version: 9, opset_import: ["" : {opset}]>
        both (float[n, 2, 3] x, string[m] s, float[2] a, float[2] b, float[2] c, float[2] d)
            => (float[n, 2, 3] y, string[k] t) {{
            y = BatchNormalization (x, a, b, c, d)
            t = StringNormalizer <locale = "{LOCALE}"> (s)
        }}"""
    )
    rng = np.random.default_rng(3)
    feeds = {"x": rng.normal(size=(4, 2, 3)).astype(np.float32), "s": texts("a", "b")}
    feeds |= {name: rng.uniform(0.5, 2, 2).astype(np.float32) for name in "abcd"}
    found = tilewright.compile(model, cache=False).run(feeds)
    wanted = onnxruntime_results(model, feeds)
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-5, atol=1e-6)
    assert found[1].tolist() == wanted[1].tolist()
