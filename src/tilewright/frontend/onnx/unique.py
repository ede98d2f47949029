"""`Unique`: different elements, or different slices along a dimension, and where they are.

Sorting brings equal ones together; the first one of each run stands for it. How many there are
only data tells.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.dtypes import boolean, i64
from tilewright.frontend.onnx.movement import cut
from tilewright.frontend.onnx.node import OnnxNode, normal_axis
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.frontend.onnx.sorting import chosen_places
from tilewright.frontend.onnx.taking import take
from tilewright.graph import Builder, Value
from tilewright.graph.loops import Outside, Turn, loop
from tilewright.graph.ops import Cumulate, axis, picked
from tilewright.graph.ops.scatter import Scatter
from tilewright.graph.ops.sort import Order
from tilewright.graph.sizes import fixed, product
from tilewright.tensor import ir as tir

__all__: list[str] = []


@onnx_op("Unique")
def unique(b: Builder, node: OnnxNode, x: Value) -> Sequence[Value]:
    """Elements, where each is first, which one each element of the input is, and how often."""
    if not node.has("axis"):
        x = b.reshape(x, (product(x.shape),))
    along = normal_axis(node.int("axis"), x.rank)
    others = [d for d in range(x.rank) if d != along]
    count, width = x.shape[along], product([x.shape[d] for d in others])
    if fixed(count) == 0 or fixed(width) == 0:
        return _of_nothing(b, node, x, along)[: node.output_count]
    rows = b.reshape(b.transpose(x, [along, *others]), (count, width))
    order = _sorted(b, rows, count, width)
    leads = _leads(b, take(b, rows, order, 0))
    starts = chosen_places(b, leads)
    first = take(b, order, starts, 0)
    number = b.add(Cumulate(tir.Fold.ADD, 0), b.map(lambda v: v.to(i64), leads, dtype=i64))
    inverse = _placed(b, b.map(lambda v: v - 1, number), order)
    counts = _lengths(b, starts, count)
    if not node.int("sorted", 1):
        later = b.add(Order(first.shape[0]), first)
        rank = _placed(b, b.tabulate(first.shape, lambda i: i), later)
        first, counts = take(b, first, later, 0), take(b, counts, later, 0)
        inverse = take(b, rank, inverse, 0)
    return [take(b, x, first, along), first, inverse, counts][: node.output_count]


def _of_nothing(b: Builder, node: OnnxNode, x: Value, along: int) -> list[Value]:
    """The results if there is no slice, or if slices have no elements and are all equal."""
    count = fixed(x.shape[along])
    if count is None:
        node.decline("an unknown number of slices without elements")
    several = min(count, 1)
    first = b.constant(np.zeros(several, np.int64), "first")
    inverse = b.constant(np.zeros(count, np.int64), "inverse")
    counts = b.constant(np.full(several, count, np.int64), "counts")
    return [cut(b, x, along, tir.Const(0), tir.Const(several)), first, inverse, counts]


def _sorted(b: Builder, rows: Value, count: tir.Expr, width: tir.Expr) -> Value:
    """The order of rows by their first elements, then by their second ones, …

    Sorting keeps the order of equal elements, so columns are sorted from the last to the first.
    """

    def turn(inner: Builder, step: Value, carried: Sequence[Value], outside: Outside) -> Turn:
        (order,) = carried
        column = inner.map(lambda s: width - 1 - s, step)
        keys = inner.reshape(take(inner, outside(rows), column, 1), (count,))
        moved = inner.add(Order(count), take(inner, keys, order, 0))
        return Turn([take(inner, order, moved, 0)])

    if fixed(width) == 1:
        return b.add(Order(count), b.reshape(rows, (count,)))
    start = b.tabulate((count,), lambda i: i)
    return loop(b, turn, b.reshape(b.sizes([width]), ()), [start])[0]


def _leads(b: Builder, rows: Value) -> Value:
    """Which rows of a sorted list differ from the one before; NaN equals NaN."""
    count = rows.shape[0]
    before = b.remap(rows, rows.shape, lambda i, j: (tir.maximum(i - 1, 0), j))

    def differs(v: tir.Expr, w: tir.Expr) -> tir.Expr:
        different = v.ne(w)
        return different & (v.eq(v) | w.eq(w)) if v.dtype.is_float else different

    some = b.reduce(tir.Fold.MAX, b.map(differs, rows, before, dtype=boolean), [1], keepdims=False)
    here = b.tabulate((count,), lambda i: i)
    return b.map(lambda d, i: d | i.eq(0), some, here, dtype=boolean)


def _placed(b: Builder, values: Value, places: Value) -> Value:
    """`out[places[i]] = values[i]`."""
    zeros = b.expand(b.constant(0, "zero", values.dtype), places.shape)
    return b.add(Scatter(((2, (axis(0),)),), (picked(0),)), zeros, values, places)


def _lengths(b: Builder, starts: Value, count: tir.Expr) -> Value:
    """How long each stretch is that begins at `starts`; the last one ends at `count`."""
    length = starts.shape[0]
    after = b.remap(
        starts, starts.shape, lambda i: (i + 1,), inside=lambda i: i + 1 < length, fill=-1
    )
    return b.map(lambda s, e: tir.Select(e < 0, tir.as_index(count), e) - s, starts, after)
