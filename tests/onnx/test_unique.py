"""`Unique` against NumPy: all element types, dimensions, orders, and inputs without elements."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright
from tests.onnx.native_nodes import check_native
from tests.onnx.small_models import BATCH, one_node
from tilewright.graph.ir import Array

RNG = np.random.default_rng(12)


def distinct(x: Array, axis: int | None = None, *, ordered: bool = True) -> list[Array]:
    """What NumPy says; in the order of first occurrence if not `ordered`."""
    y, first, inverse, counts = np.unique(x, True, True, True, axis=axis)
    inverse = inverse.reshape(-1)
    if not ordered:
        order = np.argsort(first)
        rank = np.argsort(order)
        first, counts, inverse = first[order], counts[order], rank[inverse]
        y = np.take(y, order, axis=0 if axis is None else axis)
    return [y, first.astype(np.int64), inverse.astype(np.int64), counts.astype(np.int64)]


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i8", "i4", "i1", "u1", "?"])
def test_elements(dtype: str) -> None:
    x = RNG.integers(-4 if dtype[0] in "fi" else 0, 5, (BATCH, 6)).astype(dtype)
    ordered = dtype not in {"f4", "i8"}
    attributes = {"sorted": int(ordered)}
    expected = distinct(x, ordered=ordered)
    check_native("Unique", [x], expected, outputs=4, attributes=attributes)


@pytest.mark.parametrize(("axis", "ordered"), [(0, True), (1, False), (-1, True)])
@pytest.mark.parametrize("shape", [(9, BATCH), (3, 2, 8)])
def test_slices(axis: int, ordered: bool, shape: tuple[int, ...]) -> None:
    """Compared from their first elements on; how long they are may be a symbol."""
    x = RNG.integers(0, 2, shape).astype(np.float32)
    attributes = {"axis": axis, "sorted": int(ordered)}
    expected = distinct(x, axis, ordered=ordered)
    check_native("Unique", [x], expected, outputs=4, attributes=attributes)


def test_many_elements() -> None:
    x = RNG.integers(-(10**12), 10**12, 5000)
    x[1000:3000] = x[:2000]
    check_native("Unique", [x], distinct(x), outputs=4)


def test_what_is_no_number_is_one_element() -> None:
    x = np.array([np.nan, 1, np.nan, -0.0, 0.0, -np.inf], np.float32)
    inverse = [3, 2, 3, 1, 1, 0]
    expected = [np.array([-np.inf, 0, 1, np.nan], np.float32)]
    expected += [np.array(v) for v in ([5, 3, 1, 0], inverse, [1, 2, 1, 2])]
    check_native("Unique", [x], expected, outputs=4)


def test_a_scalar() -> None:
    check_native("Unique", [np.float32(3)], distinct(np.float32(3).reshape(1)), outputs=4)


@pytest.mark.parametrize(
    ("shape", "axis", "slices"), [((0,), None, 0), ((0, 3), 0, 0), ((3, 0), 0, 1), ((3, 0), 1, 0)]
)
@pytest.mark.parametrize("symbolic", [False, True])
def test_nothing(shape: tuple[int, ...], axis: int | None, slices: int, symbolic: bool) -> None:
    """Slices without elements are all equal."""
    given = np.zeros([BATCH if symbolic else d for d in shape], np.float32)
    attributes = {} if axis is None else {"axis": axis}
    model, _ = one_node("Unique", [given], outputs=4, attributes=attributes)
    if symbolic and len(shape) == 2:
        model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "m"
    module = tilewright.compile(model, cache=False, threads=1)
    assert not module.by_reference
    y, first, inverse, counts = module.run({"in0": np.zeros(shape, np.float32)})
    along = axis or 0
    assert y.shape == (*shape[:along], slices, *shape[along + 1 :])
    assert first.tolist() == [0] * slices
    assert inverse.tolist() == [0] * shape[along]
    assert counts.tolist() == [shape[along]] * slices
