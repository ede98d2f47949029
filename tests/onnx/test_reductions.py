"""Reductions, places of extremes and running sums against the reference, and as native code."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.onnx.small_models import BATCH, check_node, one_node, run
from tilewright.frontend.onnx import import_model
from tilewright.graph.ir import Array
from tilewright.graph.ops import Reduce

REDUCTIONS = ["ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceL1"]
REDUCTIONS += ["ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"]


def positive(rng: np.random.Generator, shape: tuple[int, ...], dtype: str = "f4") -> Array:
    return rng.uniform(0.5, 2, shape).astype(dtype)


@pytest.mark.parametrize("axes", [[1], [0, 2], [-1], [0, 1, 2]], ids=str)
@pytest.mark.parametrize("op", REDUCTIONS)
def test_axes_are_an_input(rng: np.random.Generator, op: str, axes: list[int]) -> None:
    x = positive(rng, (BATCH, 3, 5))
    for keepdims in (0, 1):
        check_node(op, [x, axes], known=[1], opset=18, attributes={"keepdims": keepdims})


@pytest.mark.parametrize("op", REDUCTIONS)
def test_axes_are_an_attribute(rng: np.random.Generator, op: str) -> None:
    x = positive(rng, (BATCH, 3, 5))
    opset = 12 if op == "ReduceSum" else 13
    check_node(op, [x], opset=opset, attributes={"axes": [-2]}, compiled=True)
    check_node(op, [x], opset=opset, attributes={"keepdims": 0})


@pytest.mark.parametrize("op", REDUCTIONS)
def test_no_axes_are_all_or_none(rng: np.random.Generator, op: str) -> None:
    x, none = positive(rng, (BATCH, 3)), np.zeros(0, np.int64)
    check_node(op, [x, none], known=[1], opset=18)
    function = {"ReduceSumSquare": np.square, "ReduceLogSum": np.log}.get(op, np.copy)
    attributes = {"noop_with_empty_axes": 1}
    check_node(op, [x, none], known=[1], opset=18, expected=[function(x)], attributes=attributes)


EMPTY = {"ReduceProd": 1, "ReduceMax": -np.inf, "ReduceMin": np.inf, "ReduceMean": np.nan}
EMPTY |= {"ReduceLogSum": -np.inf, "ReduceLogSumExp": -np.inf}


@pytest.mark.parametrize("op", REDUCTIONS)
def test_folds_of_nothing(op: str) -> None:
    """They are known at once, because kernels do not run on empty arrays."""
    x = np.zeros((BATCH, 0, 4), np.float32)
    wanted = np.full((BATCH, 1, 4), EMPTY.get(op, 0), np.float32)
    check_node(op, [x, [1]], known=[1], opset=20, expected=[wanted])
    model, _ = one_node(op, [x, [1]], known=[1], opset=20)
    assert not any(isinstance(node.op, Reduce) for node in import_model(model).graph.nodes)


@pytest.mark.parametrize("dtype", ["i4", "i8", "u4"])
def test_integers(rng: np.random.Generator, dtype: str) -> None:
    x = rng.integers(1, 9, (BATCH, 6)).astype(dtype)
    folds = {"ReduceSum": np.sum, "ReduceProd": np.prod, "ReduceMax": np.max, "ReduceMin": np.min}
    for op, fold in folds.items():
        wanted = fold(x, axis=1, keepdims=True).astype(dtype)
        check_node(op, [x, [1]], known=[1], opset=18, expected=[wanted], compiled=dtype == "u4")
    means = (x.sum(1, keepdims=True) // 6).astype(dtype)
    check_node("ReduceMean", [x, [1]], known=[1], opset=18, expected=[means])
    roots = np.sqrt(np.square(x.astype("f8")).sum(1, keepdims=True)).astype(dtype)
    check_node("ReduceL2", [x, [1]], known=[1], opset=18, expected=[roots])


def test_bools_fold_as_and_and_or(rng: np.random.Generator) -> None:
    x = rng.random((BATCH, 5)) < 0.7
    for op in ("ReduceMax", "ReduceMin"):
        check_node(op, [x, [1]], known=[1], opset=20, compiled=True)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_floats_do_not_overflow_inside(dtype: type) -> None:
    """The squares are far beyond the range of f16, their root is not."""
    x = np.full((3, 1024), 300, dtype)
    wanted = np.full((3, 1), 300 * 32, dtype)
    check_node("ReduceL2", [x, [1]], known=[1], opset=18, expected=[wanted], compiled=True)


def test_log_sum_exp_is_stable() -> None:
    x = np.array([[1e4, 1e4], [-1e4, -1e4], [-np.inf, -np.inf], [np.inf, 0], [0, 1]], np.float32)
    wanted = np.logaddexp(x[:, :1].astype("f8"), x[:, 1:].astype("f8")).astype("f4")
    check_node("ReduceLogSumExp", [x, [1]], known=[1], opset=18, expected=[wanted], compiled=True)


def test_mean_over_a_symbolic_size_divides_by_it(rng: np.random.Generator) -> None:
    x = positive(rng, (BATCH, 5))
    model, _ = one_node("ReduceMean", [x, [0]], known=[1], opset=18)
    for count in (1, 4, 9):
        part = positive(rng, (count, 5))
        (found,) = run(model, {"in0": part})
        np.testing.assert_allclose(found, part.mean(0, keepdims=True), rtol=1e-6)


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("dtype", ["f4", "i4", "u1"])
def test_places_of_extremes(rng: np.random.Generator, op: str, last: int, dtype: str) -> None:
    x = rng.integers(0, 4, (BATCH, 9, 3)).astype(dtype)
    for axis in (1, -1):
        attributes = {"axis": axis, "select_last_index": last, "keepdims": last}
        check_node(op, [x], attributes=attributes, compiled=axis == 1)


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_first_nan_is_the_extreme(op: str) -> None:
    x = np.array([[1, np.nan, 3, np.nan], [4, 5, 6, 0]], np.float32)
    find = np.argmax if op == "ArgMax" else np.argmin
    wanted = find(x, axis=1, keepdims=True)
    check_node(op, [x], expected=[wanted], attributes={"axis": 1}, compiled=True)


@pytest.mark.parametrize("opset", [11, 13])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_hardmax(rng: np.random.Generator, opset: int, axis: int) -> None:
    x = rng.integers(0, 3, (BATCH, 4, 3)).astype("f4")
    flat = x.reshape(int(np.prod(x.shape[:axis])), -1) if opset < 13 else np.moveaxis(x, axis, -1)
    hot = np.eye(flat.shape[-1], dtype="f4")[flat.argmax(-1)]
    wanted = hot.reshape(x.shape) if opset < 13 else np.moveaxis(hot, -1, axis)
    check_node("Hardmax", [x], opset=opset, expected=[wanted], attributes={"axis": axis})


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("shape", [(9,), (BATCH, 4, 3), (2, BATCH)], ids=str)
def test_running_sums(
    rng: np.random.Generator, exclusive: int, reverse: int, shape: tuple[int, ...]
) -> None:
    x = rng.integers(-9, 9, shape).astype("f8")
    attributes = {"exclusive": exclusive, "reverse": reverse}
    for axis in (0, -1):
        where = np.array(axis, np.int64)
        check_node("CumSum", [x, where], known=[1], attributes=attributes, compiled=axis == -1)


def test_running_products(rng: np.random.Generator) -> None:
    x = rng.uniform(0.5, 1.5, (BATCH, 5)).astype("f4")
    wanted = np.cumprod(x.astype("f8"), axis=1).astype("f4")
    check_node("CumProd", [x, np.int64(1)], known=[1], opset=26, expected=[wanted], compiled=True)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_running_sums_of_narrow_floats_are_rounded_once(dtype: type) -> None:
    """A total that was rounded at each step would stop growing."""
    x = np.ones((2, 5000), dtype)
    wanted = np.cumsum(x.astype("f8"), axis=1).astype(dtype)
    check_node("CumSum", [x, np.int64(1)], known=[1], expected=[wanted], compiled=True)
