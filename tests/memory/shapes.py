"""Operators whose inputs have shapes that do not fit: read as they are, memory would be left.

Each is (what is wrong, operator, inputs, names or sizes of their dimensions, options of the node).
Sizes are large enough that a stray access would reach another page.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.memory.operators import FORESTS, OWN

__all__ = ["MISMATCHED"]

Mismatch = tuple[str, str, list[Any], list[list[Any]], dict[str, Any]]


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.int64)


def bytes_(*shape: int) -> np.ndarray:
    return np.ones(shape, np.uint8)


def _options(**attributes: Any) -> dict[str, Any]:
    return {"attributes": attributes}


MISMATCHED: list[Mismatch] = [
    (
        "more rows of indices than of data",
        "GatherElements",
        [ones(3, 4), zeros(500, 4)],
        [["n", 4], ["m", 4]],
        _options(axis=1),
    ),
    (
        "a row of nothing",
        "Gather",
        [ones(0, 4), zeros(3)],
        [["n", 4], ["m"]],
        _options(axis=0),
    ),
    (
        "more batches of indices than of data",
        "GatherND",
        [ones(2, 4), zeros(500, 3, 1)],
        [["n", 4], ["m", "k", 1]],
        _options(batch_dims=1),
    ),
    (
        "more updates than indices",
        "ScatterElements",
        [ones(1000, 4), zeros(3, 4), ones(900, 4)],
        [["n", 4], ["m", 4], ["k", 4]],
        _options(axis=0),
    ),
    (
        "updates wider than data",
        "ScatterElements",
        [ones(4, 2), zeros(4, 500), ones(4, 500)],
        [["n", "a"], ["m", "b"], ["m", "b"]],
        _options(axis=0),
    ),
    (
        "slices wider than data",
        "ScatterND",
        [ones(4, 2), zeros(3, 1), ones(3, 900)],
        [["n", "a"], ["m", 1], ["q", "b"]],
        {},
    ),
    (
        "fewer lengths than sequences",
        "ReverseSequence",
        [ones(4, 600), zeros(1)],
        [["t", "b"], ["q"]],
        _options(time_axis=0, batch_axis=1),
    ),
    (
        "an update longer than the cache",
        "TensorScatter",
        [ones(2, 3, 4), ones(2, 900, 4)],
        [["b", "n", 4], ["b", "m", 4]],
        {"opset": 24, **_options(axis=1)},
    ),
    (
        "fewer starts than batches",
        "TensorScatter",
        [ones(700, 3, 4), ones(700, 1, 4), zeros(1)],
        [["b", "n", 4], ["b", "m", 4], ["c"]],
        {"opset": 24, **_options(axis=1)},
    ),
    (
        "one value instead of two",
        "OneHot",
        [zeros(3), np.array([5]), ones(1)],
        [["n"], [1], ["q"]],
        {"known": (1,)},
    ),
    (
        "more of the greatest than there are",
        "TopK",
        [ones(3, 4), np.array([2000])],
        [["n", "m"], [1]],
        {"known": (1,), "outputs": 2},
    ),
    (
        "parts of more than there is",
        "Split",
        [ones(6, 4), np.array([3, 500])],
        [["n", 4], [2]],
        {"known": (1,), "outputs": 2},
    ),
    (
        "the wrapped border of nothing",
        "Pad",
        [ones(0, 4), np.array([2, 0, 2, 0])],
        [["n", 4], [4]],
        {"known": (1,), **_options(mode="wrap")},
    ),
    (
        "rows that do not fit columns",
        "MatMul",
        [ones(5, 2), ones(900, 8)],
        [["a", "b"], ["c", "d"]],
        {},
    ),
    (
        "a scale that is too short",
        "LayerNormalization",
        [ones(2, 900), ones(3), ones(3)],
        [["n", "c"], ["q"], ["q"]],
        {},
    ),
    (
        "more grids than pictures",
        "GridSample",
        [ones(2, 3, 4, 4), ones(700, 5, 5, 2)],
        [["n", "c", "h", "w"], ["m", "a", "b", 2]],
        {},
    ),
    (
        "a bias that is too short",
        "Conv",
        [ones(1, 3, 50, 50), ones(800, 3, 3, 3), ones(2)],
        [["n", 3, "h", "w"], [800, 3, 3, 3], ["q"]],
        {},
    ),
    (
        "fewer scales than blocks",
        "DequantizeLinear",
        [bytes_(1, 9000), ones(1, 1)],
        [["a", "b"], ["a", "c"]],
        _options(axis=1, block_size=2),
    ),
    (
        "more scales than blocks",
        "QuantizeLinear",
        [ones(2, 8), ones(2, 4)],
        [["a", "b"], ["a", "c"]],
        _options(axis=1, block_size=4),
    ),
    (
        "scales of another table",
        "GatherBlockQuantized",
        [bytes_(6, 9000), zeros(3), ones(6, 2)],
        [["a", "b"], ["m"], ["a", "c"]],
        {"domain": OWN, **_options(bits=4, block_size=16)},
    ),
    (
        "weights of half of the product",
        "MatMulBnb4",
        [ones(2, 32), bytes_(48), ones(12)],
        [["m", 32], ["a"], ["b"]],
        {"domain": OWN, **_options(K=32, N=6, block_size=16)},
    ),
    (
        "greatest values for some of the blocks",
        "MatMulBnb4",
        [ones(2, 32), bytes_(96), ones(1)],
        [["m", 32], ["a"], ["b"]],
        {"domain": OWN, **_options(K=32, N=6, block_size=16)},
    ),
    (
        "boxes without corners",
        "MaxRoiPool",
        [ones(1, 1, 8, 8), ones(900, 2)],
        [["n", 1, 8, 8], ["k", "five"]],
        _options(pooled_shape=[2, 2]),
    ),
    (
        "boxes in no picture",
        "RoiAlign",
        [ones(0, 1, 8, 8), ones(3, 4), zeros(3)],
        [["n", 1, 8, 8], ["k", 4], ["k"]],
        {},
    ),
    (
        "boxes in pictures without lines",
        "RoiAlign",
        [ones(2, 1, 0, 8), ones(3, 4), zeros(3)],
        [["n", 1, "h", "w"], ["k", 4], ["k"]],
        {},
    ),
    (
        "trees that ask for what rows do not have",
        "TreeEnsembleRegressor",
        [ones(3, 0)],
        [["n", "c"]],
        {"domain": "ai.onnx.ml", "attributes": FORESTS[0].attributes},
    ),
    (
        "fewer sines than cosines",
        "RotaryEmbedding",
        [ones(2, 3, 4, 8), ones(20, 4), ones(20, 0), zeros(2, 4)],
        [["n", 3, 4, 8], ["m", "a"], ["m", "b"], ["n", 4]],
        {"opset": 23},
    ),
    (
        "a spread picture that is none",
        "ConvTranspose",
        [ones(1, 4, 0, 6), ones(4, 3, 3, 3)],
        [["n", 4, "h", "w"], [4, 3, 3, 3]],
        {},
    ),
    (
        "a window larger than the picture",
        "MaxPool",
        [ones(1, 1, 3, 3)],
        [["n", "c", "h", "w"]],
        _options(kernel_shape=[5, 5]),
    ),
]
