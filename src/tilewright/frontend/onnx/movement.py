"""Parts, joins, borders and repetitions of tensors.

All places are known without data, so each operator is a `Remap` with plain index expressions, or a
combination of `Reshape`, `Transpose` and `Expand`. Dimensions, starts and ends may be symbolic.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

import numpy as np

from tilewright.frontend.onnx.node import OnnxNode, normal_axis
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.frontend.onnx.shapes import (
    MANY_DIMS,
    known_axes,
    known_integers,
    known_numbers,
)
from tilewright.frontend.onnx.told import Told, elements, padded, tiled
from tilewright.frontend.onnx.windows import require_near
from tilewright.graph import Builder, Value
from tilewright.graph.sizes import dims_equal, fixed, never_exceeds, product, tidy
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import substitute

__all__ = ["cut", "span"]

ENDLESS: Final = 2**31 - 1
"""A start or end of this size or more means the end of the dimension, whatever its size."""
BORDERED_AT_ONCE: Final = 3
"""Dimensions of a tensor of very many along which one kernel makes a border."""


@onnx_op("Concat")
def concat(b: Builder, node: OnnxNode, *parts: Value) -> Value:
    """Tensors one after another; those without elements are left out."""
    along = normal_axis(node.int("axis"), parts[0].rank)
    filled = [part for part in parts if fixed(part.shape[along]) != 0]
    return b.concat(filled or parts[:1], along)


@onnx_op("Split")
def split(b: Builder, node: OnnxNode, x: Value, sizes: Value | None = None) -> Sequence[Value]:
    """Parts of given sizes, or as even as can be."""
    along = normal_axis(node.int("axis"), x.rank)
    dim, parts = x.shape[along], node.output_count
    lengths = known_integers(b, node, "split", sizes)
    if lengths is None:
        even = tidy((dim + (parts - 1)) // parts)
        lengths = [tir.maximum(tir.minimum(even, dim - even * k), 0) for k in range(parts)]
        lengths = [even, *map(tidy, lengths[1:])]  # of few elements the last ones get none
    if len(lengths) != parts:
        raise ValueError(f"{len(lengths)} lengths for {parts} parts")
    starts = itertools.accumulate([tir.as_index(0), *lengths], lambda a, n: tidy(a + n))
    return [cut(b, x, along, s, n) for s, n in zip(starts, lengths, strict=False)]


def cut(
    b: Builder, x: Value, along: int, first: tir.Expr, length: tir.Expr, step: int = 1
) -> Value:
    """`length` elements of a dimension, every `step`-th from `first` on."""
    if step == 1 and fixed(first) == 0 and tidy(x.shape[along]) == length:
        return x
    shape = [*x.shape[:along], length, *x.shape[along + 1 :]]

    def places(*o: tir.Expr) -> list[tir.Expr]:
        return [i if k != along else i * step + first for k, i in enumerate(o)]

    return b.remap(x, shape, places)


def span(dim: tir.Expr, start: tir.Expr, end: tir.Expr, step: int) -> tuple[tir.Expr, tir.Expr]:
    """(first place, number of elements) of a slice whose ends may lie outside of the dimension."""
    if not isinstance(dim, tir.Const | tir.Var) and None not in (fixed(start), fixed(end)):
        whole = tir.Var("dim")  # a size like any other, whatever it is made of
        begin, length = (substitute(e, {whole: dim}) for e in span(whole, start, end, step))
        return tidy(begin), tidy(length)
    lowest, limit = (tir.Const(0), dim) if step > 0 else (tir.Const(-1), dim - 1)
    begin, stop = (_from_front(place, dim, lowest, limit) for place in (start, end))
    if step > 0:  # one that has elements starts inside, so that its start needs no upper limit
        stop = tir.minimum(stop, limit)
        distance, begin = tir.minimum(tidy(stop - begin), stop), tidy(tir.maximum(begin, 0))
    else:
        begin = tidy(tir.minimum(tir.maximum(begin, 0), limit))
        distance = tir.minimum(tidy(begin - stop), begin + 1)
    if fixed(dim) == 0:
        return begin, tir.Const(0)
    return begin, tidy(tir.maximum((distance + (abs(step) - 1)) // abs(step), 0))


def _from_front(place: tir.Expr, dim: tir.Expr, lowest: tir.Expr, limit: tir.Expr) -> tir.Expr:
    """A place counted from the front; numbers beyond all sizes become the ends themselves."""
    number = fixed(place)
    if number is None:
        return tidy(tir.Select(place < 0, place + dim, place))
    if abs(number) >= ENDLESS:
        return limit if number > 0 else lowest
    return place if number >= 0 else tidy(place + dim)


@onnx_op("Pad")
def pad(
    b: Builder,
    node: OnnxNode,
    x: Value,
    pads: Value | None = None,
    value: Value | None = None,
    axes: Value | None = None,
) -> Value:
    """A border of a constant, of the nearest element, of the mirrored or of the repeated tensor."""
    along = known_axes(b, node, x.rank, axes) or list(range(x.rank))
    if pads is not None and b.integers(pads) is None:
        return _bordered_by_data(b, node, x, along, elements(b, node, "pads", pads), value)
    amounts = known_integers(b, node, "pads", pads) or []
    before = dict(zip(along, amounts[: len(along)], strict=True))
    after = dict(zip(along, amounts[len(along) :], strict=True))
    for axis in along:  # what is cut away is gone before the border is made
        low, high = (tir.maximum(-p[axis], 0) for p in (before, after))
        length = tidy(x.shape[axis] - low - high)
        if not (_may_be_negative(before[axis]) or _may_be_negative(after[axis])):
            continue
        x = cut(b, x, axis, tidy(low), length)
        before[axis], after[axis] = (tidy(tir.maximum(p[axis], 0)) for p in (before, after))
    shape = [tidy(d + before.get(k, 0) + after.get(k, 0)) for k, d in enumerate(x.shape)]
    if x.rank > MANY_DIMS:
        return _bordered_in_parts(b, node, x, before, shape, value)
    return _bordered(b, node, x, before, shape, value)


def _bordered_by_data(
    b: Builder,
    node: OnnxNode,
    x: Value,
    along: Sequence[int],
    amounts: Sequence[Told],
    value: Value | None,
) -> Value:
    """Borders as wide as data says, along one dimension after another.

    The constant goes behind the last element of a dimension first, and is taken from there.
    """
    mode = node.string("mode", "constant")
    for k, *ends in zip(along, amounts[: len(along)], amounts[len(along) :], strict=True):
        if all(isinstance(e, tir.Expr) and fixed(e) == 0 for e in ends):
            continue
        outside = None if mode == "constant" else _BORDERS[mode]
        if outside is None:
            longer = [tidy(d + 1) if k == axis else d for axis, d in enumerate(x.shape)]
            x = _constant_border(b, node, x, {}, longer, value)
        x = padded(b, x, k, (ends[0], ends[1]), outside)
    return x


def _bordered_in_parts(
    b: Builder,
    node: OnnxNode,
    x: Value,
    before: dict[int, tir.Expr],
    shape: Sequence[tir.Expr],
    value: Value | None,
) -> Value:
    """Borders along a few dimensions at a time; those around them are one each.

    A kernel for borders along all of many dimensions would test each element against all of them.
    """
    dims = list(x.shape)
    for low in range(0, x.rank, BORDERED_AT_ONCE):
        part = range(low, min(low + BORDERED_AT_ONCE, len(dims)))
        if all(dims_equal(dims[k], shape[k]) for k in part):
            continue
        outer, inner = product(dims[:low]), product(dims[part.stop :])
        flat = b.reshape(x, (outer, *(dims[k] for k in part), inner))
        dims[low : part.stop] = shape[low : part.stop]
        amounts = {k - low + 1: before[k] for k in part if k in before}
        wanted = (outer, *(dims[k] for k in part), inner)
        x = _bordered(b, node, flat, amounts, wanted, value)
    return b.reshape(x, shape)


def _bordered(
    b: Builder,
    node: OnnxNode,
    x: Value,
    before: dict[int, tir.Expr],
    shape: Sequence[tir.Expr],
    value: Value | None,
) -> Value:
    mode = node.string("mode", "constant")
    if mode == "constant":
        return _constant_border(b, node, x, before, shape, value)
    outside = _BORDERS[mode]
    return b.remap(
        x,
        shape,
        lambda *o: [
            outside(i - before[k], x.shape[k]) if k in before and shape[k] != x.shape[k] else i
            for k, i in enumerate(o)
        ],
    )


def _may_be_negative(amount: tir.Expr) -> bool:
    return tidy(tir.maximum(amount, 0)) != amount


def _nearest(place: tir.Expr, dim: tir.Expr) -> tir.Expr:
    return tir.maximum(tir.minimum(place, dim - 1), 0)


def _mirrored(place: tir.Expr, dim: tir.Expr) -> tir.Expr:
    """There and back again; of a single element it is that one, as a remainder by zero is zero."""
    period = dim * 2 - 2
    there = place % period
    return tir.minimum(there, period - there)


def _repeated(place: tir.Expr, dim: tir.Expr) -> tir.Expr:
    return place % dim


_BORDERS = {"edge": _nearest, "reflect": _mirrored, "wrap": _repeated}


def _constant_border(
    b: Builder,
    node: OnnxNode,
    x: Value,
    before: dict[int, tir.Expr],
    shape: Sequence[tir.Expr],
    value: Value | None,
) -> Value:
    def places(*o: tir.Expr) -> list[tir.Expr]:
        return [i - before[k] if k in before else i for k, i in enumerate(o)]

    def inside(*o: tir.Expr) -> tir.Expr:
        holds: tir.Expr = tir.TRUE
        for k, i in enumerate(o):
            low = before.get(k, tir.Const(0))
            if fixed(low) != 0:
                holds = _both(holds, low <= i)
            if tidy(low + x.shape[k]) != shape[k]:
                holds = _both(holds, i < tidy(low + x.shape[k]))
        return holds

    fill = b.contents(value) if value is not None else None
    if value is None or fill is not None:
        number = node.float("value") if fill is None else fill.item()
        return b.remap(x, shape, places, inside, number)
    where = b.remap(b.constant(np.True_), shape, lambda *_: [], inside, fill=False)
    padded = b.remap(x, shape, places, inside)
    scalar = b.reshape(value, ())
    return b.map(tir.Select, where, padded, scalar, dtype=x.dtype)


def _both(a: tir.Expr, b: tir.Expr) -> tir.Expr:
    return b if a == tir.TRUE else a & b


@onnx_op("CenterCropPad")
def center_crop_pad(b: Builder, node: OnnxNode, x: Value, shape: Value) -> Value:
    """The middle of a tensor, or the tensor in the middle of zeros; odd ones are at the end."""
    wanted = known_integers(b, node, "shape", shape) or []
    axes = node.ints("axes") or list(range(x.rank))
    sizes = dict(zip([normal_axis(a, x.rank) for a in axes], wanted, strict=True))
    dims = [sizes.get(k, d) for k, d in enumerate(x.shape)]
    if any((fixed(d) or 0) < 0 for d in dims):
        raise ValueError("a negative size")
    firsts = [_middle(have, size) for have, size in zip(x.shape, dims, strict=True)]

    def places(*o: tir.Expr) -> list[tir.Expr]:
        return [i + first for i, first in zip(o, firsts, strict=True)]

    def inside(*o: tir.Expr) -> tir.Expr:
        holds: tir.Expr = tir.TRUE
        for i, have, size in zip(places(*o), x.shape, dims, strict=True):
            if not never_exceeds(size, have, ()):
                holds = _both(_both(holds, i >= 0), i < have)
        return holds

    return b.remap(x, dims, places, inside)


def _middle(have: tir.Expr, size: tir.Expr) -> tir.Expr:
    """Where the middle of a dimension begins; in front of it if it is too short."""
    less, more = (have - size) // 2, (size - have) // 2
    return tidy(tir.Select(size <= have, less, -more))


@onnx_op("Tile")
def tile(b: Builder, node: OnnxNode, x: Value, repeats: Value) -> Value:
    """The tensor again and again along each dimension."""
    told = elements(b, node, "repeats", repeats)
    for k, often in enumerate(told):
        x = tiled(b, x, k, often) if isinstance(often, Value) else x
    times = [n if isinstance(n, tir.Expr) else tir.Const(1) for n in told]
    several = [k for k, n in enumerate(times) if fixed(n) != 1]
    inserted = [
        d for k, dim in enumerate(x.shape) for d in ([tir.Const(1)] * (k in several) + [dim])
    ]
    wide = [d for k, dim in enumerate(x.shape) for d in ([times[k]] * (k in several) + [dim])]
    repeated = b.expand(b.reshape(x, inserted), wide)
    return b.reshape(repeated, [d * n for d, n in zip(x.shape, times, strict=True)])


@onnx_op("DepthToSpace")
def depth_to_space(b: Builder, node: OnnxNode, x: Value) -> Value:
    """Channels become blocks of pixels."""
    side = node.int("blocksize")
    n, c, h, w = x.shape
    depth = tidy(c // (side * side))
    if node.string("mode", "DCR") == "DCR":
        parts = b.reshape(x, (n, side, side, depth, h, w))
        moved = b.transpose(parts, (0, 3, 4, 1, 5, 2))
    else:
        parts = b.reshape(x, (n, depth, side, side, h, w))
        moved = b.transpose(parts, (0, 1, 4, 2, 5, 3))
    return b.reshape(moved, (n, depth, h * side, w * side))


@onnx_op("SpaceToDepth")
def space_to_depth(b: Builder, node: OnnxNode, x: Value) -> Value:
    """Blocks of pixels become channels."""
    side = node.int("blocksize")
    n, c, h, w = x.shape
    rows, columns = tidy(h // side), tidy(w // side)
    order = (0, 1, 3, 5, 2, 4) if node.string("mode", "DCR") == "CRD" else (0, 3, 5, 1, 2, 4)
    moved = b.transpose(b.reshape(x, (n, c, rows, side, columns, side)), order)
    return b.reshape(moved, (n, c * (side * side), rows, columns))


@onnx_op("Trilu")
def trilu(b: Builder, node: OnnxNode, x: Value, k: Value | None = None) -> Value:
    """The triangle on one side of a diagonal; zero elsewhere."""
    upper = bool(node.int("upper", 1))
    known = [tir.Const(0)] if k is None else b.integers(k)
    if known is None and k is not None:
        return _triangle(b, x, b.reshape(k, ()), upper=upper)
    (diagonal,) = known or [tir.Const(0)]

    def inside(*o: tir.Expr) -> tir.Expr:
        row, column = o[-2] + diagonal, o[-1]
        return row <= column if upper else column <= row

    return b.remap(x, x.shape, lambda *o: list(o), inside)


def _triangle(b: Builder, x: Value, diagonal: Value, *, upper: bool) -> Value:
    """The same, where data says which diagonal it is."""
    places = b.tabulate(x.shape[-2:], lambda row, column: column - row)

    def element(value: tir.Expr, place: tir.Expr, k: tir.Expr) -> tir.Expr:
        inside = k <= place if upper else place <= k
        return tir.Select(inside, value, tir.const(0, value.dtype))

    return b.map(element, x, places, diagonal, dtype=x.dtype)


@onnx_op("Col2Im")
def col2im(b: Builder, node: OnnxNode, x: Value, image: Value, block: Value) -> Value:
    """Windows added up where they overlap: each pixel takes its element of every window."""
    size = known_numbers(b, node, "image_shape", image) or []
    window = known_numbers(b, node, "block_shape", block) or []
    rank = len(window)
    dilations = node.ints("dilations", [1] * rank) or []
    strides = node.ints("strides", [1] * rank) or []
    pads = node.ints("pads", [0] * 2 * rank) or []
    require_near(*size, *window, *dilations, *strides, *pads)
    counts = [
        (n + pads[k] + pads[k + rank] - dilations[k] * (window[k] - 1) - 1) // strides[k] + 1
        for k, n in enumerate(size)
    ]
    n, columns, _ = x.shape
    channels = tidy(columns // product(map(tir.Const, window)))
    parts = b.reshape(x, (n, channels, *window, *counts))

    def corners(o: Sequence[tir.Expr]) -> list[tir.Expr]:
        """Where the window begins that has a pixel at an element, times the stride."""
        both = enumerate(zip(o[2 : 2 + rank], o[2 + rank :], strict=True))
        return [p + pads[k] - e * dilations[k] for k, (e, p) in both]

    def inside(*o: tir.Expr) -> tir.Expr:
        holds: tir.Expr = tir.TRUE
        for k, corner in enumerate(corners(o)):
            holds = _both(holds, (corner >= 0) & (corner < counts[k] * strides[k]))
            if strides[k] > 1:
                holds = holds & (corner % strides[k]).eq(0)
        return holds

    def places(*o: tir.Expr) -> list[tir.Expr]:
        return [*o[: 2 + rank], *[c // strides[k] for k, c in enumerate(corners(o))]]

    spread = b.remap(parts, (n, channels, *window, *size), places, inside)
    return b.reduce(tir.Fold.ADD, spread, range(2, 2 + rank), keepdims=False)
