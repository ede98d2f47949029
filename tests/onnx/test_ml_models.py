"""Linear models, support vector machines and features of `ai.onnx.ml` beside onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import tilewright
from tests.expect import raises_code
from tests.onnx.beside_ort import assert_alike, beside, node_model, onnxruntime_results
from tilewright.frontend.onnx import import_model
from tilewright.graph import interpret
from tilewright.graph.ir import Array

pytest.importorskip("onnxruntime")

ML = "ai.onnx.ml"
LABELS_AND_SCORES = (TensorProto.INT64, TensorProto.FLOAT)
ROWS = 11
NUMBERS = ["f4", "f8", "i8", "i4"]


def data(rng: np.random.Generator, features: int, dtype: str = "f4") -> Array:
    return (rng.normal(size=(ROWS, features)) * 2).astype(dtype)


def floats(rng: np.random.Generator, *shape: int) -> list[float]:
    return [float(v) for v in rng.normal(size=shape).astype("f4").ravel()]


def meaning(op: str, inputs: list[Any], outputs: Any, *, by: str = "ort", **options: Any) -> None:
    """The imported graph means what onnxruntime, or the reference implementation, computes."""
    model, feeds = node_model(op, inputs, outputs, domain=ML, **options)
    made = import_model(model)
    assert not made.by_reference, made.by_reference
    if by == "ort":
        wanted = onnxruntime_results(model, feeds)
    else:
        wanted = ReferenceEvaluator(model).run(None, feeds)
    for found, expected in zip(interpret(made.graph, feeds), wanted, strict=True):
        assert_alike(found, np.asarray(expected))


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("targets", [1, 3])
def test_linear_regressor(rng: np.random.Generator, targets: int, dtype: str) -> None:
    options = {"targets": targets, "coefficients": floats(rng, targets, 4)}
    x = data(rng, 4, dtype)
    if dtype == "f4":
        meaning("LinearRegressor", [x], [1], **options, intercepts=floats(rng, targets))
    wanted = x.astype("f4") @ np.float32(options["coefficients"]).reshape(targets, 4).T
    beside("LinearRegressor", [x], domain=ML, wanted=[wanted], **options)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("classes", [2, 4])
def test_linear_classifier(rng: np.random.Generator, classes: int, transform: str) -> None:
    options = {
        "coefficients": floats(rng, classes, 4),
        "intercepts": floats(rng, classes),
        "classlabels_ints": [5 * k + 1 for k in range(classes)],
        "post_transform": transform,
    }
    meaning("LinearClassifier", [data(rng, 4)], LABELS_AND_SCORES, **options)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize("dtype", NUMBERS)
def test_linear_classifier_with_one_score(
    rng: np.random.Generator, transform: str, dtype: str
) -> None:
    options: dict[str, Any] = {"coefficients": floats(rng, 4), "intercepts": [0.25]}
    options["classlabels_ints"] = [3, 9]
    x = data(rng, 4, dtype)
    by = "ort" if transform == "LOGISTIC" else "reference"  # the two differ in other transforms
    options["post_transform"] = transform
    meaning("LinearClassifier", [x], LABELS_AND_SCORES, by=by, **options)


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
@pytest.mark.parametrize("one_class", [0, 1])
def test_svm_regressor(rng: np.random.Generator, kernel: str, one_class: int) -> None:
    options = {
        "coefficients": floats(rng, 6), "support_vectors": floats(rng, 6, 4), "n_supports": 6,
        "rho": [0.3], "kernel_type": kernel, "kernel_params": [0.5, 0.25, 3.0],
        "one_class": one_class,
    }  # fmt: skip
    meaning("SVMRegressor", [data(rng, 4)], [1], **options)


def svm(rng: np.random.Generator, counts: list[int], *, likely: bool, **options: Any) -> dict:
    classes, total = len(counts), sum(counts)
    pairs = classes * (classes - 1) // 2
    made = {
        "coefficients": floats(rng, classes - 1, total), "support_vectors": floats(rng, total, 4),
        "vectors_per_class": counts, "rho": floats(rng, pairs), "kernel_params": [0.5, 0.25, 3.0],
        "classlabels_ints": [3 * k + 2 for k in range(classes)], **options,
    }  # fmt: skip
    return made | ({"prob_a": floats(rng, pairs), "prob_b": floats(rng, pairs)} if likely else {})


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
@pytest.mark.parametrize("counts", [[2, 3], [3, 2, 4], [1, 2, 3, 2, 1]])
def test_svm_classifier(rng: np.random.Generator, kernel: str, counts: list[int]) -> None:
    options = svm(rng, counts, likely=False, kernel_type=kernel)
    meaning("SVMClassifier", [data(rng, 4)], LABELS_AND_SCORES, **options)


@pytest.mark.parametrize("counts", [[2, 3], [3, 2, 4], [1, 2, 3, 2, 1]])
def test_svm_probabilities(rng: np.random.Generator, counts: list[int]) -> None:
    options = svm(rng, counts, likely=True, kernel_type="RBF")
    beside("SVMClassifier", [data(rng, 4)], LABELS_AND_SCORES, domain=ML, **options)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("count", [1, 4])
def test_scaler(rng: np.random.Generator, dtype: str, count: int) -> None:
    options = {"scale": floats(rng, count), "offset": floats(rng, count)}
    meaning("Scaler", [data(rng, 4, dtype)], [1], **options)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_normalizer(rng: np.random.Generator, dtype: str, norm: str) -> None:
    x = data(rng, 4, dtype)
    x[3] = 0
    meaning("Normalizer", [x], [1], norm=norm)


@pytest.mark.parametrize("count", [1, 4])
def test_imputer(rng: np.random.Generator, count: int) -> None:
    x = np.where(rng.random((ROWS, 4)) < 0.3, 2, data(rng, 4))
    values = floats(rng, count)
    options = {"imputed_value_floats": values, "replaced_value_float": 2.0}
    meaning("Imputer", [x.astype("f4")], [1], **options)
    gaps = np.where(x == 2, np.nan, x).astype("f4")
    options["replaced_value_float"] = float("nan")
    meaning("Imputer", [gaps], [1], **options)
    whole = {"imputed_value_int64s": list(range(count)), "replaced_value_int64": 2}
    meaning("Imputer", [x.astype("i8")], [TensorProto.INT64], **whole)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_binarizer(rng: np.random.Generator, dtype: str) -> None:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    x = data(rng, 4, dtype)
    meaning("Binarizer", [x], [kind], by="reference", threshold=0.5)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_array_feature_extractor(rng: np.random.Generator, dtype: str) -> None:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    places = np.array([3, 0, 3], np.int64)
    meaning("ArrayFeatureExtractor", [data(rng, 4, dtype), places], [kind])
    meaning("ArrayFeatureExtractor", [data(rng, 4, dtype)[0], places], [kind])


def test_feature_vectorizer(rng: np.random.Generator) -> None:
    parts = [data(rng, 2), data(rng, 3), data(rng, 1)]
    meaning("FeatureVectorizer", parts, [1], inputdimensions=[2, 3, 1])
    meaning("FeatureVectorizer", parts, [1], inputdimensions=[3, 2, 1])


@pytest.mark.parametrize("dtype", NUMBERS)
def test_one_hot_encoder(rng: np.random.Generator, dtype: str) -> None:
    x = rng.integers(0, 6, (ROWS, 3)).astype(dtype)
    by = "reference" if dtype == "i4" else "ort"
    meaning("OneHotEncoder", [x], [1], by=by, cats_int64s=[4, 0, 3], zeros=1)


def test_one_hot_encoders_may_refuse_unknown_categories() -> None:
    settings = {"domain": ML, "cats_int64s": [3, 5], "zeros": 0}
    model, _ = node_model("OneHotEncoder", [np.zeros((ROWS, 2), np.int64)], [1], **settings)
    module = tilewright.compile(model, cache=False)
    assert not module.by_reference
    for rows in ([[3, 5], [5, 3]], np.empty((0, 2))):
        feeds = {"x0": np.array(rows, np.int64)}
        assert_alike(module.run(feeds)[0], onnxruntime_results(model, feeds)[0])
    with raises_code("C302", text="a category that it does not know"):
        module.run({"x0": np.array([[3, 4]])})


@pytest.mark.parametrize("count", [1, 2, 7, 64])
@pytest.mark.parametrize("keys", ["int64s", "floats"])
@pytest.mark.parametrize("values", ["int64s", "floats"])
def test_label_encoder(rng: np.random.Generator, count: int, keys: str, values: str) -> None:
    dtype, result = {"int64s": "i8", "floats": "f4"}[keys], {"int64s": 7, "floats": 1}[values]
    known = rng.choice(200, count, replace=False)
    known = (known - 100) / (1 if keys == "int64s" else 4)
    x = rng.choice([*known, 777, 0.0], (ROWS, 3)).astype(dtype)
    options: dict[str, Any] = {f"keys_{keys}": known.astype(dtype).tolist()}
    options[f"values_{values}"] = (
        floats(rng, count) if values == "floats" else rng.integers(-9, 9, count).tolist()
    )
    meaning("LabelEncoder", [x], [result], version=2, **options)


def test_label_encoder_of_nan_and_of_tensors() -> None:
    x = np.array([[1.5, np.nan, 3.0, 9.0]])
    options = {
        "keys_tensor": numpy_helper.from_array(np.array([np.nan, 3.0, 1.5])),
        "values_tensor": numpy_helper.from_array(np.array([7, -2, 5], np.int64)),
        "default_tensor": numpy_helper.from_array(np.array([42], np.int64)),
    }
    beside(
        "LabelEncoder", [x], [TensorProto.INT64], domain=ML, version=4,
        wanted=[np.array([[5, 7, -2, 42]])], **options,
    )  # fmt: skip


def test_no_rows(rng: np.random.Generator) -> None:
    import tilewright

    options = svm(rng, [3, 2, 4], likely=True, kernel_type="RBF")
    model, _ = node_model("SVMClassifier", [data(rng, 4)], LABELS_AND_SCORES, domain=ML, **options)
    labels, scores = tilewright.compile(model, cache=False).run({"x0": np.zeros((0, 4), "f4")})
    assert (labels.shape, scores.shape) == ((0,), (0, 3))
