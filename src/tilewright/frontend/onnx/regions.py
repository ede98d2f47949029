"""`RoiAlign` and `MaxRoiPool`: the content of boxes in images, as cells of equal number."""

from __future__ import annotations

from typing import Final

from tilewright.dtypes import boolean, f32, f64, i64
from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.frontend.onnx.taking import take
from tilewright.graph import Builder, Value
from tilewright.graph.ops.regions import Regions
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call, fold_identity, select

__all__: list[str] = []

MOST: Final = 1 << 30
"""Points of a cell along a dimension: the numbers of those in larger boxes do not fit."""


@onnx_op("RoiAlign")
def roi_align(b: Builder, node: OnnxNode, x: Value, rois: Value, images: Value) -> Value:
    """Means or extremes of interpolated points; as many as attributes say, or one per element."""
    cells = (node.int("output_height", 1), node.int("output_width", 1))
    scale, ratio = node.float("spatial_scale", 1.0), node.int("sampling_ratio")
    default = "half_pixel" if node.opset >= 16 else "output_half_pixel"
    half = node.string("coordinate_transformation_mode", default).lower() == "half_pixel"
    dtype = f64 if x.dtype == f64 else f32

    def corner(first: int) -> Value:
        """One corner, y then x, in elements of the image."""
        part = b.remap(rois, (rois.shape[0], 2), lambda r, d: (r, first + 1 - d))
        shift = 0.5 if half else 0.0
        return b.map(lambda v: v.to(dtype) * scale - shift, part, dtype=dtype)

    def size(low: tir.Expr, high: tir.Expr) -> tir.Expr:
        return high - low if half else tir.maximum(high - low, 1.0)

    begin, end = corner(0), corner(2)
    length = b.map(size, begin, end)
    counts = b.constant(cells, "cells", dtype)
    cell = b.map(lambda v, n: v / n, length, counts)

    def points(v: tir.Expr) -> tir.Expr:
        if ratio > 0:
            return tir.Const(ratio)
        some = (v > 0.0) & (v < float(MOST))
        many = select(v > 0.0, tir.Const(MOST), tir.Const(0))
        return select(some, call("ceil", select(some, v, tir.const(0, dtype))).to(i64), many)

    number = b.map(points, cell, dtype=i64)
    greatest = node.string("mode", "avg").lower() == "max"
    last = b.transpose(x, (0, 2, 3, 1))
    found = b.add(Regions(cells, greatest), last, images, begin, cell, number)
    return b.transpose(found, (0, 3, 1, 2))


@onnx_op("MaxRoiPool")
def max_roi_pool(b: Builder, node: OnnxNode, x: Value, rois: Value) -> Value:
    """The greatest whole element of each cell; a cell that has none is zero."""
    scale, boxes = node.float("spatial_scale", 1.0), rois.shape[0]
    image = b.map(lambda v: v.to(i64), b.remap(rois, (boxes,), lambda r: (r, 0)), dtype=i64)
    found, empty = take(b, x, image, 0), b.constant(0, "none", boolean)
    for d, cells in enumerate(node.ints("pooled_shape") or ()):
        ends = b.remap(rois, (boxes, 2), lambda r, k, d=d: (r, 2 - d + 2 * k))
        begin, end = _elements(b, ends, cells, scale, x.shape[2 + d])
        found = _greatest(b, found, begin, end, 2 + d)
        cell = [b.reshape(v, (boxes, 1, *_along(d, cells))) for v in (begin, end)]
        empty = b.map(lambda e, low, high: e | (low >= high), empty, *cell, dtype=boolean)
    return b.map(lambda v, e: select(e, tir.const(0, v.dtype), v), found, empty, dtype=x.dtype)


def _along(dimension: int, size: int) -> tuple[int, int]:
    return (size, 1) if dimension == 0 else (1, size)


def _elements(
    b: Builder, ends: Value, cells: int, scale: float, size: tir.Expr
) -> tuple[Value, Value]:
    """Where each cell begins and ends along a dimension, (boxes, cells), given where boxes do."""

    def whole(v: tir.Expr) -> tir.Expr:
        """Scaled and rounded, halves away from zero."""
        scaled = (v.to(f32) * scale).to(f64)
        return select(scaled < 0.0, -call("floor", 0.5 - scaled), call("floor", scaled + 0.5))

    rounded = b.map(whole, ends, dtype=f64)
    low, high = (b.remap(rounded, (ends.shape[0], 1), lambda r, _, k=k: (r, k)) for k in (0, 1))
    cell = b.map(
        lambda p, q: tir.maximum(q - p + 1.0, 1.0).to(f32) / float(cells), low, high, dtype=f32
    )

    def end(name: str, first: int) -> Value:
        places = b.tabulate((cells,), lambda k: (k + first).to(f32), f32)
        return b.map(
            lambda k, step, start: tir.maximum(
                tir.minimum((call(name, k * step).to(f64) + start).to(i64), size), 0
            ),
            places, cell, low, dtype=i64,
        )  # fmt: skip

    return end("floor", 0), end("ceil", 1)


def _greatest(b: Builder, x: Value, begin: Value, end: Value, along: int) -> Value:
    """For each cell the greatest element between two places of a dimension, which cells take."""
    boxes, cells = begin.shape
    wide = b.reshape(x, (*x.shape[:along], 1, *x.shape[along:]))
    place: list[int | tir.Expr] = [1] * wide.rank
    place[along + 1] = x.shape[along]
    places = b.reshape(b.tabulate((x.shape[along],), lambda k: k), place)
    at: list[int | tir.Expr] = [1] * wide.rank
    at[0], at[along] = boxes, cells
    lowest = fold_identity(tir.Fold.MAX, x.dtype).value
    held = b.map(
        lambda v, k, low, high: select((k >= low) & (k < high), v, tir.const(lowest, v.dtype)),
        wide, places, b.reshape(begin, at), b.reshape(end, at), dtype=x.dtype,
    )  # fmt: skip
    return b.reduce(tir.Fold.MAX, held, [along + 1], keepdims=False)
