"""Labels that are texts, and maps at the end of models: the rest of the model is native."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright
from tests.onnx.beside_ort import IR_VERSION, onnxruntime_results
from tests.onnx.forests import RandomForest

pytest.importorskip("onnxruntime")

ML = "ai.onnx.ml"
TEXTS = ["setosa", "versicolor", "virginica"]


def model_of(
    nodes: list[onnx.NodeProto], outputs: list[onnx.ValueInfoProto], **constants: Any
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes, "ends", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])], outputs,
        [numpy_helper.from_array(np.asarray(a), name) for name, a in constants.items()],
    )  # fmt: skip
    imports = [helper.make_opsetid("", 18), helper.make_opsetid(ML, 3)]
    return helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION)


def maps(name: str, key: int) -> onnx.ValueInfoProto:
    value = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    kind = helper.make_sequence_type_proto(helper.make_map_type_proto(key, value))
    return helper.make_value_info(name, kind)


def classifier(rng: np.random.Generator, *, texts: bool, zipped: bool = True) -> onnx.ModelProto:
    forest = RandomForest(rng, 5, 4, (0, 1, 2), per_leaf=3, positive=True)
    labels: dict[str, Any] = {"classlabels_strings": TEXTS} if texts else {}
    labels = labels or {"classlabels_int64s": [4, 5, 6]}
    node = helper.make_node(
        "TreeEnsembleClassifier", ["x"], ["label", "scores"], domain=ML,
        **labels, **forest.lists("class"),
    )  # fmt: skip
    kind = TensorProto.STRING if texts else TensorProto.INT64
    outputs = [helper.make_tensor_value_info("label", kind, ["n"])]
    if not zipped:
        return model_of([node], outputs)
    last = helper.make_node("ZipMap", ["scores"], ["maps"], domain=ML, **labels)
    return model_of([node, last], [*outputs, maps("maps", kind)])


def data(rng: np.random.Generator, rows: int) -> np.ndarray[Any, Any]:
    return rng.normal(size=(rows, 4)).astype("f4")


def assert_equal(found: list[Any], wanted: list[Any]) -> None:
    (label, rows), (expected, others) = found, wanted
    assert label.tolist() == expected.tolist()
    assert len(rows) == len(others)
    for row, other in zip(rows, others, strict=True):
        assert list(row) == list(other)
        assert all(isinstance(v, float) for v in row.values())
        np.testing.assert_allclose(list(row.values()), list(other.values()), rtol=1e-5)


@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.parametrize("rows", [0, 1, 9])
def test_classifiers_with_maps(rng: np.random.Generator, texts: bool, rows: int) -> None:
    model, x = classifier(rng, texts=texts), data(rng, rows)
    module = tilewright.compile(model, cache=False)
    assert not module.by_reference
    assert_equal(module.run({"x": x}), onnxruntime_results(model, {"x": x}))
    key = "string" if texts else "int64"
    types = [info.type for info in module.outputs]
    assert types == [f"tensor({key})", f"seq(map({key},tensor(float)))"]


def test_endings_are_saved(rng: np.random.Generator, tmp_path: Path) -> None:
    model, x = classifier(rng, texts=True), data(rng, 5)
    module = tilewright.compile(model, cache=tmp_path / "cache")
    module.save(tmp_path / "model.tw")
    for again in (
        tilewright.load(tmp_path / "model.tw"),
        tilewright.compile(model, cache=tmp_path / "cache"),
    ):
        assert_equal(again.run({"x": x}), module.run({"x": x}))


def test_sessions_give_maps(rng: np.random.Generator) -> None:
    model, x = classifier(rng, texts=True), data(rng, 5)
    session = tilewright.InferenceSession(model.SerializeToString())
    (found,) = session.run(["maps"], {"x": x})
    assert [sorted(row) for row in found] == [sorted(TEXTS)] * 5


def test_texts_from_a_table(rng: np.random.Generator) -> None:
    """As exporters write it: a number chooses a text, which is cast and reshaped."""
    nodes = [
        helper.make_node("ArgMax", ["x"], ["best"], axis=1, keepdims=0),
        helper.make_node("ArrayFeatureExtractor", ["classes", "best"], ["found"], domain=ML),
        helper.make_node("Cast", ["found"], ["texts"], to=TensorProto.STRING),
        helper.make_node("Reshape", ["texts", "shape"], ["label"]),
    ]
    outputs = [helper.make_tensor_value_info("label", TensorProto.STRING, ["n"])]
    classes = np.array([*TEXTS, "other"], dtype=object)
    model = model_of(nodes, outputs, classes=classes, shape=np.array([-1]))
    module, x = tilewright.compile(model, cache=False), data(rng, 6)
    assert not module.by_reference
    (found,), (wanted,) = module.run({"x": x}), onnxruntime_results(model, {"x": x})
    assert found.tolist() == wanted.tolist()


def test_texts_from_an_encoder(rng: np.random.Generator) -> None:
    encoded = {"keys_int64s": [0, 2], "values_strings": TEXTS[:2], "default_string": "none"}
    nodes = [
        helper.make_node("ArgMax", ["x"], ["best"], axis=1, keepdims=0),
        helper.make_node("LabelEncoder", ["best"], ["label"], domain=ML, **encoded),
    ]
    outputs = [helper.make_tensor_value_info("label", TensorProto.STRING, ["n"])]
    model = model_of(nodes, outputs)
    module, x = tilewright.compile(model, cache=False), data(rng, 9)
    assert not module.by_reference
    (found,), (wanted,) = module.run({"x": x}), onnxruntime_results(model, {"x": x})
    assert found.tolist() == wanted.tolist()


def test_texts_inside_run_by_reference(rng: np.random.Generator) -> None:
    """Texts that a node reads again: the model runs as a whole, maps included."""
    mapped = {"cats_strings": TEXTS, "cats_int64s": [7, 8, 9], "default_int64": -1}
    model = classifier(rng, texts=True)
    model.graph.node.append(
        helper.make_node("CategoryMapper", ["label"], ["number"], domain=ML, **mapped)
    )
    model.graph.output.append(helper.make_tensor_value_info("number", TensorProto.INT64, ["n"]))
    with pytest.warns(tilewright.TilewrightWarning):
        module = tilewright.compile(model, cache=False)
    x = data(rng, 5)
    label, rows, number = module.run({"x": x})
    expected = onnxruntime_results(model, {"x": x})
    assert number.tolist() == expected[2].tolist()
    assert_equal([label, rows], expected[:2])


def test_maps_as_inputs_run_by_reference() -> None:
    value = helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    given = helper.make_value_info("x", helper.make_map_type_proto(TensorProto.INT64, value))
    node = helper.make_node(
        "CastMap", ["x"], ["y"], domain=ML, cast_to="TO_FLOAT", map_form="SPARSE", max_map=4
    )
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])
    graph = helper.make_graph([node], "maps", [given], [output])
    imports = [helper.make_opsetid("", 18), helper.make_opsetid(ML, 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION)
    with pytest.warns(tilewright.TilewrightWarning):
        module = tilewright.compile(model, cache=False)
    feeds = {"x": {0: 1.5, 2: 2.5}}
    (found,) = module.run(feeds)
    np.testing.assert_array_equal(found, onnxruntime_results(model, feeds)[0])
