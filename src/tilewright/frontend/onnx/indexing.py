"""Elements at places that tensors hold: gathering, scattering, one-hot vectors.

Places that are known when the model is read, and evenly spaced, make a plain slice.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from tilewright.dtypes import i64, u8
from tilewright.frontend.onnx.conversions import converted
from tilewright.frontend.onnx.movement import cut
from tilewright.frontend.onnx.node import OnnxNode, normal_axis
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.frontend.onnx.taking import take, take_along
from tilewright.graph import Builder, Value
from tilewright.graph.ops import axis, picked
from tilewright.graph.ops.gather import Gather
from tilewright.graph.ops.scatter import Scatter
from tilewright.graph.sizes import filled, fixed, tidy, variables
from tilewright.tensor import ir as tir

__all__ = ["known_scalar"]

FOLDS = {
    "none": None,
    "add": tir.Fold.ADD,
    "mul": tir.Fold.MUL,
    "max": tir.Fold.MAX,
    "min": tir.Fold.MIN,
}
TRUTHS = {
    tir.Fold.ADD: tir.Fold.MAX,
    tir.Fold.MUL: tir.Fold.MIN,
    tir.Fold.MAX: tir.Fold.MAX,
    tir.Fold.MIN: tir.Fold.MIN,
}


@onnx_op("Gather")
def gather(b: Builder, node: OnnxNode, data: Value, indices: Value) -> Value:
    """Slices of a dimension, by number."""
    along = normal_axis(node.int("axis"), data.rank)
    even = _evenly_spaced(b, indices, data.shape[along])
    if even is not None:
        first, step = even
        count = indices.shape[0] if indices.rank else tir.Const(1)
        part = cut(b, data, along, first, count, step)
        return b.reshape(part, [*data.shape[:along], *indices.shape, *data.shape[along + 1 :]])
    return take(b, data, indices, along)


def _evenly_spaced(b: Builder, indices: Value, dim: tir.Expr) -> tuple[tir.Expr, int] | None:
    """(first, step) if the indices of a vector or scalar are known and form a slice."""
    places = b.integers(indices) if indices.rank <= 1 else None
    if not places:
        return None
    front = [tidy(tir.Select(p < 0, p + dim, p)) for p in places]
    steps = {fixed(tidy(q - p)) for p, q in pairwise(front)} or {1}
    ends = (front[0], front[-1])
    some = filled((dim,), variables((dim, *ends)))  # of an empty dimension nothing can be taken
    within = all(some.prove((tir.Const(0) <= p) & (p < dim)) is True for p in ends)
    (step, *others) = steps
    return (front[0], step) if step and not others and within else None


@onnx_op("GatherElements")
def gather_elements(b: Builder, node: OnnxNode, data: Value, indices: Value) -> Value:
    """For each element of `indices` the one at its own place, but for one dimension."""
    return take_along(b, data, indices, normal_axis(node.int("axis"), data.rank))


@onnx_op("GatherND")
def gather_nd(b: Builder, node: OnnxNode, data: Value, indices: Value) -> Value:
    """Vectors along the last dimension of `indices` say places in the leading dimensions."""
    batch = node.int("batch_dims")
    depth = _depth(node, indices)
    shape = (*indices.shape[:-1], *data.shape[batch + depth :])
    o = tuple(axis(k) for k in range(len(shape)))
    behind = indices.rank - 1
    reads = tuple((1, (*o[:behind], tir.Const(n))) for n in range(depth))
    places = (*o[:batch], *(picked(n) for n in range(depth)), *o[behind:])
    return b.add(Gather(shape, reads, places), data, indices)


def _depth(node: OnnxNode, indices: Value) -> int:
    """How many dimensions the vectors in `indices` index."""
    depth = fixed(indices.shape[-1])
    return node.decline("the length of index vectors is not known") if depth is None else depth


def _scattered(b: Builder, node: OnnxNode, op: Scatter, *values: Value) -> Value:
    """Data with updates at indices, combined as the node says.

    Sums of truth values are `or`, products `and`: greatest and least values of numbers.
    """
    fold, (data, updates, indices) = FOLDS[node.string("reduction", "none")], values
    if fold is None or not data.dtype.is_bool:
        return b.add(replace(op, fold=fold), data, updates, indices)
    numbers = (converted(b, value, u8) for value in (data, updates))
    return converted(b, b.add(replace(op, fold=TRUTHS[fold]), *numbers, indices), data.dtype)


@onnx_op("ScatterElements", "Scatter")
def scatter_elements(
    b: Builder, node: OnnxNode, data: Value, indices: Value, updates: Value
) -> Value:
    """Each element of `updates` goes to its own place, but for one dimension."""
    along = normal_axis(node.int("axis"), data.rank)
    o = tuple(axis(k) for k in range(data.rank))
    places = (*o[:along], picked(0), *o[along + 1 :])
    return _scattered(b, node, Scatter(((2, o),), places), data, updates, indices)


@onnx_op("ScatterND")
def scatter_nd(b: Builder, node: OnnxNode, data: Value, indices: Value, updates: Value) -> Value:
    """Slices of `updates` go where vectors along the last dimension of `indices` say."""
    depth = _depth(node, indices)
    o = tuple(axis(k) for k in range(updates.rank))
    behind = indices.rank - 1
    reads = tuple((2, (*o[:behind], tir.Const(n))) for n in range(depth))
    places = (*(picked(n) for n in range(depth)), *o[behind:])
    return _scattered(b, node, Scatter(reads, places), data, updates, indices)


@onnx_op("TensorScatter")
def tensor_scatter(
    b: Builder, node: OnnxNode, past: Value, update: Value, first: Value | None = None
) -> Value:
    """A cache in which a stretch of one dimension is new, for each member of a batch elsewhere."""
    along = normal_axis(node.int("axis", -2), past.rank)
    o = tuple(axis(k) for k in range(past.rank))
    place = o[along] if first is None else picked(0) + o[along]
    if node.string("mode", "linear") == "circular":
        place = place % past.shape[along]
    places = (*o[:along], place, *o[along + 1 :])
    if first is None:
        return b.add(Scatter((), places), past, update)
    return b.add(Scatter(((2, (o[0],)),), places), past, update, first)


@onnx_op("OneHot")
def one_hot(b: Builder, node: OnnxNode, indices: Value, depth: Value, values: Value) -> Value:
    """A new dimension in which one element, at the index, has another value than the rest."""
    along = normal_axis(node.int("axis", -1), indices.rank + 1)
    length = known_scalar(b, node, "depth", depth)
    wide = (*indices.shape[:along], tir.Const(1), *indices.shape[along:])
    place = b.reshape(b.map(lambda v: v.to(i64), indices, dtype=i64), wide)
    numbers = b.tabulate((length,), lambda o: o, i64)
    along_depth = b.reshape(numbers, (length, *[1] * (indices.rank - along)))
    off, on = (b.reshape(cut(b, values, 0, tir.Const(k), tir.Const(1)), ()) for k in (0, 1))

    def element(i: tir.Expr, k: tir.Expr, x: tir.Expr, y: tir.Expr) -> tir.Expr:
        return tir.Select(i.eq(k) | (i + length).eq(k), y, x)

    return b.map(element, place, along_depth, off, on, dtype=values.dtype)


def known_scalar(b: Builder, node: OnnxNode, name: str, given: Value) -> tir.Expr:
    """The number or size that a tensor of one element holds."""
    found = b.contents(given)
    if found is not None and found.dtype != object:
        return tir.Const(int(found.item()))
    held = b.integers(given)
    return node.decline(f"{name} depends on data") if held is None else held[0]


@onnx_op("ReverseSequence")
def reverse_sequence(b: Builder, node: OnnxNode, x: Value, lengths: Value) -> Value:
    """The first elements along time in reverse, as many as each member of the batch has."""
    time, batch = node.int("time_axis"), node.int("batch_axis", 1)
    o = tuple(axis(k) for k in range(x.rank))
    turned = tir.Select(o[time] < picked(0), picked(0) - 1 - o[time], o[time])
    places = (*o[:time], turned, *o[time + 1 :])
    return b.add(Gather(x.shape, ((1, (o[batch],)),), places), x, lengths)
