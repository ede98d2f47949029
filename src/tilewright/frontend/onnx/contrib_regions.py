"""`CropAndResize`: boxes of images, all brought to one size (domain com.microsoft)."""

from __future__ import annotations

from typing import Final

from tilewright.dtypes import i64
from tilewright.frontend.onnx.movement import cut
from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.frontend.onnx.shapes import known_integers
from tilewright.graph import Builder, Value
from tilewright.graph.ops import axis, computed_as, picked
from tilewright.graph.ops.gather import Gather
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call, select

__all__: list[str] = []

DOMAIN: Final = "com.microsoft"


@onnx_op("CropAndResize", domain=DOMAIN)
def crop_and_resize(
    b: Builder, node: OnnxNode, x: Value, boxes: Value, images: Value, size: Value
) -> Value:
    """Interpolated, or the nearest element; corners of boxes and of results coincide."""
    rows, columns = known_integers(b, node, "crop_size", size) or [tir.Const(1)] * 2
    nearest = node.string("mode", "bilinear") == "nearest"
    count, channels = boxes.shape[0], x.shape[1]
    shape = (count, channels, rows, columns)
    o = tuple(axis(k) for k in range(4))
    lines = [
        _places(b, x.shape[2 + d], boxes, d, (rows, columns)[d]) for d in range(2)
    ]  # [boxes, places along a dimension]
    wide = [
        b.reshape(v, (count, 1, rows, 1) if d == 0 else (count, 1, 1, columns))
        for d, v in enumerate(lines)
    ]

    def at(up: tuple[bool, bool]) -> Value:
        """Elements at the whole places next to those wanted, on one side or the other."""
        names = ["round" if nearest else "ceil" if further else "floor" for further in up]
        ends = [
            b.map(lambda v, name=name: call(name, v).to(i64), line, dtype=i64)
            for line, name in zip(lines, names, strict=True)
        ]
        reads = ((1, (o[0],)), (2, (o[0], o[2])), (3, (o[0], o[3])))
        op = Gather(shape, reads, (picked(0), o[1], picked(1), picked(2)))
        return b.add(op, x, images, *ends)

    fill = node.float("extrapolation_value")
    limits = [x.shape[2] - 1, x.shape[3] - 1]

    def outside(p: tir.Expr, q: tir.Expr) -> tir.Expr:
        high = [n.to(p.dtype) for n in limits]
        return (p < 0) | (q < 0) | (p > high[0]) | (q > high[1])

    if nearest:
        return b.map(
            lambda v, p, q: select(outside(p, q), fill, v), at((False, False)), *wide, dtype=x.dtype
        )

    def blended(*args: tir.Expr) -> tir.Expr:
        a, c, d, e, p, q = args
        down, right = p - call("floor", p), q - call("floor", q)
        top, bottom = a + (c - a) * right, d + (e - d) * right
        return select(outside(p, q), fill, top + (bottom - top) * down)

    corners = [at((up, right)) for up in (False, True) for right in (False, True)]
    return b.map(blended, *corners, *wide, dtype=x.dtype)


def _places(b: Builder, size: tir.Expr, boxes: Value, dim: int, count: tir.Expr) -> Value:
    """[boxes, count]: where a dimension is read, in elements."""
    first, last = (cut(b, boxes, 1, tir.Const(k), tir.Const(1)) for k in (dim, dim + 2))
    number = b.tabulate((count,), lambda i: i)
    wide = computed_as(boxes.dtype)

    def place(p: tir.Expr, q: tir.Expr, i: tir.Expr) -> tir.Expr:
        length, steps = (size - 1).to(wide), (count - 1).to(wide)
        along = p * length + i.to(wide) * ((q - p) * length / steps)
        return select(count.eq(1), (p + q) * 0.5 * length, along)

    return b.map(place, first, last, number, dtype=wide)
