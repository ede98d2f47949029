"""Gathering and scattering against the ONNX reference or NumPy, and as native code."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

import tilewright
from tests.onnx.small_models import BATCH, check_node, make_model
from tilewright.frontend.onnx import import_model
from tilewright.graph.ir import Array

RNG = np.random.default_rng(3)
X = RNG.normal(size=(BATCH, 5, 6)).astype(np.float32)
FOLDS = ["none", "add", "mul", "max", "min"]


def ints(*values: int) -> Array:
    return np.array(values, dtype=np.int64)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
@pytest.mark.parametrize("dtype", ["i4", "i8"])
def test_gather(axis: int, shape: tuple[int, ...], dtype: str) -> None:
    indices = RNG.integers(-5, 5, shape).astype(dtype)
    check_node("Gather", [X, indices], attributes={"axis": axis}, compiled=True)
    check_node("Gather", [X, indices], known=[1], attributes={"axis": axis}, compiled=True)


@pytest.mark.parametrize("indices", [2, -1, [0], [1, 2, 3], [4, 2, 0], [-1, -2], [0, 3]])
def test_evenly_spaced_indices_make_a_slice(indices: int | list[int]) -> None:
    check_node("Gather", [X, np.array(indices)], known=[1], attributes={"axis": 1}, compiled=True)
    node = helper.make_node("Gather", ["x", "i"], ["y"], axis=1)
    graph = import_model(make_model([node], {"x": X}, {"i": np.array(indices)})).graph
    assert {made.op.name for made in graph.nodes} <= {"remap", "reshape"}


def test_unknown_places_of_a_symbolic_dimension_are_no_slice() -> None:
    node = helper.make_node("Gather", ["x", "i"], ["y"], axis=0)
    graph = import_model(make_model([node], {"x": X}, {"i": np.array(3)})).graph
    assert [made.op.name for made in graph.nodes] == ["gather"]
    check_node("Gather", [X, np.array(3)], known=[1], attributes={"axis": 0}, compiled=True)


def test_indices_outside_of_the_tensor_take_the_nearest_element() -> None:
    expected = [X[:, [4, 0, 4, 0]]]
    options = {"attributes": {"axis": 1}, "expected": expected, "compiled": True}
    check_node("Gather", [X, ints(5, -6, 10**12, -(10**12))], **options)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_gather_elements(axis: int) -> None:
    shape = [BATCH, 5, 6]
    shape[axis] = 9
    indices = RNG.integers(-5, 5, shape)
    check_node("GatherElements", [X, indices], attributes={"axis": axis}, compiled=True)


@pytest.mark.parametrize(("batch", "shape"), [(0, (3, 1)), (0, (2, 2, 3)), (1, (BATCH, 2))])
def test_gather_nd(batch: int, shape: tuple[int, ...]) -> None:
    indices = RNG.integers(-5, 5, shape)
    check_node("GatherND", [X, indices], attributes={"batch_dims": batch}, compiled=True)


@pytest.mark.parametrize("reduction", FOLDS)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scatter_elements(reduction: str, axis: int) -> None:
    updates = RNG.normal(size=(4, 5, 6)).astype(np.float32)
    indices = RNG.integers(-5, 5, updates.shape)  # many of them meet
    expected = X.copy()
    along = axis % 3
    for place in np.ndindex(*updates.shape):
        at = list(place)
        at[along] = int(indices[place]) % X.shape[along]
        expected[tuple(at)] = folded(reduction, expected[tuple(at)], updates[place])
    attributes = {"axis": axis, "reduction": reduction}
    options = {"attributes": attributes, "expected": [expected], "compiled": True}
    check_node("ScatterElements", [X, indices, updates], **options)


def folded(reduction: str, old: float, new: float) -> float:
    """One update."""
    match reduction:
        case "add":
            return old + new
        case "mul":
            return old * new
        case "max":
            return max(old, new)
        case "min":
            return min(old, new)
    return new


def test_scatter_of_old_opsets() -> None:
    indices, updates = np.array([[1, 0, 2]]), np.float32([[7, 8, 9]])
    data = np.zeros((3, 3), np.float32)
    expected = [np.float32([[0, 8, 0], [7, 0, 0], [0, 0, 9]])]
    check_node("Scatter", [data, indices, updates], opset=9, expected=expected)


@pytest.mark.parametrize("reduction", FOLDS)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "f2"])
def test_scatter_nd(reduction: str, dtype: str) -> None:
    data = (X * 4).astype(dtype)
    indices = RNG.integers(0, 3, (8, 2))
    updates = (RNG.normal(size=(8, 6)) * 4).astype(dtype)
    expected = data.copy()
    for k, (row, column) in enumerate(indices):
        for j in range(6):
            place = (row, column, j)
            expected[place] = folded(reduction, expected[place], updates[k, j])
    options = {"attributes": {"reduction": reduction}, "expected": [expected], "compiled": True}
    check_node("ScatterND", [data, indices, updates], **options)


def test_updates_at_one_place_come_in_order() -> None:
    data, updates = np.zeros((3, 40), np.float32), RNG.normal(size=(50, 40)).astype(np.float32)
    expected = data.copy()
    expected[1] = updates[-1]
    options = {"expected": [expected], "compiled": True}
    check_node("ScatterND", [data, np.ones((50, 1), np.int64), updates], **options)


def test_updates_outside_of_the_tensor_change_nothing_else() -> None:
    data, updates = np.zeros((4, 3), np.float32), np.ones((2, 3), np.float32)
    expected = np.float32([[1] * 3, [0] * 3, [0] * 3, [1] * 3])
    options = {"expected": [expected], "compiled": True}
    check_node("ScatterND", [data, np.array([[99], [-99]]), updates], **options)


def test_scatter_of_nothing() -> None:
    nothing = [np.zeros((0, 1), np.int64), np.zeros((0, 5, 6), np.float32)]
    check_node("ScatterND", [X, *nothing], expected=[X])


@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("dtype", ["f4", "i8", "f2"])
def test_one_hot(axis: int, dtype: str) -> None:
    indices = np.array([[0, -1, 3], [7, -9, 2]])  # two of them are outside
    options = {"known": [1], "attributes": {"axis": axis}, "compiled": True}
    check_node("OneHot", [indices, np.array(5), np.array([2, 9], dtype)], **options)


@pytest.mark.parametrize("time", [0, 1])
def test_reverse_sequence(time: int) -> None:
    x = X[:5, :, :]
    attributes = {"time_axis": time, "batch_axis": 1 - time}
    check_node("ReverseSequence", [x, ints(1, 5, 2, 4, 3)], attributes=attributes, compiled=True)


@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_tensor_scatter(mode: str) -> None:
    update = RNG.normal(size=(BATCH, 2, 6)).astype(np.float32)
    first = ints(0, 1, 2, 3, 0, 1, 2) + (2 if mode == "circular" else 0)
    expected = X.copy()
    for batch, start in enumerate(first):
        for k in range(2):
            expected[batch, (start + k) % 5] = update[batch, k]
    options = {"opset": 24, "attributes": {"mode": mode}, "expected": [expected]}
    check_node("TensorScatter", [X, update, first], **options, compiled=True)
    whole = X.copy()
    whole[:, :2] = update
    check_node("TensorScatter", [X, update], opset=24, expected=[whole], compiled=True)


@pytest.mark.parametrize("batch", [1, 5, BATCH])
@pytest.mark.parametrize("reduction", ["none", "add"])
def test_a_compiled_model_keeps_the_order_of_updates(batch: int, reduction: str) -> None:
    """Scattered into what a map makes, and read by a map and a transpose."""
    nodes = [
        helper.make_node("Mul", ["x", "two"], ["doubled"]),
        helper.make_node("ScatterND", ["doubled", "at", "new"], ["mixed"], reduction=reduction),
        helper.make_node("Add", ["mixed", "x"], ["sum"]),
        helper.make_node("Transpose", ["sum"], ["y"], perm=[1, 0]),
    ]
    rng = np.random.default_rng(batch)
    x, new = rng.random((batch, 64), dtype=np.float32), rng.random((90, 64), dtype=np.float32)
    at = rng.integers(0, batch, (90, 1))
    shaped = {"x": np.zeros((BATCH, 64), np.float32), "at": at, "new": new}
    model = make_model(nodes, shaped, {"two": np.float32(2)})
    del model.graph.output[:-1]
    (found,) = tilewright.compile(model, cache=False).run({"x": x, "at": at, "new": new})
    mixed = x * 2
    for row, update in zip(at[:, 0], new, strict=True):
        mixed[row] = update if reduction == "none" else mixed[row] + update
    np.testing.assert_allclose(found, (mixed + x).T, rtol=1e-5)
