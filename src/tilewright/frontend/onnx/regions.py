"""`RoiAlign`: the content of boxes in images, as cells of equal number."""

from __future__ import annotations

from typing import Final

from tilewright.dtypes import f32, f64, i64
from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.graph import Builder, Value
from tilewright.graph.ops.regions import Regions
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call, select

__all__: list[str] = []

MOST: Final = 1 << 15
"""Points of a cell along a dimension: a box of any size is done in finite time."""


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
