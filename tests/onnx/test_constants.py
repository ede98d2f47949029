"""Constants, and tensors that follow from sizes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright
from tests.expect import raises_code
from tests.onnx.lowered import check_lowering
from tests.onnx.small_models import BATCH, check, check_node, make_model, one_node, run
from tilewright.dtypes import f32, i64
from tilewright.graph.ir import TensorType
from tilewright.graph.ops import Tabulate, axis
from tilewright.graph.ops.count import Count
from tilewright.tensor import ir as tir


@pytest.mark.parametrize(
    ("form", "value", "expected"),
    [
        ("value_int", 3, np.int64(3)),
        ("value_ints", [3, 4], np.array([3, 4])),
        ("value_float", 1.5, np.float32(1.5)),
        ("value_floats", [1.5, 2.5], np.array([1.5, 2.5], np.float32)),
        ("value", numpy_helper.from_array(np.ones((2, 2), np.int8)), np.ones((2, 2), np.int8)),
    ],
)
def test_forms_of_constants(form: str, value: object, expected: np.ndarray) -> None:
    check_node("Constant", [], expected=[np.asarray(expected)], attributes={form: value})


def test_constant_of_shape() -> None:
    value = numpy_helper.from_array(np.array([7], np.int32))
    expected = np.full((2, 3), 7, np.int32)
    attributes = {"value": value}
    check_node("ConstantOfShape", [[2, 3]], known=[0], expected=[expected], attributes=attributes)
    check_node("ConstantOfShape", [[2]], known=[0], expected=[np.zeros(2, np.float32)])


def test_constant_of_a_shape_that_follows_from_sizes(rng: np.random.Generator) -> None:
    feeds = {"x": rng.normal(0, 1, (BATCH, 3)).astype("f4")}
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("ConstantOfShape", ["s"], ["y"]),
    ]
    check(make_model(nodes, feeds), feeds)


@pytest.mark.parametrize("shift", [-1, 0, 2])
def test_eye_like(shift: int) -> None:
    x = np.zeros((BATCH, 4), np.int32)
    for dtype in (TensorProto.FLOAT, TensorProto.BOOL):
        attributes = {"k": shift, "dtype": dtype}
        check_node("EyeLike", [x], attributes=attributes, compiled=dtype == TensorProto.FLOAT)
    check_node("EyeLike", [x], attributes={"k": shift})


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8"])
@pytest.mark.parametrize("parts", [(0, 5, 1), (2, 12, 3), (10, 3, -2), (5, 5, 1), (5, 2, 1)])
def test_range_of_constants(dtype: str, parts: tuple[int, int, int]) -> None:
    inputs = [np.asarray(p, dtype) for p in parts]
    check_node("Range", inputs, known=[0, 1, 2], expected=[np.arange(*parts, dtype=dtype)])


@pytest.mark.parametrize(("first", "step"), [(0, 1), (2, 3), (-4, 1)])
def test_range_up_to_a_size(first: int, step: int) -> None:
    x = np.zeros(BATCH, np.float32)
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Squeeze", ["s"], ["limit"]),
        helper.make_node("Range", ["first", "limit", "step"], ["y"]),
    ]
    constants = {"first": np.int64(first), "step": np.int64(step)}
    model = make_model(nodes, {"x": x}, constants)
    for size in (1, 2, 5, 8):
        feeds = {"x": np.zeros(size, np.float32)}
        assert run(model, feeds)[2].tolist() == list(range(first, size, step))


def test_range_back_from_a_size() -> None:
    x = np.zeros(BATCH, np.float32)
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Squeeze", ["s"], ["first"]),
        helper.make_node("Range", ["first", "limit", "step"], ["y"]),
    ]
    model = make_model(nodes, {"x": x}, {"limit": np.int64(0), "step": np.int64(-2)})
    for size in (1, 4, 7):
        feeds = {"x": np.zeros(size, np.float32)}
        assert run(model, feeds)[2].tolist() == list(range(size, 0, -2))


@pytest.mark.parametrize("dtype", ["i4", "i8", "f4", "f2"])
def test_range_of_data(dtype: str) -> None:
    """The length is known when the model runs."""
    for parts in ((2, 9, 3), (0, 0, 1), (9, 2, -3), (5, 2, 1)):
        model, feeds = one_node("Range", [np.asarray(v, dtype) for v in parts])
        (found,) = run(model, feeds)
        assert found.dtype == dtype
        assert found.tolist() == list(range(*parts))


@pytest.mark.parametrize("shape", [(3,), (2, 4), (2, 1, 3), (0, 2)], ids=str)
def test_constant_of_a_shape_that_is_data(shape: tuple[int, ...]) -> None:
    value = numpy_helper.from_array(np.array([7], np.int32))
    expected = [np.full(shape, 7, np.int32)]
    dims, attributes = np.array(shape, np.int64), {"value": value}
    check_node("ConstantOfShape", [dims], expected=expected, attributes=attributes)


def test_tabulate_as_native_code() -> None:
    shape = (tir.Const(3), tir.Const(20))
    check_lowering(Tabulate(shape, (axis(0) * 100 + axis(1)).to(f32), f32), [], [])


def test_count_as_native_code() -> None:
    size = tir.Var("length")
    given = [TensorType(i64, (tir.Const(1),))]
    check_lowering(Count(size), given, [np.array([20])], {size: 20})


@pytest.mark.parametrize("known", [(), (2,), (0, 1, 2)])
@pytest.mark.parametrize("dtype", ["i2", "i4", "i8"])
def test_range_over_all_numbers(dtype: str, known: tuple[int, ...]) -> None:
    """Its ends are further apart than the greatest number of the type."""
    low, high = (int(v) for v in (np.iinfo(dtype).min, np.iinfo(dtype).max))
    step = -(low // 2)
    for parts in [
        (low, high, step),
        (high, low, -step),
        (low, high, -step),
        (high, low, step),
        (step, low, low),
        (low, low, 1),
        (3, 20, 4),
        (20, 3, -4),
    ]:
        model, feeds = one_node("Range", [np.asarray(v, dtype) for v in parts], known=known)
        (y,) = tilewright.compile(model, cache=False, threads=1).run(feeds)
        assert y.tolist() == list(range(*parts)), parts


def test_a_range_without_a_step_ends_in_an_error() -> None:
    model, feeds = one_node("Range", [np.asarray(v) for v in (1, 5, 0)])
    with raises_code("C025", text="`length` comes out as -1"):
        tilewright.compile(model, cache=False).run(feeds)


def sparse(values: np.ndarray, places: np.ndarray, dims: list[int]) -> onnx.SparseTensorProto:
    return helper.make_sparse_tensor(
        numpy_helper.from_array(values, "s"), numpy_helper.from_array(places), dims
    )


SPARSE = [
    (np.array([1, 2], "f4"), np.array([0, 3]), [2, 2], [[1, 0], [0, 2]]),
    (np.array([1, 2], "i4"), np.array([[0, 1], [1, 2]]), [2, 3], [[0, 1, 0], [0, 0, 2]]),
    (np.zeros(0, "f4"), np.zeros(0, "i8"), [0, 2], np.zeros((0, 2))),
]


def sparse_weights(tensor: onnx.SparseTensorProto) -> onnx.ModelProto:
    model = make_model([helper.make_node("Identity", ["s"], ["y"])], {})
    model.graph.sparse_initializer.append(tensor)
    return model


def sparse_constant(tensor: onnx.SparseTensorProto) -> onnx.ModelProto:
    return make_model([helper.make_node("Constant", [], ["y"], sparse_value=tensor)], {})


@pytest.mark.parametrize("make", [sparse_weights, sparse_constant])
@pytest.mark.parametrize(("values", "places", "dims", "expected"), SPARSE)
def test_sparse_tensors_become_dense(make, values, places, dims, expected) -> None:
    model = make(sparse(values, places, dims))
    module = tilewright.compile(model, cache=False)
    (found,) = module.run({})
    assert module.by_reference == ()
    assert (found.dtype, found.tolist()) == (
        values.dtype,
        np.asarray(expected, values.dtype).tolist(),
    )


def test_sparse_tensors_are_dense_by_reference() -> None:
    """A sequence of texts keeps the whole model from being compiled."""
    tensor = sparse(np.array([1, 2], "f4"), np.array([0, 3]), [2, 2])
    model = sparse_weights(tensor)
    nodes = [
        helper.make_node("Constant", [], ["c"], sparse_value=tensor),
        helper.make_node("Add", ["y", "c"], ["z"]),
        helper.make_node("StringNormalizer", ["texts"], ["upper"], case_change_action="UPPER"),
    ]
    model.graph.node.extend(nodes)
    model.graph.input.append(helper.make_tensor_value_info("texts", TensorProto.STRING, ["n"]))
    model.graph.output.extend(
        [
            helper.make_tensor_value_info("z", TensorProto.FLOAT, [2, 2]),
            helper.make_tensor_value_info("upper", TensorProto.STRING, ["n"]),
        ]
    )
    with pytest.warns(tilewright.TilewrightWarning):
        module = tilewright.compile(model, cache=False)
    y, z, upper = module.run({"texts": np.array(["one", "b"], object)})
    assert (y.tolist(), z.tolist()) == ([[1, 0], [0, 2]], [[2, 0], [0, 4]])
    assert (upper.dtype, upper.tolist()) == (object, ["ONE", "B"])


@pytest.mark.parametrize("make", [sparse_weights, sparse_constant])
def test_a_few_bytes_cannot_stand_for_gigabytes(make) -> None:
    with raises_code("M004", text="sparse"):
        tilewright.compile(make(sparse(np.ones(1, "f4"), np.array([0]), [1 << 28])), cache=False)
