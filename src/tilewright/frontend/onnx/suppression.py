"""`NonMaxSuppression`: the best boxes of each class, without those that overlap a better one.

All boxes whose score is high enough are one list, sorted by batch and class, then by score; one
walk over it keeps or drops each of them.
"""

from __future__ import annotations

import numpy as np

from tilewright.dtypes import DType, f32, i32, i64
from tilewright.frontend.onnx.conversions import converted
from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.frontend.onnx.sorting import chosen_places
from tilewright.frontend.onnx.taking import take
from tilewright.graph import Builder, Value
from tilewright.graph.ops import axis, picked
from tilewright.graph.ops.gather import Gather
from tilewright.graph.ops.sort import Order
from tilewright.graph.ops.suppress import Suppress
from tilewright.graph.sizes import fixed, product
from tilewright.tensor import ir as tir

__all__: list[str] = []


@onnx_op("NonMaxSuppression")
def non_max_suppression(
    b: Builder,
    node: OnnxNode,
    boxes: Value,
    scores: Value,
    most: Value | None = None,
    overlap: Value | None = None,
    least: Value | None = None,
) -> Value:
    """Rows of batch, class and box; at most `most` for each class, and none without it."""
    batch, classes, count = scores.shape
    if fixed(product(scores.shape)) == 0:
        return b.constant(np.zeros((0, 3), np.int64), "none")
    places = _candidates(b, scores, least)
    group = b.map(lambda p: p // count, places)
    halves = _halves(b, boxes, places, product([classes, count]), count)
    ends = _around if node.int("center_point_box") else _between
    sides = [side for pair in zip(*halves, strict=True) for side in ends(b, *pair)]
    limits = [_single(b, most, i64), _single(b, overlap, f32)]
    kept = b.add(Suppress(), *sides, group, *limits)
    found = take(b, places, chosen_places(b, kept), 0)
    column = b.reshape(found, (found.shape[0], 1))
    steps = b.sizes([product([classes, count]), count, 1])
    return b.map(lambda p, s, d: p // s % d, column, steps, b.sizes([batch, classes, count]))


def _candidates(b: Builder, scores: Value, least: Value | None) -> Value:
    """The places of scores above `least` in the flat tensor, by class and from the best on."""
    flat = b.reshape(scores, (product(scores.shape),))
    if least is None:
        places = b.tabulate(flat.shape, lambda i: i)
    else:
        enough = b.map(lambda v, t: v > t, flat, b.reshape(least, (1,)))
        places = chosen_places(b, enough)
    length = places.shape[0]
    best = take(b, flat, places, 0) if least is not None else flat
    places = take(b, places, b.add(Order(length, descending=True), best), 0)
    if fixed(product(scores.shape[:2])) == 1:
        return places
    classes = b.map(lambda p: (p // scores.shape[2]).to(i32), places, dtype=i32)
    return take(b, places, b.add(Order(length), classes), 0)


Halves = tuple[list[Value], list[Value]]


def _halves(b: Builder, boxes: Value, places: Value, whole: tir.Expr, count: tir.Expr) -> Halves:
    """The first two numbers of each box, and the last two."""
    shape = (places.shape[0],)

    def column(k: int) -> Value:
        at = (picked(0) // whole, picked(0) % count, tir.Const(k))
        return b.add(Gather(shape, ((1, (axis(0),)),), at), boxes, places)

    return [column(0), column(1)], [column(2), column(3)]


def _between(b: Builder, one: Value, other: Value) -> tuple[Value, Value]:
    """Low and high of two corners in any order."""
    return b.map(tir.minimum, one, other), b.map(tir.maximum, one, other)


def _around(b: Builder, centre: Value, size: Value) -> tuple[Value, Value]:
    """Low and high of a middle and a length."""
    return (
        b.map(lambda c, s: c - s * 0.5, centre, size),
        b.map(lambda c, s: c + s * 0.5, centre, size),
    )


def _single(b: Builder, value: Value | None, dtype: DType) -> Value:
    """A vector of one element; zero if it is left out."""
    if value is None or fixed(product(value.shape)) == 0:
        return b.constant([0], "zero", dtype)
    return converted(b, b.reshape(value, (1,)), dtype)
