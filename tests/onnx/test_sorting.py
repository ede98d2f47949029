"""Ordering and choosing by value against NumPy and the ONNX reference, and as native code."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

import tilewright
from tests.onnx.small_models import BATCH, check, check_node, make_model, one_node
from tilewright.frontend.onnx import import_model

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8", "u1"])
def test_top_k(axis: int, largest: int, dtype: str) -> None:
    x = RNG.integers(0, 9, (BATCH, 5, 6)).astype(dtype)  # with many equal elements
    wide = x.astype(np.int64) if dtype == "u1" else x
    order = np.argsort(-wide if largest else wide, axis=axis, kind="stable")
    places = np.take(order, range(3), axis)
    expected = [np.take_along_axis(x, places, axis), places]
    options = {"known": [1], "outputs": 2, "attributes": {"axis": axis, "largest": largest}}
    check_node("TopK", [x, np.array([3])], **options, expected=expected, compiled=True)


@pytest.mark.parametrize("axis", [0, 4, 9])
def test_top_k_inside_of_many_dimensions(axis: int) -> None:
    x = RNG.integers(0, 9, (BATCH, 1, 2, 2, 3, 1, 2, 1, 2, 2)).astype(np.float32)
    places = np.take(np.argsort(-x, axis=axis, kind="stable"), range(2), axis)
    expected = [np.take_along_axis(x, places, axis), places]
    options = {"known": [1], "outputs": 2, "attributes": {"axis": axis}}
    check_node("TopK", [x, np.array([2])], **options, expected=expected, compiled=True)


def test_top_k_by_attribute() -> None:
    x = RNG.normal(size=(BATCH, 9)).astype(np.float32)
    places = np.argsort(-x, kind="stable")[:, :4]
    expected = [np.take_along_axis(x, places, -1), places]
    check_node("TopK", [x], opset=9, outputs=2, attributes={"k": 4}, expected=expected)


def test_top_k_of_a_symbolic_number() -> None:
    x = RNG.normal(size=(3, BATCH)).astype(np.float32)
    model, feeds = one_node("TopK", [x, np.array([BATCH])], known=[1], outputs=2)
    del model.graph.initializer[:], model.graph.node[:]
    model.graph.node.extend(
        [
            helper.make_node("Shape", ["in0"], ["in1"], start=1),
            helper.make_node("TopK", ["in0", "in1"], ["out0", "out1"]),
        ]
    )
    places = np.argsort(-x, kind="stable")
    check(model, feeds, [np.take_along_axis(x, places, -1), places], compiled=True)


@pytest.mark.parametrize("dtype", ["f4", "i4", "?"])
def test_non_zero(dtype: str) -> None:
    x = RNG.integers(0, 2, (BATCH, 3, 4)).astype(dtype)
    check_node("NonZero", [x], compiled=True)
    check_node("NonZero", [np.zeros((BATCH, 2), dtype)])


def test_non_zero_has_a_size_of_its_own() -> None:
    model, _ = one_node("NonZero", [np.ones((BATCH, 3), np.float32)])
    graph = import_model(model).graph
    (compact,) = [node for node in graph.nodes if node.op.name == "compact"]
    ((size, source, element),) = compact.op.learns  # type: ignore[attr-defined]
    assert compact.output.shape == (size,)
    assert graph.outputs[0].shape[1] is size
    assert element == 0
    assert compact.inputs[source].dtype.name == "i64"
    assert all(size not in value.shape for value in graph.inputs)


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_compress(axis: int | None) -> None:
    x = RNG.normal(size=(BATCH, 5)).astype(np.float32)
    condition = np.array([True, False, True, True])
    attributes = {} if axis is None else {"axis": axis}
    expected = [np.compress(condition, x, axis)]
    options = {"attributes": attributes, "expected": expected, "compiled": True}
    check_node("Compress", [x, condition], **options)
    check_node("Compress", [x, condition], known=[1], **options)


@pytest.mark.parametrize("batch", [1, 4, BATCH])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_a_compiled_model_takes_as_many_as_there_are(batch: int, share: float) -> None:
    """One compilation for every number of elements that are chosen, also for none."""
    nodes = [
        helper.make_node("Less", ["x", "limit"], ["small"]),
        helper.make_node("NonZero", ["small"], ["places"]),
        helper.make_node("Transpose", ["places"], ["rows"]),
        helper.make_node("GatherND", ["x", "rows"], ["chosen"]),
        helper.make_node("Mul", ["chosen", "two"], ["y"]),
    ]
    x = np.random.default_rng(batch).random((batch, 5), dtype=np.float32)
    known = {"two": np.float32(2)}
    model = make_model(nodes, {"x": np.zeros((BATCH, 5), "f"), "limit": np.float32(0)}, known)
    del model.graph.output[:-1]
    (found,) = tilewright.compile(model, cache=False).run({"x": x, "limit": np.float32(share)})
    np.testing.assert_array_equal(found, x[x < share] * 2)
