"""Folds over dimensions. Narrow floats are folded in f32 and rounded once at the end."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from tilewright.dtypes import boolean, f64, i64
from tilewright.frontend.onnx.arithmetic import divided, quotient
from tilewright.frontend.onnx.conversions import converted
from tilewright.frontend.onnx.node import OnnxNode, normal_axis, normal_border
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.graph import Builder, Value
from tilewright.graph.guards import decided
from tilewright.graph.ops import ArgReduce, Cumulate, computed_as
from tilewright.graph.sizes import fixed, product
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call, select

__all__ = ["log_sum_exp", "mean", "widened"]


def widened(b: Builder, x: Value) -> Value:
    """The values in the type in which they are computed."""
    return converted(b, x, computed_as(x.dtype))


def mean(b: Builder, x: Value, axes: Sequence[int]) -> Value:
    """The mean over dimensions, which stay as ones; that of nothing is NaN."""
    total = b.reduce(tir.Fold.ADD, x, axes)
    length = product(x.shape[d] for d in axes)
    number = fixed(length)
    if not x.dtype.is_float:
        return b.map(lambda v: quotient(v, length.to(v.dtype)), total)
    if number is None:
        return b.map(lambda v: v / length.to(v.dtype), total)
    return b.map(lambda v: divided(v, number) if number else v * math.nan, total)


def log_sum_exp(b: Builder, x: Value, axes: Sequence[int]) -> Value:
    """The logarithm of Σ eˣ, with the greatest term taken out unless it is infinite."""
    top = b.reduce(tir.Fold.MAX, x, axes)
    top = b.map(lambda v: select(call("abs", v).eq(math.inf), 0, v), top)
    total = b.reduce(tir.Fold.ADD, b.map(lambda v, m: call("exp", v - m), x, top), axes)
    return b.map(lambda v, m: call("log", v) + m, total, top)


def _folded(fold: tir.Fold) -> Callable[[Builder, Value, Sequence[int]], Value]:
    return lambda b, x, axes: b.reduce(fold, x, axes)


def _sum_of(
    body: Callable[[tir.Expr], tir.Expr],
) -> Callable[[Builder, Value, Sequence[int]], Value]:
    return lambda b, x, axes: b.reduce(tir.Fold.ADD, b.map(body, x), axes)


def _sum_then(
    total: Callable[[Builder, Value, Sequence[int]], Value], name: str
) -> Callable[[Builder, Value, Sequence[int]], Value]:
    return lambda b, x, axes: b.map(lambda v: call(name, v), total(b, x, axes))


_square_sum = _sum_of(lambda v: v * v)

REDUCTIONS: Final[dict[str, Callable[[Builder, Value, Sequence[int]], Value]]] = {
    "ReduceSum": _folded(tir.Fold.ADD),
    "ReduceProd": _folded(tir.Fold.MUL),
    "ReduceMax": _folded(tir.Fold.MAX),
    "ReduceMin": _folded(tir.Fold.MIN),
    "ReduceMean": mean,
    "ReduceL1": _sum_of(lambda v: call("abs", v)),
    "ReduceL2": _sum_then(_square_sum, "sqrt"),
    "ReduceSumSquare": _square_sum,
    "ReduceLogSum": _sum_then(_folded(tir.Fold.ADD), "log"),
    "ReduceLogSumExp": log_sum_exp,
}

INEXACT: Final = frozenset({"ReduceL2", "ReduceLogSum", "ReduceLogSumExp"})
"""Folds that are f64 inside where elements are integers: sums may be larger than these."""


@onnx_op(*REDUCTIONS)
def reduction(b: Builder, node: OnnxNode, x: Value, axes: Value | None = None) -> Value:
    """A fold over the axes of an attribute or an input; over all of them if none are named."""
    named = node.ints("axes")
    if axes is not None:
        named = decided(b, b.integers(axes), "axes")
        if named is None and fixed(axes.shape[0]) != 0:
            node.decline("the axes depend on data")
    if not named and node.int("noop_with_empty_axes"):
        return _without_axes(b, node, x)
    over = sorted({normal_axis(a, x.rank) for a in named or range(x.rank)})
    return _reduced(b, node, x, over)


def _reduced(b: Builder, node: OnnxNode, x: Value, over: Sequence[int]) -> Value:
    wide = widened(b, x)
    if node.op in INEXACT and not x.dtype.is_float:
        wide = converted(b, x, f64)
    folded = converted(b, REDUCTIONS[node.op](b, wide, over), x.dtype)
    if node.int("keepdims", 1) or not over:
        return folded
    return b.reshape(folded, [d for k, d in enumerate(x.shape) if k not in over])


def _without_axes(b: Builder, node: OnnxNode, x: Value) -> Value:
    """Nothing is folded, but what is done to each element still is."""
    return _reduced(b, node, x, ())


@onnx_op("ArgMax", "ArgMin")
def arg_extreme(b: Builder, node: OnnxNode, x: Value) -> Value:
    """Where the extreme is; the first one, or the last."""
    if not x.rank:  # as NumPy has it: a scalar has one place
        return b.constant(0, "place", i64)
    where = normal_axis(node.int("axis"), x.rank)
    fold = tir.Fold.MAX if node.op == "ArgMax" else tir.Fold.MIN
    place = b.add(ArgReduce(fold, where, bool(node.int("select_last_index"))), x)
    if node.int("keepdims", 1):
        return place
    return b.reshape(place, [d for k, d in enumerate(x.shape) if k != where])


@onnx_op("Hardmax")
def hardmax(b: Builder, node: OnnxNode, x: Value) -> Value:
    """One where the first greatest element is, else zero."""
    if node.opset >= 13:
        flat, where = x, normal_axis(node.int("axis", -1), x.rank)
    else:
        border = normal_border(node.int("axis", 1), x.rank)
        flat, where = b.reshape(x, (product(x.shape[:border]), product(x.shape[border:]))), 1
    place = b.add(ArgReduce(tir.Fold.MAX, where), flat)
    length = flat.shape[where]
    numbers = b.tabulate((length,), lambda i: i)
    along = b.reshape(numbers, [length if k == where else 1 for k in range(flat.rank)])
    hit = b.map(lambda i, p: i.eq(p), along, place)
    assert hit.dtype == boolean
    return b.reshape(converted(b, hit, x.dtype), x.shape)


@onnx_op("CumSum", "CumProd")
def cumulative(b: Builder, node: OnnxNode, x: Value, axis: Value) -> Value:
    """Running sums or products."""
    named = decided(b, b.integers(axis), "axis")
    if named is None:
        node.decline("the axis depends on data")
    fold = tir.Fold.ADD if node.op == "CumSum" else tir.Fold.MUL
    exclusive, reverse = bool(node.int("exclusive")), bool(node.int("reverse"))
    along = normal_axis(named[0], x.rank)
    if fixed(x.shape[along]) == 0:
        return x  # lines without an element have no first one
    return b.add(Cumulate(fold, along, exclusive, reverse), x)
