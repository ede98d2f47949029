"""Labels that are texts, and maps at the end of models: the rest of the model is native."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright
from tests.expect import raises_code
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


def test_texts_that_nobody_reads(rng: np.random.Generator) -> None:
    """Classifiers inside of a classifier: their labels, and texts of the same table, go nowhere."""
    model = classifier(rng, texts=True, zipped=False)
    del model.graph.output[:]
    nodes = [
        helper.make_node("ArrayFeatureExtractor", ["classes", "first"], ["own"], domain=ML),
        helper.make_node("Reshape", ["own", "shape"], ["shaped"]),
        helper.make_node("ArgMax", ["scores"], ["best"], axis=1, keepdims=0),
        helper.make_node("ArrayFeatureExtractor", ["classes", "best"], ["found"], domain=ML),
        helper.make_node("Reshape", ["found", "shape"], ["last"]),
        helper.make_node("ArrayFeatureExtractor", ["classes", "best"], ["again"], domain=ML),
    ]
    model.graph.node.extend(nodes)
    for name, held in (("classes", np.array(TEXTS, object)), ("shape", np.array([-1]))):
        model.graph.initializer.append(numpy_helper.from_array(held, name))
    model.graph.initializer.append(numpy_helper.from_array(np.array([0]), "first"))
    for name in ("last", "again"):
        model.graph.output.append(helper.make_tensor_value_info(name, TensorProto.STRING, None))
    module, x = tilewright.compile(model, cache=False), data(rng, 6)
    assert not module.by_reference
    found, wanted = module.run({"x": x}), onnxruntime_results(model, {"x": x})
    assert [v.tolist() for v in found] == [v.tolist() for v in wanted]


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


def test_texts_go_into_arrays_of_objects_and_maps_into_none(rng: np.random.Generator) -> None:
    model, x = classifier(rng, texts=True), data(rng, 6)
    module = tilewright.compile(model, cache=False)
    label, _ = module.run({"x": x})
    target = np.empty(6, object)
    module.run_into({"x": x}, {"label": target})
    assert target.tolist() == label.tolist()
    for wrong, code in [
        (np.empty(6, np.int64), "C003"),
        (np.empty(5, object), "C005"),
        (7, "C002"),
    ]:
        with raises_code(code):
            module.run_into({"x": x}, {"label": wrong})
    with raises_code("C002", text="maps"):
        module.run_into({"x": x}, {"maps": np.empty(6, object)})
    with raises_code("C022"):
        module.run_into({"x": x}, {"label": target, "labels": target})


def test_numbers_beside_texts_are_left_in_arrays(rng: np.random.Generator) -> None:
    model = classifier(rng, texts=True, zipped=False)
    scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", 3])
    model.graph.output.append(scores)
    module, x = tilewright.compile(model, cache=False), data(rng, 6)
    wanted = module.run({"x": x})
    found = {"label": np.empty(6, object), "scores": np.empty((6, 3), np.float32)}
    module.run_into({"x": x}, found)
    assert found["label"].tolist() == wanted[0].tolist()
    np.testing.assert_array_equal(found["scores"], wanted[1])
    alone = np.empty((6, 3), np.float32)
    module.run_into({"x": x}, {"scores": alone})
    np.testing.assert_array_equal(alone, wanted[1])


def test_values_of_texts_and_maps_describe_themselves(rng: np.random.Generator) -> None:
    session = tilewright.InferenceSession(classifier(rng, texts=True).SerializeToString())
    x = tilewright.OrtValue.ortvalue_from_numpy(data(rng, 6))
    label, maps_ = session.run_with_ort_values(None, {"x": x})
    assert (label.data_type(), label.element_type(), label.shape()) == ("tensor(string)", 8, [6])
    assert maps_.data_type() == "seq(map(string,tensor(float)))"
    assert "tensor(string) [6]" in repr(label)
    assert "map" in repr(maps_)
    assert not maps_.is_tensor()
    assert not maps_.is_tensor_sequence()
    with raises_code("C034"):
        maps_.shape()


def test_texts_are_bound_to_arrays_of_objects(rng: np.random.Generator) -> None:
    session = tilewright.InferenceSession(classifier(rng, texts=True).SerializeToString())
    binding, x = session.io_binding(), data(rng, 6)
    binding.bind_cpu_input("x", x)
    binding.bind_output("maps")
    target = np.empty(6, object)
    binding.bind_ortvalue_output("label", tilewright.OrtValue(target))
    session.run_with_iobinding(binding)
    assert target.tolist() == session.run(["label"], {"x": x})[0].tolist()
    binding.bind_ortvalue_output("label", tilewright.OrtValue(np.empty(6, np.int64)))
    with raises_code("C003"):
        session.run_with_iobinding(binding)


def test_maps_have_as_many_keys_as_there_are_scores(rng: np.random.Generator) -> None:
    model = classifier(rng, texts=True)
    keys = model.graph.node[1].attribute[0]
    del keys.strings[2:]
    with raises_code("M002", text="it has 2 keys, and there are 3 scores"):
        tilewright.compile(model, cache=False)


def test_keys_that_only_a_run_can_compare() -> None:
    last = helper.make_node("ZipMap", ["x"], ["y"], domain=ML, classlabels_int64s=[1, 2, 3])
    model = model_of([last], [maps("y", TensorProto.INT64)])
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "width"
    module = tilewright.compile(model, cache=False)
    assert module.run({"x": np.ones((1, 3), np.float32)}) == [[{1: 1.0, 2: 1.0, 3: 1.0}]]
    with raises_code("C025", text="`y` has 3 classes, and there are scores of shape [1, 4]"):
        module.run({"x": np.ones((1, 4), np.float32)})


def test_a_single_text_is_the_label_of_every_row(rng: np.random.Generator) -> None:
    forest = RandomForest(rng, 3, 4, (0,), depth=2)
    node = helper.make_node(
        "TreeEnsembleClassifier", ["x"], ["label", "scores"], domain=ML,
        classlabels_strings=["only"], **forest.lists("class"),
    )  # fmt: skip
    model = model_of([node], [helper.make_tensor_value_info("label", TensorProto.STRING, ["n"])])
    (label,) = tilewright.compile(model, cache=False).run({"x": data(rng, 6)})
    assert label.tolist() == ["only"] * 6


@pytest.mark.parametrize("is_text", [True, False])
def test_encoders_of_the_first_version(is_text: bool) -> None:
    """Texts become their places among the classes, or numbers the texts there."""
    node = helper.make_node(
        "LabelEncoder", ["x"], ["y"], domain=ML,
        classes_strings=["a", "b"], default_int64=-7, default_string="zz",
    )  # fmt: skip
    kinds = (
        (TensorProto.STRING, TensorProto.INT64)
        if is_text
        else (TensorProto.INT64, TensorProto.STRING)
    )
    graph = helper.make_graph(
        [node], "encode",
        [helper.make_tensor_value_info("x", kinds[0], ["n"])],
        [helper.make_tensor_value_info("y", kinds[1], ["n"])],
    )  # fmt: skip
    imports = [helper.make_opsetid("", 18), helper.make_opsetid(ML, 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION)
    x = np.array(["b", "a", "z"], object) if is_text else np.array([1, 0, 2, -1])
    with pytest.warns(tilewright.TilewrightWarning):
        module = tilewright.compile(model, cache=False)
    (found,), (wanted,) = module.run({"x": x}), onnxruntime_results(model, {"x": x})
    assert found.tolist() == wanted.tolist()
    assert found.dtype == wanted.dtype, "texts are objects"


@pytest.mark.parametrize("held", [{"a": 1.0, "c": 3.0}, {"c": 2.0, "d": 5.0}, {}])
def test_maps_become_rows(held: dict[str, float]) -> None:
    node = helper.make_node(
        "DictVectorizer", ["x"], ["y"], domain=ML, string_vocabulary=["a", "b", "c"]
    )
    model = model_of([node], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    kind = helper.make_map_type_proto(
        TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    )
    del model.graph.input[:]
    model.graph.input.append(helper.make_value_info("x", kind))
    with pytest.warns(tilewright.TilewrightWarning):
        module = tilewright.compile(model, cache=False)
    (found,) = module.run({"x": held})
    assert (found.dtype, found.shape) == (np.float32, (1, 3))
    assert found[0].tolist() == [held.get(key, 0.0) for key in "abc"]


def test_trees_by_reference_know_where_missing_values_go(rng: np.random.Generator) -> None:
    """Labels that are read twice are no ending."""
    model = classifier(rng, texts=True, zipped=False)
    node = model.graph.node[0]
    kept = [a for a in node.attribute if a.name != "nodes_missing_value_tracks_true"]
    del node.attribute[:]
    node.attribute.extend(kept)
    model.graph.node.append(helper.make_node("Identity", ["label"], ["again"]))
    again = helper.make_tensor_value_info("again", TensorProto.STRING, ["n"])
    model.graph.output.append(again)
    x = data(rng, 6)
    x[::2] = np.nan
    with pytest.warns(tilewright.TilewrightWarning):
        module = tilewright.compile(model, cache=False)
    for found, wanted in zip(
        module.run({"x": x}), onnxruntime_results(model, {"x": x}), strict=True
    ):
        assert (found.tolist(), found.dtype) == (wanted.tolist(), object)
