"""Names, paths and texts of a model: they cannot change how an error reads, or what is made."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from onnx import helper, parser

import tilewright as tw
from tests.expect import raises_code
from tests.hostile.texts import HEAD, OTHER_DOMAINS, compiled
from tests.small import make, two_outputs
from tilewright.errors import ModelError


def test_names_that_are_no_text():
    content = two_outputs().SerializeToString().replace(b"positive", b"\xff\xfesitive")
    with raises_code("M002", text="not a text in UTF-8"):
        tw.compile(content, cache=False)


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
        tw.compile(path, cache=False)


def test_an_error_about_very_many_inputs_is_short():
    names = [f"i{k}" for k in range(2000)]
    model = make([helper.make_node("Sum", names, ["y"])], [("x", [4])], [("y", [4])])
    with raises_code("M004", text="1984 more") as caught:
        compiled(model)
    assert len(str(caught.value)) < 2000
