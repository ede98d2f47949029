"""Operators that order elements or choose them by their values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tilewright.dtypes import boolean, i64
from tilewright.frontend.onnx.indexing import known_scalar
from tilewright.frontend.onnx.node import OnnxNode, normal_axis
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.frontend.onnx.taking import take, take_along
from tilewright.graph import Builder, Value
from tilewright.graph.ops.compact import Compact
from tilewright.graph.ops.sort import Order
from tilewright.graph.sizes import product
from tilewright.tensor import ir as tir

__all__: list[str] = []


@onnx_op("TopK")
def top_k(b: Builder, node: OnnxNode, x: Value, k: Value | None = None) -> Sequence[Value]:
    """The greatest or least elements along a dimension, in order, and their places."""
    length = tir.Const(node.int("k")) if k is None else known_scalar(b, node, "k", k)
    along = normal_axis(node.int("axis", -1), x.rank)
    order = Order(length, bool(node.int("largest", 1)))
    before, after = x.shape[:along], x.shape[along + 1 :]
    if x.rank <= MAX_DIMS:
        return _sorted(b, order, x, along)
    flat = b.reshape(x, (product(before), x.shape[along], product(after)))
    return [b.reshape(v, (*before, length, *after)) for v in _sorted(b, order, flat, 1)]


MAX_DIMS: Final = 8
"""Dimensions that are sorted as they are; of more, those before and behind become one each."""


def _sorted(b: Builder, op: Order, x: Value, along: int) -> tuple[Value, Value]:
    order = [d for d in range(x.rank) if d != along] + [along]
    back = [order.index(d) for d in range(x.rank)]
    places = b.transpose(b.add(op, b.transpose(x, order)), back)
    return take_along(b, x, places, along), places


@onnx_op("NonZero")
def non_zero(b: Builder, node: OnnxNode, x: Value) -> Value:
    """A column of indices for each element that is not zero."""
    if not x.rank:
        node.decline("a scalar")
    flat = chosen_places(b, b.reshape(x, (product(x.shape),)))
    column = (x.rank, 1)
    strides = b.sizes([product(x.shape[k + 1 :]) for k in range(x.rank)])
    dims = b.reshape(b.sizes(x.shape), column)
    return b.map(lambda p, s, d: p // s % d, flat, b.reshape(strides, column), dims)


@onnx_op("Compress")
def compress(b: Builder, node: OnnxNode, x: Value, condition: Value) -> Value:
    """The slices of a dimension for which a condition holds."""
    if not node.has("axis"):
        x = b.reshape(x, (product(x.shape),))
    along = normal_axis(node.int("axis"), x.rank)
    return take(b, x, chosen_places(b, condition), along)


def chosen_places(b: Builder, x: Value) -> Value:
    """The places of the elements of a vector that are not zero; their number is a new size."""
    chosen = x if x.dtype.is_bool else b.map(lambda v: v.ne(0), x, dtype=boolean)
    ones = b.map(lambda v: v.to(i64), chosen, dtype=i64)
    number = b.reduce(tir.Fold.ADD, ones, [0])
    return b.add(Compact(tir.Var("found")), chosen, number)
