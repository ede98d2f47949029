"""`GridSample`: an image at places that a tensor of coordinates says; `AffineGrid` makes these."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from itertools import product
from math import prod
from typing import Final

from tilewright.dtypes import boolean, f32, f64, i64
from tilewright.frontend.onnx.conversions import converted
from tilewright.frontend.onnx.coordinates import cubic_weight, linear_weight
from tilewright.frontend.onnx.movement import cut
from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.reductions import widened
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.graph import Builder, Value
from tilewright.graph.ops import axis, picked
from tilewright.graph.ops.gather import Gather
from tilewright.graph.sizes import fixed
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call, select

__all__: list[str] = []

MODES = {"bilinear": "linear", "bicubic": "cubic"}
"""Names of modes before opset 20."""

MAX_TAPS: Final = 64
"""Elements that one of a result is a mean of: those of a cubic in three dimensions. With thirty
dimensions there would be 2³⁰, each of which is a node."""

Tap = tuple[Value, Value]
"""Along one dimension: where the source is read (i64), and with which weight (f32)."""


@onnx_op("GridSample")
def grid_sample(b: Builder, node: OnnxNode, x: Value, grid: Value) -> Value:
    """Nearest or interpolated elements; outside there are zeros, the border or a mirror image."""
    mode = node.string("mode", "linear")
    mode = MODES.get(mode, mode)
    rank = x.rank - 2
    taps = [_taps(b, node, grid, k, x.shape[2 + k], rank, mode) for k in range(rank)]
    count = prod(map(len, taps))
    if count > MAX_TAPS:
        node.decline(f"a mean of {count} elements for each place")
    shape = (*x.shape[:2], *grid.shape[1:-1])
    o = tuple(axis(k) for k in range(len(shape)))
    reads = tuple((1 + k, (o[0], *o[2:])) for k in range(rank))
    op = Gather(shape, reads, (*o[:2], *(picked(k) for k in range(rank))))
    parts: list[Value] = []
    weights: list[Value] = []
    for chosen in product(*taps):
        parts.append(b.add(op, x, *(place for place, _ in chosen)))
        weight = b.map(_multiplied, *(w for _, w in chosen))
        weights.append(b.reshape(weight, (grid.shape[0], 1, *grid.shape[1:-1])))
    total = _any_where_weighted if x.dtype == boolean else _sum_where_weighted
    return b.map(total, *parts, *weights, dtype=x.dtype)


@onnx_op("AffineGrid")
def affine_grid(b: Builder, node: OnnxNode, theta: Value, size: Value) -> Value:
    """Where the elements of an image lie after a linear map: that of x, y, (z,) and one.

    The function of ONNX squeezes away a batch of one.
    """
    sizes = b.numbers(size)
    if sizes is None:
        node.decline("a size that is not known")
    space, rank = sizes[2:], len(sizes) - 2
    wide, corners = widened(b, theta), bool(node.int("align_corners"))
    if fixed(wide.shape[2]) not in (None, rank + 1):
        raise ValueError(f"maps of {wide.shape[2]} columns for {rank} dimensions")
    ends = []
    for place, count in enumerate(space):
        line = b.tabulate((count,), partial(_evenly, count, corners=corners), wide.dtype)
        ends.append(b.reshape(line, (count, *[1] * (rank - place))))
    shape: list[int | tir.Expr] = [theta.shape[0], *[1] * rank, theta.shape[1]]
    factors = [
        b.reshape(cut(b, wide, 2, tir.Const(k), tir.Const(1)), shape) for k in range(rank + 1)
    ]

    def moved(*values: tir.Expr) -> tir.Expr:
        by, at = values[: rank + 1], values[rank + 1 :]
        return sum((f * p for f, p in zip(by, at, strict=False)), by[rank])

    return converted(b, b.map(moved, *factors, *ends[::-1]), theta.dtype)


def _evenly(count: int, i: tir.Expr, *, corners: bool) -> tir.Expr:
    """Places from -1 to 1: of the middles of pixels, or of the outermost ones at the ends."""
    if corners:
        return i.to(f64) * (2 / max(count - 1, 1)) - 1.0
    return (i.to(f64) * 2.0 + 1.0) / count - 1.0


def _multiplied(first: tir.Expr, *others: tir.Expr) -> tir.Expr:
    for other in others:
        first = first * other
    return first


def _sum_where_weighted(*values: tir.Expr) -> tir.Expr:
    """Σ part · weight; what has no weight does not count, be it infinite."""
    parts, weights = values[: len(values) // 2], values[len(values) // 2 :]
    terms = [
        select(w.eq(0.0), tir.const(0.0, p.dtype), p * w.to(p.dtype))
        for p, w in zip(parts, weights, strict=True)
    ]
    return sum(terms[1:], terms[0])


def _any_where_weighted(*values: tir.Expr) -> tir.Expr:
    """The same of truths: whether any part that has a weight is true."""
    parts, weights = values[: len(values) // 2], values[len(values) // 2 :]
    terms = [p & w.ne(0.0) for p, w in zip(parts, weights, strict=True)]
    return reduce(lambda p, q: p | q, terms)


def _taps(
    b: Builder, node: OnnxNode, grid: Value, dim: int, length: tir.Expr, rank: int, mode: str
) -> Sequence[Tap]:
    """The elements along a dimension of which a result is made."""
    padding = node.string("padding_mode", "zeros")
    corners = bool(node.int("align_corners"))
    n = length.to(f32)
    low, high = (n * 0.0, n - 1.0) if corners else (n * 0.0 - 0.5, n - 0.5)
    component = cut(b, grid, grid.rank - 1, tir.Const(rank - 1 - dim), tir.Const(1))
    given = b.reshape(component, grid.shape[:-1])

    def coordinate(v: tir.Expr) -> tir.Expr:
        value = v.to(f32)
        at = (value + 1.0) * 0.5 * (n - 1.0) if corners else ((value + 1.0) * n - 1.0) * 0.5
        at = call("round", at) if mode == "nearest" else at
        if padding == "zeros":
            return at
        outside = (at < low) | (high < at)
        back = _reflected(at, low, high)
        if padding == "border":
            # Of four neighbours each is at the border for itself: one of them may lie inside.
            beyond = 2.0 if mode == "cubic" else 0.0
            back = tir.maximum(tir.minimum(at, n - 1.0 + beyond), -beyond)
        return select(outside, back, at)

    def tap(offset: int) -> Tap:
        def place(v: tir.Expr) -> tir.Expr:
            near = call("floor", coordinate(v)) + float(offset)
            if padding == "reflection":
                near = _reflected(near, low, high)
            return tir.maximum(tir.minimum(near.to(i64), length - 1), 0)

        def weight(v: tir.Expr) -> tir.Expr:
            at = coordinate(v)
            near = call("floor", at) + float(offset)
            value = _weight(mode, near - at)
            if padding != "zeros":
                return value
            return select((near < 0.0) | (n - 1.0 < near), 0.0, value)

        return b.map(place, given, dtype=i64), b.map(weight, given, dtype=f32)

    return [tap(offset) for offset in _OFFSETS[mode]]


_OFFSETS = {"nearest": (0,), "linear": (0, 1), "cubic": (-1, 0, 1, 2)}


def _weight(mode: str, away: tir.Expr) -> tir.Expr:
    if mode == "nearest":
        return tir.const(1.0, f32)
    return linear_weight(away) if mode == "linear" else cubic_weight(away, -0.75)


def _reflected(at: tir.Expr, low: tir.Expr, high: tir.Expr) -> tir.Expr:
    """Back and forth between two mirrors.

    What lies on one side of a mirror lies on the other as well: distances are small where places
    are, and keep their digits.
    """
    length = high - low
    away = call("abs", at - low)
    turns = call("floor", away / length)
    rest = away - turns * length
    returns = (call("floor", turns * 0.5) * 2.0).ne(turns)
    return select(length <= 0.0, low, select(returns, high - rest, low + rest))
