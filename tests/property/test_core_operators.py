"""Core operators that move, gather, scatter and order: native code gives what `evaluate` says.

Shapes, element types, places and threads are random; dimensions are numbers or symbols.
"""

from __future__ import annotations

from dataclasses import dataclass

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

from tests.onnx.lowered import check_lowering
from tilewright.dtypes import DTYPES, DType, boolean, dtype_of, f32, i32, i64
from tilewright.graph.ir import Array, Shape, TensorType
from tilewright.graph.ops import Concat, Expand, Gather, Op, Remap, Reshape, Transpose, axis, picked
from tilewright.graph.ops.compact import Compact
from tilewright.graph.ops.scatter import Scatter
from tilewright.graph.ops.sort import Order
from tilewright.tensor import ir as tir

WIDE = [DTYPES[name] for name in ("f32", "f64", "f16", "bf16", "i8", "i32", "i64", "bool")]
MOVED = [
    *WIDE,
    *(DTYPES[name] for name in ("f8e4m3fn", "f8e5m2fnuz", "f8e8m0", "f4e2m1", "i4", "u2")),
]
SORTED = [*WIDE, *(DTYPES[name] for name in ("i16", "u8", "u16", "u32", "u64"))]
FOLDS = [None, *tir.Fold]
SYMBOLS = [tir.Var(name) for name in "abcd"]


@dataclass
class Case:
    """Draws arrays whose dimensions are numbers or symbols, and remembers what symbols are."""

    data: st.DataObject

    def __post_init__(self) -> None:
        self.sizes: dict[tir.Var, int] = {}
        self.rng = np.random.default_rng(self.draw(st.integers(0, 2**32 - 1)))

    def draw(self, strategy: st.SearchStrategy) -> object:
        return self.data.draw(strategy)

    def dim(self, most: int = 20) -> tir.Expr:
        """A number, or a symbol that stands for one."""
        extent = self.draw(st.integers(1, most))
        free = [v for v in SYMBOLS if v not in self.sizes]
        if not free or self.draw(st.booleans()):
            return tir.Const(extent)
        self.sizes[free[0]] = extent
        return free[0]

    def dims(self, least: int, most: int) -> Shape:
        return tuple(self.dim() for _ in range(self.draw(st.integers(least, most))))

    def shape(self, dims: Shape) -> tuple[int, ...]:
        return tuple(self.sizes.get(d) or tir.int_value(d) for d in dims)

    def array(self, dims: Shape, dtype: DType) -> Array:
        values = self.rng.normal(0, 3, self.shape(dims))
        if dtype.is_integer:
            values = np.abs(values) if dtype.name.startswith("u") else values
        if dtype.is_bool:
            return values > 0
        return values.astype(np.int64 if dtype.is_integer else np.float64).astype(dtype.numpy)

    def places(self, dims: Shape, limit: int, dtype: DType = i64) -> Array:
        """Indices; some count from the end, a few are outside."""
        return self.rng.integers(-limit - 2, limit + 2, self.shape(dims)).astype(dtype.numpy)

    def check(self, op: Op, dims: list[Shape], arrays: list[Array]) -> None:
        types = [TensorType(dtype_of(a.dtype), d) for d, a in zip(dims, arrays, strict=True)]
        check_lowering(op, types, arrays, self.sizes, threads=self.draw(st.sampled_from([1, 2])))


DATA = st.data()


@given(DATA, st.sampled_from(MOVED))
def test_transpose(data: st.DataObject, dtype: DType) -> None:
    case = Case(data)
    dims = case.dims(1, 4)
    order = tuple(case.draw(st.permutations(range(len(dims)))))
    case.check(Transpose(order), [dims], [case.array(dims, dtype)])


@given(DATA, st.sampled_from(MOVED))
def test_reshape(data: st.DataObject, dtype: DType) -> None:
    case = Case(data)
    a, b, c = (case.dim(8) for _ in range(3))
    one = tir.Const(1)
    before = (a, b, c)
    after = case.draw(st.sampled_from([(a, one, b, c), (a, b, c, one), (one, a, b, c)]))
    case.check(Reshape(after), [before], [case.array(before, dtype)])
    case.check(Reshape(before), [after], [case.array(after, dtype)])


@given(DATA, st.sampled_from(MOVED))
def test_expand(data: st.DataObject, dtype: DType) -> None:
    case = Case(data)
    wide = case.dims(1, 4)
    kept = case.draw(st.integers(0, len(wide)))
    narrow = tuple(tir.Const(1) if case.draw(st.booleans()) else d for d in wide[kept:])
    case.check(Expand(wide), [narrow], [case.array(narrow, dtype)])


@given(DATA, st.sampled_from(MOVED))
def test_concat(data: st.DataObject, dtype: DType) -> None:
    case = Case(data)
    dims = case.dims(1, 3)
    along = case.draw(st.integers(0, len(dims) - 1))
    parts = []
    for _ in range(case.draw(st.integers(1, 3))):
        length = tir.Const(case.draw(st.integers(1, 20)))
        parts.append((*dims[:along], length, *dims[along + 1 :]))
    case.check(Concat(along), parts, [case.array(p, dtype) for p in parts])


@given(DATA, st.sampled_from(MOVED))
def test_remap_with_a_border(data: st.DataObject, dtype: DType) -> None:
    """Shifted, with a step, inside of a border."""
    case = Case(data)
    dims = tuple(tir.Const(case.draw(st.integers(1, 20))) for _ in range(2))
    shape = tuple(tir.Const(case.draw(st.integers(1, 24))) for _ in range(2))
    inside: tir.Expr = tir.TRUE
    places = []
    for k, dim in enumerate(dims):
        step, start = case.draw(st.sampled_from([1, 1, 2, -1])), case.draw(st.integers(-3, 3))
        place = axis(k) * step + start
        places.append(place)
        inside = inside & (place >= 0) & (place < dim)
    op = Remap(shape, tuple(places), inside, fill=1)
    case.check(op, [dims], [case.array(dims, dtype)])


@given(DATA, st.sampled_from(MOVED), st.sampled_from([i32, i64]))
def test_gather_of_slices(data: st.DataObject, dtype: DType, kind: DType) -> None:
    case = Case(data)
    dims, index_dims = case.dims(1, 3), case.dims(0, 2)
    along = case.draw(st.integers(0, len(dims) - 1))
    shape = (*dims[:along], *index_dims, *dims[along + 1 :])
    o = tuple(map(axis, range(len(shape))))
    behind = along + len(index_dims)
    op = Gather(shape, ((1, o[along:behind]),), (*o[:along], picked(0), *o[behind:]))
    places = case.places(index_dims, case.shape(dims)[along], kind)
    case.check(op, [dims, index_dims], [case.array(dims, dtype), places])


@given(DATA, st.sampled_from(MOVED))
def test_gather_of_elements(data: st.DataObject, dtype: DType) -> None:
    case = Case(data)
    dims = case.dims(1, 3)
    along = case.draw(st.integers(0, len(dims) - 1))
    index_dims = (*dims[:along], case.dim(), *dims[along + 1 :])
    o = tuple(map(axis, range(len(dims))))
    op = Gather(index_dims, ((1, o),), (*o[:along], picked(0), *o[along + 1 :]))
    places = case.places(index_dims, case.shape(dims)[along])
    case.check(op, [dims, index_dims], [case.array(dims, dtype), places])


@given(DATA, st.sampled_from(FOLDS), st.sampled_from(["f32", "i32", "i64", "f64"]))
def test_scatter_of_slices(data: st.DataObject, fold: tir.Fold | None, name: str) -> None:
    """Many updates of few elements: their order counts."""
    case = Case(data)
    dims = (case.dim(5), case.dim(40))
    count = case.dim(30)
    updates = (count, dims[1])
    op = Scatter(((2, (axis(0),)),), (picked(0), axis(1)), fold)
    places = case.places((count,), case.shape(dims)[0])
    arrays = [case.array(dims, DTYPES[name]), case.array(updates, DTYPES[name]), places]
    case.check(op, [dims, updates, (count,)], arrays)


@given(DATA, st.sampled_from(FOLDS))
def test_scatter_of_elements(data: st.DataObject, fold: tir.Fold | None) -> None:
    case = Case(data)
    dims = (case.dim(6), case.dim(6))
    along = case.draw(st.integers(0, 1))
    updates = (*dims[:along], case.dim(9), *dims[along + 1 :])
    o = (axis(0), axis(1))
    op = Scatter(((2, o),), (*o[:along], picked(0), *o[along + 1 :]), fold)
    places = case.places(updates, case.shape(dims)[along])
    case.check(
        op, [dims, updates, updates], [case.array(dims, f32), case.array(updates, f32), places]
    )


@given(DATA, st.sampled_from(SORTED), st.booleans())
def test_order(data: st.DataObject, dtype: DType, descending: bool) -> None:
    case = Case(data)
    dims = (*case.dims(0, 2), case.dim(60))
    x = case.array(dims, dtype)
    if dtype.is_float:
        special = case.rng.random(x.shape)
        for bound, value in ((0.05, np.nan), (0.1, -0.0), (0.15, 0.0), (0.2, np.inf)):
            x[(special < bound) & (special >= bound - 0.05)] = value
    length = tir.Const(case.draw(st.integers(1, x.shape[-1])))
    case.check(Order(length, descending), [dims], [x])


@given(DATA)
def test_compact(data: st.DataObject) -> None:
    case = Case(data)
    dims = (case.dim(90),)
    chosen = case.array(dims, boolean)
    chosen[0] = True  # a kernel is not called for a result without elements
    found = tir.Var("found")
    case.sizes[found] = int(chosen.sum())
    case.check(Compact(found), [dims, (tir.Const(1),)], [chosen, np.array([chosen.sum()])])
