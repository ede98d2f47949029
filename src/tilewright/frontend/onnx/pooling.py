"""Pooling: folds over windows, and over all of space."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilewright.dtypes import DType, boolean
from tilewright.frontend.onnx.arithmetic import divided
from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.frontend.onnx.windows import (
    Side,
    Windows,
    channels_first,
    channels_last,
    place_windows,
)
from tilewright.graph import Builder, Value
from tilewright.graph.ir import Shape
from tilewright.graph.ops import ArgReduce, computed_as
from tilewright.graph.ops.window import Pool
from tilewright.graph.sizes import dims_equal, product, tidy
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call

__all__: list[str] = []


@onnx_op("MaxPool")
def max_pool(b: Builder, node: OnnxNode, x: Value) -> Sequence[Value]:
    """The greatest element of each window, and where it stands."""
    last = channels_last(b, x)
    windows = _windows(node, last)
    found = _folded(b, tir.Fold.MAX, last, windows, x.dtype.min_value)
    if not node.wants(1):
        return [channels_first(b, found)]
    columns = bool(node.int("storage_order"))
    places = _places(b, last, windows, found.shape, by_columns=columns)
    return [channels_first(b, found), channels_first(b, places)]


def _places(b: Builder, last: Value, windows: Windows, shape: Shape, *, by_columns: bool) -> Value:
    """The number of each greatest element, counted over all of the channels-first data."""
    space, rank = last.shape[1:-1], len(windows.kernel)
    steps: list[tir.Expr] = [tir.Const(1)]  # how far apart neighbours are, from the last dimension
    for size in space if by_columns else space[::-1]:
        steps.append(tidy(steps[-1] * size))
    whole, steps = steps.pop(), steps if by_columns else steps[::-1]

    def inner(number: tir.Expr) -> list[tir.Expr]:
        """The places of element `number` of a window inside of it, gaps included."""
        found: list[tir.Expr] = []
        for size, gap in zip(reversed(windows.kernel), reversed(windows.dilations), strict=True):
            found.append(number % size * gap)
            number = number // size
        return found[::-1]

    def at(*o: tir.Expr) -> list[tir.Expr]:
        sides = zip(o[1 : 1 + rank], windows.strides, windows.sides, inner(o[-2]), strict=True)
        return [o[0], *(w * s - side.begin + r for w, s, side, r in sides), o[-1]]

    def inside(*o: tir.Expr) -> tir.Expr:
        held: tir.Expr = tir.TRUE
        for place, size in zip(at(*o)[1:-1], space, strict=True):
            held = held & (place >= 0) & (place < size)
        return held

    def first(*o: tir.Expr) -> tir.Expr:
        """The number of the place where a window begins."""
        found = (o[0] * last.shape[-1] + o[-1]) * whole
        sides = zip(o[1:-1], windows.strides, windows.sides, steps, strict=True)
        for w, s, side, step in sides:
            found = found + (w * s - side.begin) * step
        return found

    spread = (*shape[:-1], tir.Const(prod(windows.kernel)), shape[-1])
    elements = b.remap(last, spread, at, inside, last.dtype.min_value)
    best = b.reduce(tir.Fold.MAX, elements, (1 + rank,))

    def hit(element: tir.Expr, greatest: tir.Expr, is_inside: tir.Expr) -> tir.Expr:
        """What stands in the border may be as great, and does not count; NaN is not itself."""
        return is_inside & (element.eq(greatest) | element.ne(element))

    hits = b.map(hit, elements, best, b.tabulate(spread, inside, boolean), dtype=boolean)
    which = b.reshape(b.add(ArgReduce(tir.Fold.MAX, 1 + rank), hits), shape)

    def place(begin: tir.Expr, number: tir.Expr) -> tir.Expr:
        for r, step in zip(inner(number), steps, strict=True):
            begin = begin + r * step
        return begin

    return b.map(place, b.tabulate(shape, first), which)


@onnx_op("AveragePool")
def average_pool(b: Builder, node: OnnxNode, x: Value) -> Value:
    """The mean of each window, with or without its border."""
    last = _wide(b, channels_last(b, x))
    windows = _windows(node, last)
    sums = _folded(b, tir.Fold.ADD, last, windows)
    return channels_first(b, _mean(b, node, sums, last, windows, x.dtype))


def _windows(node: OnnxNode, last: Value) -> Windows:
    kernel = node.ints("kernel_shape") or []
    return place_windows(node, last.shape[1:-1], kernel, ceil=bool(node.int("ceil_mode")))


def _folded(b: Builder, fold: tir.Fold, last: Value, windows: Windows, fill: float = 0) -> Value:
    data, pads = windows.bordered(b, last, fill)
    return b.add(Pool(fold, windows.kernel, windows.strides, windows.dilations, pads), data)


def _wide(b: Builder, x: Value) -> Value:
    """Narrow floats as f32: their sums may be too large for them."""
    wide = computed_as(x.dtype)
    return x if wide == x.dtype else b.map(lambda v: v, x, dtype=wide)


def _mean(
    b: Builder, node: OnnxNode, sums: Value, last: Value, windows: Windows, dtype: DType
) -> Value:
    """Sums over how many elements they have; where that varies it is a sum of ones."""
    space = last.shape[1:-1]
    if node.int("count_include_pad"):
        exact = all(dims_equal(s.counted, s.size) for s in windows.sides)
        ones, sides = [s.counted for s in windows.sides], _from_start(windows.sides)
    else:
        exact = all(dims_equal(s.size, n) for s, n in zip(windows.sides, space, strict=True))
        ones, sides = list(space), windows.sides
    if exact:
        return b.map(lambda v: divided(v, prod(windows.kernel)), sums, dtype=dtype)
    one = b.expand(b.constant(1, dtype=sums.dtype), [1, *ones, 1])
    over = Windows(windows.kernel, windows.strides, windows.dilations, sides)
    counts = _folded(b, tir.Fold.ADD, one, over)
    return b.map(lambda v, c: v / c, sums, counts, dtype=dtype)


def _from_start(sides: Sequence[Side]) -> tuple[Side, ...]:
    """The same windows over data that has its border already."""
    return tuple(Side(tir.Const(0), s.size, s.counted) for s in sides)


@onnx_op("LpPool")
def lp_pool(b: Builder, node: OnnxNode, x: Value) -> Value:
    """The p-norm of each window."""
    p = node.int("p", 2)
    last = _wide(b, channels_last(b, x))
    windows = _windows(node, last)
    sums = _folded(b, tir.Fold.ADD, b.map(lambda v: _power(v, p), last), windows)
    return channels_first(b, b.map(lambda v: _root(v, p), sums, dtype=x.dtype))


def _power(v: tir.Expr, p: int) -> tir.Expr:
    """|v|^p."""
    if p == 2:
        return v * v
    return call("abs", v) if p == 1 else call("pow", call("abs", v), float(p))


def _root(v: tir.Expr, p: int) -> tir.Expr:
    if p == 1:
        return v
    return call("sqrt", v) if p == 2 else call("pow", v, 1.0 / p)


@onnx_op("GlobalMaxPool")
def global_max_pool(b: Builder, node: OnnxNode, x: Value) -> Value:
    """The greatest element of each channel."""
    return b.reduce(tir.Fold.MAX, x, range(2, x.rank))


@onnx_op("GlobalAveragePool")
def global_average_pool(b: Builder, node: OnnxNode, x: Value) -> Value:
    """The mean of each channel."""
    total = b.reduce(tir.Fold.ADD, _wide(b, x), range(2, x.rank))
    elements = tidy(product(x.shape[2:])).to(total.dtype)
    return b.map(lambda v: v / elements, total, dtype=x.dtype)


@onnx_op("GlobalLpPool")
def global_lp_pool(b: Builder, node: OnnxNode, x: Value) -> Value:
    """The p-norm of each channel."""
    p = node.int("p", 2)
    sums = b.reduce(tir.Fold.ADD, b.map(lambda v: _power(v, p), _wide(b, x)), range(2, x.rank))
    return b.map(lambda v: _root(v, p), sums, dtype=x.dtype)
