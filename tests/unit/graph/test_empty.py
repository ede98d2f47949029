"""Core operators on tensors without elements: their meaning is defined, whatever the shape."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.graph.ir import Array
from tilewright.graph.ops import Concat, Expand, Gather, Op, Remap, Reshape, Transpose, axis, picked
from tilewright.graph.ops.compact import Compact
from tilewright.graph.ops.scatter import Scatter
from tilewright.graph.ops.sort import Order
from tilewright.graph.sizes import as_shape, evaluate_size
from tilewright.tensor import ir as tir

ROWS = ((1, (axis(0),)),)
NOTHING = np.zeros((0, 4), np.float32)
SOME = np.ones((3, 4), np.float32)
NOWHERE = np.zeros(0, np.int64)

CASES: dict[str, tuple[Op, list[Array], tuple[int, ...]]] = {
    "transpose": (Transpose((1, 0)), [NOTHING], (4, 0)),
    "reshape": (Reshape(as_shape((2, 0))), [NOTHING], (2, 0)),
    "expand": (Expand(as_shape((0, 4))), [SOME[:1]], (0, 4)),
    "remap to nothing": (Remap(as_shape((0, 4)), (axis(0), axis(1))), [SOME], (0, 4)),
    "remap of nothing": (
        Remap(as_shape((2, 4)), (axis(0), axis(1)), axis(0) < 0),
        [NOTHING],
        (2, 4),
    ),
    "concat": (Concat(0), [NOTHING, SOME], (3, 4)),
    "gather nothing": (
        Gather(as_shape((0, 4)), ROWS, (picked(0), axis(1))),
        [SOME, NOWHERE],
        (0, 4),
    ),
    "scatter nothing": (
        Scatter(((2, (axis(0),)),), (picked(0), axis(1))),
        [SOME, NOTHING, NOWHERE],
        (3, 4),
    ),
    "order of no rows": (Order(tir.Const(2)), [NOTHING], (0, 2)),
    "order of no elements": (Order(tir.Const(0)), [NOTHING.T], (4, 0)),
    "compact": (Compact(tir.Var("found")), [np.zeros(5, np.bool_), np.zeros(1, np.int64)], (0,)),
}


@pytest.mark.parametrize("name", CASES)
def test_without_elements(name: str) -> None:
    op, arrays, shape = CASES[name]
    (result,) = op.evaluate(arrays, lambda dim: evaluate_size(dim, {}))
    assert result.shape == shape
    if op.name not in ("order", "compact"):
        assert result.dtype == arrays[0].dtype
