"""Core operators on boxes: native code gives what `evaluate` says, for random boxes and images."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

import tilewright
from tests.onnx.lowered import check_lowering, lowered
from tilewright.dtypes import DTYPES, boolean, dtype_of
from tilewright.graph.ir import Array, TensorType
from tilewright.graph.ops.regions import Regions
from tilewright.graph.ops.suppress import Suppress
from tilewright.graph.sizes import as_shape, evaluate_size
from tilewright.tensor import ir as tir

SEEDS = st.integers(0, 2**32 - 1)


def types_of(arrays: list[Array], names: dict[int, tir.Var]) -> list[TensorType]:
    """Types in which dimensions of some sizes have names."""
    shapes = [as_shape(names.get(d, d) for d in a.shape) for a in arrays]
    return [TensorType(dtype_of(a.dtype), s) for a, s in zip(arrays, shapes, strict=True)]


@given(SEEDS, st.integers(1, 80), st.integers(1, 5), st.integers(-1, 20), st.floats(0, 1))
def test_suppress(seed: int, count: int, groups: int, most: int, threshold: float) -> None:
    """Groups of any length; boxes on a grid are equal, touch, or have no area."""
    rng = np.random.default_rng(seed)
    low = rng.integers(0, 6, (2, count)).astype(np.float32)
    high = low + rng.integers(0, 5, (2, count)).astype(np.float32)
    group = np.sort(rng.integers(0, groups, count))
    arrays = [low[0], high[0], low[1], high[1], group]
    arrays += [np.array([most]), np.array([threshold], np.float32)]
    size = tir.Var("n")
    symbolic = count > 1 and bool(rng.integers(2))
    types = types_of(arrays, {count: size} if symbolic else {})
    check_lowering(Suppress(), types, arrays, {size: count})
    (kept,) = Suppress().evaluate(arrays, lambda dim: evaluate_size(dim, {size: count}))
    assert kept.dtype == boolean.numpy
    assert all(kept[group == g].sum() <= max(most, 0) for g in range(groups))


@given(
    SEEDS,
    st.tuples(*[st.integers(1, 4)] * 2),
    st.integers(1, 40),
    st.sampled_from(["f32", "f64", "f16"]),
    st.booleans(),
)
def test_regions(
    seed: int, cells: tuple[int, int], channels: int, dtype: str, greatest: bool
) -> None:
    """Boxes inside and outside, some without an end; numbers of images that do not exist."""
    rng = np.random.default_rng(seed)
    batch, height, width, boxes = (int(n) for n in rng.integers(1, 7, 4))
    x = rng.normal(size=(batch, height, width, channels)).astype(DTYPES[dtype].numpy)
    wide = np.float64 if dtype == "f64" else np.float32
    image = rng.integers(-2, batch + 2, boxes)
    begin = rng.uniform(-4, 8, (boxes, 2)).astype(wide)
    cell = rng.uniform(-1, 3, (boxes, 2)).astype(wide)
    points = rng.integers(-1, 4, (boxes, 2))
    vast = 10.0 ** rng.integers(1, 9, boxes)
    huge = rng.random(boxes) < 0.3  # cells with up to a billion points, most of them outside
    begin[huge] -= (vast / 2)[huge, None] * rng.integers(0, 2, (huge.sum(), 2))
    cell[huge] = vast[huge, None]
    points[huge] = np.ceil(vast)[huge, None]
    begin[rng.random((boxes, 2)) < 0.05] = rng.choice([np.nan, np.inf, -np.inf])
    cell[rng.random((boxes, 2)) < 0.05] = rng.choice([np.nan, np.inf, 0])
    arrays = [x, image, begin, cell, points]
    op = Regions(cells, greatest)
    (wanted,) = op.evaluate(arrays, lambda dim: evaluate_size(dim, {}))
    found = np.zeros_like(wanted)
    kernel = tilewright.build(lowered(op, types_of(arrays, {})), threads=int(rng.integers(1, 3)))
    kernel(*arrays, found)
    close = {"f16": 2e-3, "f32": 1e-4, "f64": 1e-12}[dtype]
    np.testing.assert_allclose(
        found.astype(np.float64), wanted.astype(np.float64), rtol=close, atol=close
    )
