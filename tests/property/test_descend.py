"""Walks through random tables of nodes: native code gives what `evaluate` says."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

from tests.onnx.lowered import check_lowering
from tilewright.dtypes import dtype_of
from tilewright.graph.ir import TensorType
from tilewright.graph.ops.descend import Descend
from tilewright.graph.sizes import as_shape
from tilewright.tensor import ir as tir


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["f4", "f8"]),
    st.one_of(st.none(), st.integers(0, 15)),
    st.integers(1, 200),
    st.sampled_from([1, 2]),
)
def test_descend(seed: int, dtype: str, outcomes: int | None, rows: int, threads: int) -> None:
    rng = np.random.default_rng(seed)
    count, trees, features = rng.integers(1, 30), int(rng.integers(1, 9)), int(rng.integers(1, 6))
    nodes = rng.integers(0, count, (count, 4))
    nodes[:, 0] = rng.integers(0, features, count)
    nodes[:, 3] = rng.integers(0, 16, count) if outcomes is None else outcomes
    limits = rng.integers(-2, 3, count).astype(dtype)
    x = rng.integers(-3, 4, (rows, features)).astype(dtype)
    x[rng.random(x.shape) < 0.2] = np.nan
    levels = sorted(rng.integers(1, trees + 1, rng.integers(0, 6)).tolist(), reverse=True)
    arrays = [x, nodes.astype(np.int32), limits, rng.integers(0, count, trees).astype(np.int32)]
    symbol = tir.Var("n")
    shapes = [(symbol, features), *(a.shape for a in arrays[1:])]
    types = [
        TensorType(dtype_of(a.dtype), as_shape(s)) for a, s in zip(arrays, shapes, strict=True)
    ]
    op = Descend(tuple(levels), features, outcomes)
    check_lowering(op, types, arrays, {symbol: rows}, threads)
