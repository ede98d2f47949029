"""Special values in folds, orders, normalisations and empty tensors, wherever they stand.

A row has one or two special values among ordinary ones, at every place of rows of every length up
to 40, so that vectors, their rests and the last fold of lanes all meet them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw

LENGTHS = (*range(1, 41), 100)
INF, NAN = np.inf, np.nan

Expected = Callable[[np.ndarray], np.ndarray]


def log_sum_exp(x: np.ndarray) -> np.ndarray:
    """Infinite where an element is, -∞ of nothing but -∞."""
    return np.logaddexp.reduce(x.astype("f8"), axis=1, keepdims=True)


def softmax(x: np.ndarray) -> np.ndarray:
    """NaN if the greatest element is infinite or NaN; 0 for -∞ beside a number."""
    wide = x.astype("f8")
    power = np.exp(wide - wide.max(axis=1, keepdims=True))
    return power / power.sum(axis=1, keepdims=True)


def log_softmax(x: np.ndarray) -> np.ndarray:
    wide = x.astype("f8")
    moved = wide - wide.max(axis=1, keepdims=True)
    return moved - np.log(np.exp(moved).sum(axis=1, keepdims=True))


def argument(choose: Callable[..., np.ndarray]) -> Expected:
    """The first NaN, if there is one, else the first of the extremes."""
    return lambda x: choose(x, axis=1, keepdims=True)


FOLDS: dict[str, Expected] = {
    "ReduceSum": lambda x: np.sum(x.astype("f8"), axis=1, keepdims=True),
    "ReduceMean": lambda x: np.mean(x.astype("f8"), axis=1, keepdims=True),
    "ReduceMax": lambda x: np.max(x, axis=1, keepdims=True),
    "ReduceMin": lambda x: np.min(x, axis=1, keepdims=True),
    "ReduceL1": lambda x: np.sum(np.abs(x.astype("f8")), axis=1, keepdims=True),
    "ReduceSumSquare": lambda x: np.sum(x.astype("f8") ** 2, axis=1, keepdims=True),
    "ReduceLogSumExp": log_sum_exp,
    "ArgMax": argument(np.argmax),
    "ArgMin": argument(np.argmin),
    "Softmax": softmax,
    "LogSoftmax": log_softmax,
}


def model() -> onnx.ModelProto:
    """Every fold over the rows of one matrix."""
    axes = numpy_helper.from_array(np.array([1]), "axes")
    nodes = []
    for name in FOLDS:
        by_input = name.startswith("Reduce")
        inputs = ["x", "axes"] if by_input else ["x"]
        attributes = {} if by_input else {"axis": 1}
        nodes.append(helper.make_node(name, inputs, [name], **attributes))
    sort = helper.make_node("TopK", ["x", "all"], ["values", "places"], axis=1)
    shape = helper.make_node("Shape", ["x"], ["all"], start=1, end=2)
    info = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", "n"])]
    outputs = [onnx.ValueInfoProto(name=n) for n in (*FOLDS, "values", "places")]
    graph = helper.make_graph([*nodes, shape, sort], "folds", info, outputs, [axes])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


def rows(length: int) -> np.ndarray:
    """Ordinary rows with special values at every place."""
    specials = [(NAN,), (INF,), (-INF,), (INF, -INF), (NAN, INF), (-0.0,), (1e-45,), (3e38,)]
    made = []
    rng = np.random.default_rng(length)
    for place in range(length):
        for special in specials:
            row = rng.uniform(-2, 2, length)
            for k, value in enumerate(special):
                row[(place + k) % length] = value
            made.append(row)
    made += [np.full(length, v) for v in (INF, -INF, NAN, 0.0, -0.0)]
    with np.errstate(over="ignore"):
        return np.array(made, np.float32)


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_with_special_values(threads):
    module = tw.compile(model(), cache=False, threads=threads)
    assert not module.by_reference
    for length in LENGTHS:
        x = rows(length)
        found = dict(zip([o.name for o in module.outputs], module.run({"x": x}), strict=True))
        for name, expected in FOLDS.items():
            with np.errstate(all="ignore"):
                wanted = expected(x)
                wanted = wanted.astype(found[name].dtype)
                np.testing.assert_allclose(  # sums that cancel round as their largest part does
                    found[name], wanted, rtol=2e-5, atol=4e-6, err_msg=f"{name} of {length}"
                )
        _require_order(x, found["values"], found["places"])


def _require_order(x: np.ndarray, values: np.ndarray, places: np.ndarray) -> None:
    """Descending, NaN in front, equal elements in their order."""
    back = np.argsort(x[:, ::-1], axis=1, kind="stable")[:, ::-1]
    wanted = x.shape[1] - 1 - back
    np.testing.assert_array_equal(places, wanted)
    np.testing.assert_array_equal(values, np.take_along_axis(x, wanted, axis=1))


EMPTY: dict[str, float] = {
    "ReduceSum": 0.0,
    "ReduceProd": 1.0,
    "ReduceMax": -INF,
    "ReduceMin": INF,
    "ReduceSumSquare": 0.0,
    "ReduceL1": 0.0,
    "ReduceLogSum": -INF,
    "ReduceLogSumExp": -INF,
    "ReduceMean": NAN,
}


@pytest.mark.parametrize("is_symbolic", [False, True])
@pytest.mark.parametrize("name", EMPTY)
def test_folds_of_nothing(name, is_symbolic):
    """The value that changes nothing; the mean is 0/0."""
    node = helper.make_node(name, ["x", "axes"], ["y"], keepdims=0)
    dims = ["rows", "n"] if is_symbolic else [3, 0]
    info = [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)]
    axes = numpy_helper.from_array(np.array([1]), "axes")
    graph = helper.make_graph([node], "empty", info, [onnx.ValueInfoProto(name="y")], [axes])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    (found,) = tw.compile(made, cache=False).run({"x": np.zeros((3, 0), np.float32)})
    np.testing.assert_array_equal(found, np.full(3, EMPTY[name], np.float32))


@pytest.mark.parametrize("name", ["int32", "int64", "uint8", "int8"])
def test_extremes_of_no_integers_are_the_ends_of_the_type(name):
    info = np.iinfo(name)
    for op, wanted in (("ReduceMax", info.min), ("ReduceMin", info.max)):
        node = helper.make_node(op, ["x", "axes"], ["y"], keepdims=0)
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(name))
        infos = [helper.make_tensor_value_info("x", kind, ["rows", "n"])]
        axes = numpy_helper.from_array(np.array([1]), "axes")
        graph = helper.make_graph([node], "empty", infos, [onnx.ValueInfoProto(name="y")], [axes])
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
        (found,) = tw.compile(made, cache=False).run({"x": np.zeros((2, 0), name)})
        np.testing.assert_array_equal(found, np.full(2, wanted, name))


NORMALISATIONS = {
    "LayerNormalization": {"axis": 1},
    "RMSNormalization": {"axis": 1},
}


@pytest.mark.parametrize("name", NORMALISATIONS)
def test_rows_of_no_variance(name):
    """The small number under the root keeps a constant row finite: zeros, or about ±1 for RMS."""
    node = helper.make_node(name, ["x", "scale"], ["y"], **NORMALISATIONS[name])
    infos = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", "n"]),
        helper.make_tensor_value_info("scale", TensorProto.FLOAT, ["n"]),
    ]
    graph = helper.make_graph([node], "rows", infos, [onnx.ValueInfoProto(name="y")])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    module = tw.compile(made, cache=False)
    for length in (1, 5, 8, 33):
        x = np.repeat(np.array([[0.0], [3.0], [-1e30], [1e-30]], np.float32), length, axis=1)
        x = np.concatenate([x, np.full((1, length), NAN, np.float32)])
        (found,) = module.run({"x": x, "scale": np.ones(length, np.float32)})
        assert np.isnan(found[-1]).all()
        if name == "LayerNormalization":
            np.testing.assert_array_equal(found[:2], 0.0)
        else:
            np.testing.assert_array_equal(found[0], 0.0)
            np.testing.assert_allclose(found[1], 1.0, rtol=1e-5)
