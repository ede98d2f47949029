"""Ensembles of trees beside onnxruntime: modes, aggregates, transforms, missing values."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tests.onnx.beside_ort import assert_alike, beside, node_model
from tests.onnx.forests import MODES, RandomForest
from tilewright.frontend.onnx import import_model
from tilewright.graph import interpret
from tilewright.graph.ops.descend import Descend

pytest.importorskip("onnxruntime")

ML = "ai.onnx.ml"
LABELS_AND_SCORES = (TensorProto.INT64, TensorProto.FLOAT)
ROWS = 11


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_regressors(rng: np.random.Generator, aggregate: str, transform: str) -> None:
    targets = int(rng.integers(1 if transform == "NONE" else 2, 4))
    forest = RandomForest(
        rng, int(rng.integers(1, 9)), 5, tuple(range(targets)),
        depth=int(rng.integers(1, 6)), per_leaf=int(rng.integers(1, targets + 1)),
        modes=MODES if rng.random() < 0.5 else (str(rng.choice(MODES)),),
        missing=bool(rng.random() < 0.5),
    )  # fmt: skip
    has_base = forest.per_leaf == targets  # else onnxruntime adds it to some of the scores only
    base = {"base_values": rng.normal(size=targets).tolist()} if has_base else {}
    beside(
        "TreeEnsembleRegressor", [forest.data(ROWS)], domain=ML, version=3, n_targets=targets,
        aggregate_function=aggregate, post_transform=transform, **base, **forest.lists("target"),
    )  # fmt: skip


@pytest.mark.parametrize("dtype", ["f8", "i8", "i4"])
def test_data_of_other_types(rng: np.random.Generator, dtype: str) -> None:
    forest = RandomForest(rng, 4, 5, (0, 1, 2), per_leaf=3)
    beside(
        "TreeEnsembleClassifier", [forest.data(ROWS, dtype)], LABELS_AND_SCORES, domain=ML,
        version=3, classlabels_int64s=[0, 1, 2], **forest.lists("class"),
    )  # fmt: skip


def test_doubles_are_compared_as_doubles(rng: np.random.Generator) -> None:
    """A threshold that no f32 is."""
    forest = RandomForest(rng, 1, 1, (0,), depth=1)
    attributes = forest.lists("target")
    edge = 0.1 + 1e-12
    limits = np.array([edge if m != "LEAF" else 0.0 for m in attributes["nodes_modes"]])
    weights = np.array(attributes["target_weights"], np.float64)
    del attributes["nodes_values"], attributes["target_weights"]
    attributes["nodes_values_as_tensor"] = numpy_helper.from_array(limits)
    attributes["target_weights_as_tensor"] = numpy_helper.from_array(weights)
    x = np.array([[edge], [np.nextafter(edge, 1)], [np.float64(np.float32(edge))]])
    beside("TreeEnsembleRegressor", [x], domain=ML, version=3, n_targets=1, **attributes)


@pytest.mark.parametrize("classes", [3, 5])
@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize("every", [True, False])
def test_classifiers(rng: np.random.Generator, classes: int, transform: str, every: bool) -> None:
    """Leaves name all classes (random forests), or one (boosting)."""
    forest = RandomForest(
        rng, 6, 5, tuple(range(classes)), per_leaf=classes if every else 1, positive=every
    )
    beside(
        "TreeEnsembleClassifier", [forest.data(ROWS)], LABELS_AND_SCORES, domain=ML, version=3,
        classlabels_int64s=[7 * k - 4 for k in range(classes)], post_transform=transform,
        **forest.lists("class"),
    )  # fmt: skip


def test_boosted_trees_of_one_class_each_are_a_product(rng: np.random.Generator) -> None:
    parts = [RandomForest(rng, 1, 5, (k % 3,)) for k in range(6)]
    forest = parts[0]
    for number, other in enumerate(parts[1:], 1):
        forest.rows += [(number, *row[1:]) for row in other.rows]
        forest.leaves += [(number, *leaf[1:]) for leaf in other.leaves]
    model, _ = node_model(
        "TreeEnsembleClassifier", [forest.data(ROWS)], LABELS_AND_SCORES, domain=ML, version=3,
        classlabels_int64s=[0, 1, 2], **forest.lists("class"),
    )  # fmt: skip
    graph = import_model(model).graph
    assert [n.op.name for n in graph.nodes if n.op.name in ("contract", "reduce")] == ["contract"]
    beside(
        "TreeEnsembleClassifier", [forest.data(ROWS)], LABELS_AND_SCORES, domain=ML, version=3,
        classlabels_int64s=[0, 1, 2], base_values=[0.5, -1.0, 0.25], **forest.lists("class"),
    )  # fmt: skip


@pytest.mark.parametrize("positive", [True, False])
@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
@pytest.mark.parametrize(("spoken", "base"), [(0, []), (0, [0.25]), (1, [])])
def test_two_classes_with_one_score(
    rng: np.random.Generator, positive: bool, transform: str, base: list[float], spoken: int
) -> None:
    forest = RandomForest(rng, 5, 5, (spoken,), positive=positive)
    start = {"base_values": base} if base else {}
    beside(
        "TreeEnsembleClassifier", [forest.data(ROWS)], LABELS_AND_SCORES, domain=ML, version=3,
        classlabels_int64s=[3, 8], post_transform=transform, **start, **forest.lists("class"),
    )  # fmt: skip


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC"])
def test_two_classes_with_two_scores(rng: np.random.Generator, transform: str) -> None:
    """The greater score wins, as the standard says."""
    forest = RandomForest(rng, 5, 5, (0, 1), per_leaf=2)
    model, feeds = node_model(
        "TreeEnsembleClassifier", [forest.data(ROWS)], LABELS_AND_SCORES, domain=ML, version=3,
        classlabels_int64s=[3, 8], post_transform=transform, base_values=[0.5, -0.5],
        **forest.lists("class"),
    )  # fmt: skip
    wanted = ReferenceEvaluator(model).run(None, feeds)
    for found, expected in zip(interpret(import_model(model).graph, feeds), wanted, strict=True):
        assert_alike(found, expected)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("aggregate", range(4))
def test_lists_of_tests_and_leaves(rng: np.random.Generator, aggregate: int, dtype: str) -> None:
    targets = int(rng.integers(1, 4))
    forest = RandomForest(rng, 5, 5, tuple(range(targets)), modes=MODES, missing=True)
    attributes = forest.positions()
    for name in ("nodes_splits", "leaf_weights"):
        held = numpy_helper.to_array(attributes[name]).astype(dtype)
        attributes[name] = numpy_helper.from_array(held)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    beside(
        "TreeEnsemble", [forest.data(ROWS, dtype)], [kind], domain=ML, version=5,
        n_targets=targets, aggregate_function=aggregate, **attributes,
    )  # fmt: skip


def test_members_of_sets(rng: np.random.Generator) -> None:
    members = np.float32([1.2, 3.7, 8, 9, np.nan, 12, 7, np.nan])
    attributes = {
        "nodes_splits": numpy_helper.from_array(np.float32([4, 0, 0])),
        "nodes_featureids": [0, 0, 1],
        "nodes_modes": numpy_helper.from_array(np.uint8([0, 6, 6])),
        "nodes_truenodeids": [1, 0, 2],
        "nodes_trueleafs": [0, 1, 1],
        "nodes_falsenodeids": [2, 1, 3],
        "nodes_falseleafs": [0, 1, 1],
        "nodes_missing_value_tracks_true": [0, 1, 0],
        "tree_roots": [0],
        "leaf_targetids": [0, 1, 2, 3],
        "leaf_weights": numpy_helper.from_array(np.float32([1, 10, 100, 1000])),
        "membership_values": numpy_helper.from_array(members),
    }
    column = np.float32([1.2, 3.4, -0.12, 8, np.nan, 12, 7, 3.7, 9, 0, 5])
    x = np.stack([column, rng.permutation(column)], axis=1)
    beside("TreeEnsemble", [x], domain=ML, version=5, n_targets=4, **attributes)


@pytest.mark.parametrize("rows", [0, 1, 300])
def test_any_number_of_rows(rng: np.random.Generator, rows: int) -> None:
    """With one compilation; threads share many rows."""
    import tilewright

    forest = RandomForest(rng, 20, 5, (0, 1, 2))
    model, _ = node_model(
        "TreeEnsembleRegressor", [forest.data(ROWS)], [TensorProto.FLOAT], domain=ML, version=3,
        n_targets=3, **forest.lists("target"),
    )  # fmt: skip
    x = forest.data(rows)
    (found,) = tilewright.compile(model, cache=False, threads=2).run({"x0": x})
    (wanted,) = interpret(import_model(model).graph, {"x0": x})
    assert found.shape == (rows, 3)
    assert_alike(found, wanted)


def test_equal_tests_need_no_table_of_outcomes(rng: np.random.Generator) -> None:
    def outcomes(**options: object) -> int | None:
        forest = RandomForest(rng, 3, 5, (0,), **options)
        model, _ = node_model(
            "TreeEnsembleRegressor", [forest.data(ROWS)], [TensorProto.FLOAT], domain=ML, version=3,
            n_targets=1, **forest.lists("target"),
        )  # fmt: skip
        (op,) = (n.op for n in import_model(model).graph.nodes if isinstance(n.op, Descend))
        return op.outcomes

    assert outcomes() == 3
    assert outcomes(modes=MODES) is None


@pytest.mark.parametrize("broken", ["a cycle", "no such node", "no such feature", "no such target"])
def test_broken_trees_are_refused(rng: np.random.Generator, broken: str) -> None:
    from tests.expect import raises_code

    forest = RandomForest(rng, 2, 5, (0,), depth=3)
    attributes = forest.lists("target")
    if broken == "a cycle":
        attributes["nodes_truenodeids"][0] = 0
    elif broken == "no such node":
        attributes["nodes_truenodeids"][0] = 99
    elif broken == "no such feature":
        attributes["nodes_featureids"][0] = 5
    else:
        attributes["target_ids"][0] = 1
    model, _ = node_model(
        "TreeEnsembleRegressor", [forest.data(ROWS)], [TensorProto.FLOAT], domain=ML, version=3,
        n_targets=1, **attributes,
    )  # fmt: skip
    with raises_code("M004"):
        import_model(model)


@pytest.mark.parametrize("base", [[], [0.3], [-2.0]], ids=str)
@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"])
def test_a_single_class(rng: np.random.Generator, transform: str, base: list[float]) -> None:
    """The label is 1 or 0, whatever the class is called."""
    forest = RandomForest(rng, 4, 5, (0,), depth=3)
    more = {"base_values": base} if base else {}
    beside(
        "TreeEnsembleClassifier", [forest.data(ROWS)], LABELS_AND_SCORES, domain=ML, version=3,
        classlabels_int64s=[7], post_transform=transform, tolerance=1e-3,
        **more, **forest.lists("class"),
    )  # fmt: skip
