"""Normalisations against formulas in double precision, and as native code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tests.onnx.beside_ort import beside
from tests.onnx.native_nodes import check_native
from tests.onnx.small_models import BATCH, check_node, one_node, run
from tilewright.frontend.onnx import import_model
from tilewright.graph.ir import Array
from tilewright.graph.ops import Map


def normal(rng: np.random.Generator, *shape: int) -> Array:
    return rng.normal(0.5, 2, shape).astype("f4")


def standardised(x: Array, axes: tuple[int, ...], epsilon: float) -> Array:
    wide = x.astype("f8")
    centred = wide - wide.mean(axes, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axes, keepdims=True) + epsilon)


def over(vector: Array, rank: int) -> Array:
    return vector.reshape(-1, *(1,) * (rank - 2))


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["f4", "f2"])
def test_softmax_along_an_axis(rng: np.random.Generator, op: str, axis: int, dtype: str) -> None:
    x = normal(rng, BATCH, 4, 6).astype(dtype)
    check_node(op, [x], attributes={"axis": axis}, compiled=axis == -1)


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1])
def test_softmax_before_opset_13_takes_all_later_axes(
    rng: np.random.Generator, op: str, axis: int | None
) -> None:
    x = normal(rng, BATCH, 4, 6)
    first = 1 if axis is None else axis % 3
    axes = tuple(range(first, 3))
    power = np.exp(x.astype("f8") - x.max(axes, keepdims=True))
    share = power / power.sum(axes, keepdims=True)
    wanted = (share if op == "Softmax" else np.log(share)).astype("f4")
    attributes: dict[str, Any] = {} if axis is None else {"axis": axis}
    check_node(op, [x], opset=11, expected=[wanted], attributes=attributes)


@pytest.mark.parametrize("dtype", ["f4", "f2", "f8"])
@pytest.mark.parametrize(("op", "wanted"), [("Softmax", 1), ("LogSoftmax", 0)])
def test_a_single_element_is_certain(
    rng: np.random.Generator, op: str, wanted: int, dtype: str
) -> None:
    x = normal(rng, BATCH, 3, 1).astype(dtype)
    model, feeds = one_node(op, [x], attributes={"axis": -1})
    (found,) = tw.compile(model, cache=False, threads=1).run(feeds)
    assert (found == wanted).all()


def test_softmax_of_large_and_masked_scores() -> None:
    x = np.array([[1e30, 1e30, -np.inf], [-np.inf, 0, -1e30]], np.float32)
    wanted = np.array([[0.5, 0.5, 0], [0, 1, 0]], np.float32)
    check_node("Softmax", [x], expected=[wanted], compiled=True)


@pytest.mark.parametrize("shape", [(BATCH, 5), (BATCH, 5, 3), (2, 5, BATCH, 3)], ids=str)
def test_batch_normalization(rng: np.random.Generator, shape: tuple[int, ...]) -> None:
    x, (scale, bias, mean) = normal(rng, *shape), normal(rng, 3, 5)
    variance = np.abs(normal(rng, 5))
    parts = [over(v.astype("f8"), x.ndim) for v in (scale, bias, mean, variance)]
    wanted = parts[0] * (x - parts[2]) / np.sqrt(parts[3] + 1e-3) + parts[1]
    inputs, attributes = [x, scale, bias, mean, variance], {"epsilon": 1e-3}
    for known in ([], [1, 2, 3, 4]):
        check_node(
            "BatchNormalization",
            inputs,
            known=known,
            expected=[wanted.astype("f4")],
            attributes=attributes,
            compiled=bool(known),
        )


@pytest.mark.parametrize("opset", [7, 8])
def test_batch_normalization_of_each_element(rng: np.random.Generator, opset: int) -> None:
    """Statistics have the shape of a sample, before opset 9."""
    inputs = [normal(rng, 11, 3, 4), *np.abs(normal(rng, 4, 3, 4))]
    options = {"domain": "", "version": opset, "standard": opset, "spatial": 0}
    beside("BatchNormalization", inputs, known=[1, 2, 3, 4], **options)
    beside("BatchNormalization", inputs, **options)


def test_batch_normalization_by_constants_is_one_map(rng: np.random.Generator) -> None:
    inputs = [normal(rng, BATCH, 5, 3, 3), *np.abs(normal(rng, 4, 5))]
    model, _ = one_node("BatchNormalization", inputs, known=[1, 2, 3, 4])
    graph = import_model(model).graph
    assert [type(node.op) for node in graph.nodes] == [Map]
    assert [v.rank for v in graph.constants] == [3, 3]


@pytest.mark.parametrize("shape", [(BATCH, 5), (BATCH, 5, 3), (2, 5, 3, 4)])
def test_batch_normalization_in_training(rng: np.random.Generator, shape: tuple[int, ...]) -> None:
    """By its own mean and variance; the running ones move by what momentum leaves."""
    inputs = [normal(rng, *shape), *np.abs(normal(rng, 4, 5))]
    attributes = {"training_mode": 1, "momentum": 0.7, "epsilon": 1e-3}
    check_native("BatchNormalization", inputs, outputs=3, attributes=attributes, scale=4)


def test_instance_normalization(rng: np.random.Generator) -> None:
    x, (scale, bias) = normal(rng, BATCH, 3, 4, 5), normal(rng, 2, 3)
    wanted = standardised(x, (2, 3), 1e-5) * over(scale, 4) + over(bias, 4)
    check_node("InstanceNormalization", [x, scale, bias], expected=[wanted.astype("f4")])


@pytest.mark.parametrize("axis", [-1, 1, 0])
@pytest.mark.parametrize("dtype", ["f4", "f2", "f8"])
def test_layer_normalization_and_its_statistics(
    rng: np.random.Generator, axis: int, dtype: str
) -> None:
    x = normal(rng, BATCH, 3, 4).astype(dtype)
    axes = tuple(range(axis % 3, 3))
    scale, bias = (normal(rng, *x.shape[axis:]).astype(dtype) for _ in range(2))
    if 0 in axes:
        scale, bias = scale[:1], bias[:1]
    wide = x.astype("f8")
    epsilon = float(np.float32(1e-5))  # attributes are f32
    wanted = standardised(x, axes, epsilon) * scale + bias
    factor = 1 / np.sqrt(wide.var(axes, keepdims=True) + 1e-5)
    stash = "f4"
    expected = [wanted.astype(dtype), wide.mean(axes, keepdims=True).astype(stash)]
    expected.append(factor.astype(stash))
    inputs, attributes = [x, scale, bias], {"axis": axis}
    check_node(
        "LayerNormalization", inputs, outputs=3, expected=expected, attributes=attributes,
        compiled=axis == -1,
    )  # fmt: skip
    without = [(wanted - bias).astype(dtype)]
    check_node("LayerNormalization", inputs[:2], expected=without, attributes=attributes)


def test_layer_normalization_of_values_far_from_zero(rng: np.random.Generator) -> None:
    """The variance is that of the centred values: squares of the values would lose it."""
    x = (rng.normal(0, 1, (3, 64)) + 1e4).astype("f4")
    scale = np.ones(64, np.float32)
    wanted = standardised(x, (1,), 1e-5)
    model, feeds = one_node("LayerNormalization", [x, scale])
    np.testing.assert_allclose(run(model, feeds)[0], wanted, atol=2e-3)


@pytest.mark.parametrize("opset", [18, 21])
def test_group_normalization(rng: np.random.Generator, opset: int) -> None:
    x, groups = normal(rng, BATCH, 6, 4, 2), 3
    parts = normal(rng, 2, 6 if opset == 21 else groups)
    scale, bias = parts if opset == 21 else np.repeat(parts, 2, axis=1)
    grouped = standardised(x.reshape(BATCH, groups, -1), (2,), 1e-5).reshape(x.shape)
    wanted = grouped * over(scale, 4) + over(bias, 4)
    check_node(
        "GroupNormalization", [x, *parts], opset=opset, expected=[wanted.astype("f4")],
        attributes={"num_groups": groups},
    )  # fmt: skip


@pytest.mark.parametrize("dtype", ["f4", "f2"])
def test_rms_normalization(rng: np.random.Generator, dtype: str) -> None:
    x, scale = normal(rng, BATCH, 3, 8).astype(dtype), normal(rng, 8).astype(dtype)
    wide = x.astype("f8")
    wanted = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-5) * scale
    expected = [wanted.astype(dtype)]
    check_node("RMSNormalization", [x, scale], opset=23, expected=expected, compiled=True)


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("axis", [0, -1])
def test_lp_normalization(rng: np.random.Generator, p: int, axis: int) -> None:
    x = normal(rng, BATCH, 6)
    x[2] = 0
    wide = np.abs(x.astype("f8"))
    norm = (wide**p).sum(axis, keepdims=True) ** (1 / p)
    wanted = np.where(norm == 0, 0, x / np.where(norm == 0, 1, norm)).astype("f4")
    attributes = {"p": p, "axis": axis}
    check_node("LpNormalization", [x], expected=[wanted], attributes=attributes)


def test_mean_variance_normalization(rng: np.random.Generator) -> None:
    x = normal(rng, BATCH, 3, 4, 5)
    for axes in (None, [0, 1, 2, 3], [-1]):
        over_axes = tuple(a % 4 for a in axes or (0, 2, 3))
        wanted = standardised(x, over_axes, 0).astype("f4")
        attributes = {} if axes is None else {"axes": axes}
        expected = [wanted]
        check_node("MeanVarianceNormalization", [x], expected=expected, attributes=attributes)


@pytest.mark.parametrize("size", [1, 3, 4])
@pytest.mark.parametrize("beta", [0.75, 0.5])
def test_local_response_normalization(rng: np.random.Generator, size: int, beta: float) -> None:
    x = normal(rng, BATCH, 6, 3, 2)
    square = x.astype("f8") ** 2
    total = np.zeros_like(square)
    for c in range(6):
        first, end = max(0, c - (size - 1) // 2), min(6, c + size // 2 + 1)
        total[:, c] = square[:, first:end].sum(1)
    wanted = (x / (2 + 0.3 / size * total) ** beta).astype("f4")
    attributes = {"size": size, "alpha": 0.3, "beta": beta, "bias": 2.0}
    check_node("LRN", [x], expected=[wanted], attributes=attributes)
