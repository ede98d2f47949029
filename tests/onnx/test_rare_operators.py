"""Operators that few models have, against the ONNX reference: whole models as native code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from tests.onnx.native_nodes import check_native, native
from tests.onnx.small_models import BATCH

RNG = np.random.default_rng(14)
TRAINING = "ai.onnx.preview.training"


@pytest.mark.parametrize("size", [0, 1, 2, 5, BATCH, 20])
def test_determinants(size: int) -> None:
    """Of stacks of matrices; many steps are a loop, and so is a number of them that is unknown."""
    x = RNG.normal(size=(2, 3, size, size))
    check_native("Det", [x], [np.linalg.det(x)], scale=100)


def test_determinants_need_pivots() -> None:
    order = np.eye(6, dtype=np.float32)[RNG.permutation(6)]
    x = np.stack([order, order[::-1], np.ones((6, 6), np.float32), np.zeros((6, 6), np.float32)])
    check_native("Det", [x], [np.linalg.det(x).round().astype(np.float32)])


@pytest.mark.parametrize(
    ("batch", "channels", "groups", "bent", "how"),
    [
        (1, 4, 1, 1, {}),
        (BATCH, 4, 2, 1, {"strides": [2, 1], "pads": [1, 0, 1, 2]}),
        (2, 6, 1, 3, {"dilations": [1, 2], "pads": [0, 1, 0, 1]}),
        (1, 6, 3, 2, {"pads": [1, 1, 1, 1]}),
    ],
)
def test_bent_windows(
    batch: int, channels: int, groups: int, bent: int, how: dict[str, Any]
) -> None:
    strides, gaps = how.get("strides", [1, 1]), how.get("dilations", [1, 1])
    pads = how.get("pads", [0, 0, 0, 0])
    window, size = (3, 2), (6, 5)
    space = [
        (size[d] + pads[d] + pads[2 + d] - (window[d] - 1) * gaps[d] - 1) // strides[d] + 1
        for d in range(2)
    ]
    x = RNG.normal(size=(batch, channels, *size)).astype(np.float32)
    weights = RNG.normal(size=(6, channels // groups, *window)).astype(np.float32)
    offset = RNG.normal(0, 2, (batch, bent * 12, *space)).astype(np.float32)
    bias = RNG.normal(size=6).astype(np.float32)
    mask = RNG.random((batch, bent * 6, *space)).astype(np.float32)
    attributes = {**how, "group": groups, "offset_group": bent}
    extra = [bias, mask] if bent > 1 else []
    inputs = [x, weights, offset, *extra]
    check_native("DeformConv", inputs, attributes=attributes, scale=10)


def test_windows_bent_to_nowhere_see_nothing() -> None:
    x, weights = np.ones((1, 1, 4, 4), np.float32), np.ones((1, 1, 1, 1), np.float32)
    offset = np.zeros((1, 2, 4, 4), np.float32)
    offset[0, 0, 0] = [np.nan, np.inf, -np.inf, 1e30]
    (found,) = native("DeformConv", [x, weights, offset])
    np.testing.assert_array_equal(found[0, 0], [[0] * 4] + [[1] * 4] * 3)


@pytest.mark.parametrize("shape", [None, [2, 3, 5, 7]])
def test_maxima_back_at_their_places(shape: list[int] | None) -> None:
    x = RNG.normal(size=(2, 3, 2, 3)).astype(np.float32)
    places = RNG.permutation(2 * 3 * 4 * 6)[:36].reshape(x.shape)
    inputs = [x, places] if shape is None else [x, places, np.array(shape)]
    known = [] if shape is None else [2]
    attributes = {"kernel_shape": [2, 2], "strides": [2, 2]}
    check_native("MaxUnpool", inputs, known=known, attributes=attributes)


def test_places_of_maxima_that_do_not_exist() -> None:
    """The nearest element is meant, and nothing else is written."""
    x = np.ones((1, 1, 2, 2), np.float32)
    places = np.array([2**60, 3, 5, 99]).reshape(x.shape)
    attributes = {"kernel_shape": [2, 2], "strides": [2, 2]}
    (found,) = native("MaxUnpool", [x, places], attributes=attributes)
    assert np.flatnonzero(found).tolist() == [3, 5, 15]


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("lengths", [(1, 1), (2, 3)])
def test_sequences_of_numbers(mode: str, lengths: tuple[int, int]) -> None:
    """Some sequences are in the list twice, or begin others; columns are in any order."""
    pool = [2, 3, 5, -4, 5, 6, 7, 8, 6, 7, 2, 3, 5, 6, 7, 5, 5, 5, 2, 2, 3]
    columns = [int(c) for c in RNG.permutation(11)]
    attributes = {
        "ngram_counts": [0, 4, 12],
        "ngram_indexes": columns,
        "pool_int64s": pool,
        "mode": mode,
        "min_gram_length": lengths[0],
        "max_gram_length": lengths[1],
        "max_skip_count": 2,
    }
    # The standard has the weight of each sequence, the reference takes them for those of columns.
    by_column = [float(w) for w in RNG.integers(1, 9, 11)]
    weights = [by_column[column] for column in columns]
    there = helper.make_node("TfIdfVectorizer", ["x"], ["y"], weights=by_column, **attributes)
    for x in (RNG.integers(1, 9, (3, BATCH)), RNG.integers(4, 8, 40).astype(np.int32)):
        wanted = ReferenceEvaluator(there).run(None, {"x": x})
        check_native("TfIdfVectorizer", [x], wanted, attributes={**attributes, "weights": weights})


def test_sequences_in_nothing() -> None:
    attributes = {
        "ngram_counts": [0],
        "ngram_indexes": [0, 2],
        "pool_int64s": [3, 4],
        "mode": "TF",
        "min_gram_length": 1,
        "max_gram_length": 1,
        "max_skip_count": 0,
    }
    x = np.zeros((2, 0), np.int64)
    check_native("TfIdfVectorizer", [x], [np.zeros((2, 3), np.float32)], attributes=attributes)


def test_mel_weights() -> None:
    inputs = [np.int64(8), np.int64(64), np.int64(8192), np.float32(10), np.float32(4000)]
    check_native("MelWeightMatrix", inputs, known=range(5))


@pytest.mark.parametrize("turn", [0, 3])
@pytest.mark.parametrize(
    ("op", "states", "attributes"),
    [
        ("Adagrad", 1, {"decay_factor": 0.1, "epsilon": 1e-5, "norm_coefficient": 0.01}),
        ("Adam", 2, {"alpha": 0.8, "beta": 0.9, "epsilon": 1e-5, "norm_coefficient": 0.01}),
        ("Momentum", 1, {"alpha": 0.8, "beta": 0.9, "mode": "standard", "norm_coefficient": 0.1}),
        ("Momentum", 1, {"alpha": 0.8, "beta": 0.9, "mode": "nesterov", "norm_coefficient": 0.1}),
    ],
)
def test_steps_of_optimizers(op: str, states: int, attributes: dict[str, Any], turn: int) -> None:
    """Two tensors at once, each with its states."""
    shapes = [(BATCH, 3), (5,)]
    values = [
        (np.abs if kind >= 2 else np.asarray)(RNG.normal(size=shape).astype(np.float32))
        for kind in range(2 + states)
        for shape in shapes
    ]
    inputs = [np.float32(0.1), np.int64(turn), *values]
    outputs = 2 * (1 + states)
    options: dict[str, Any] = {"domain": TRAINING, "outputs": outputs, "attributes": attributes}
    check_native(op, inputs, scale=4, **options)
