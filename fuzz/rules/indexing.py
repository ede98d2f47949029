"""Operators that read or write at indices, and those whose size depends on values."""

from __future__ import annotations

from typing import Final

import numpy as np
from onnx import TensorProto

from fuzz.case import Array
from fuzz.grow import Dim, Growth, Value, require
from fuzz.rules.reductions import axis_of
from fuzz.values import is_float

__all__ = ["RULES"]


def _indices(
    g: Growth, op: str, dims: list[Dim], size: int, *, distinct: bool = False, last: int = 0
) -> Value:
    """Numbers below `size`, from either end; all different along the axis `last` if asked for."""
    kind = g.draw.choice(g.types(op, 1))
    dtype = np.int64 if kind == TensorProto.INT64 else np.int32

    def make(shape: tuple[int, ...]) -> Array:
        rng = np.random.default_rng(g.draw.getrandbits(63))
        if distinct:
            order = np.argsort(rng.random((*shape[:last], size, *shape[last + 1 :])), axis=last)
            found = order.take(range(shape[last]), axis=last)
        else:
            found = rng.integers(0, size, shape)
        if g.opset >= 11:
            found = np.where(rng.random(shape) < 0.3, found - size, found)
        return found.astype(dtype)

    return g.new(kind, dims, make=make, constant=0.5)


def _least(value: Value, axis: int) -> int:
    size: int = min(a.shape[axis] for a in value.arrays)
    require(size, "nothing to index")
    return size


def gather(g: Growth, op: str) -> None:
    x = g.pick(g.types(op), low=1, high=4)
    axis = axis_of(g, x)
    require(g.draw.random() < 0.5 or len({a.shape[axis] for a in x.arrays}) == 1)
    size = _least(x, axis)
    require(g.opset < 11 or size == max(a.shape[axis] for a in x.arrays), "from behind differs")
    g.add(op, [x, _indices(g, op, g.dims(0, 2), size)], axis=axis)


def gather_elements(g: Growth, op: str) -> None:
    x = g.pick(g.types(op), low=1, high=4)
    axis = axis_of(g, x)
    size = _least(x, axis)
    dims = [g.draw.choice((d, d, 1)) if isinstance(d, int) and d else d for d in g.dims_of(x)]
    dims[axis] = g.draw.choice((1, 2, size))
    g.add(op, [x, _indices(g, op, dims, size)], axis=axis)


def gather_nd(g: Growth, op: str) -> None:
    x = g.pick(g.types(op), low=1, high=4)
    batch = g.draw.choice((0, 0, 1)) if g.opset >= 12 and x.rank > 1 else 0
    depth = g.draw.randint(1, x.rank - batch)
    size = min(_least(x, k) for k in range(batch, batch + depth))
    dims = [*g.dims_of(x)[:batch], *g.dims(0, 2), depth]
    g.add(op, [x, _positive(g, dims, size)], batch_dims=batch if g.opset >= 12 else None)


def _positive(g: Growth, dims: list[Dim], size: int) -> Value:
    def make(shape: tuple[int, ...]) -> Array:
        return np.random.default_rng(g.draw.getrandbits(63)).integers(0, size, shape)

    return g.new(TensorProto.INT64, dims, make=make, constant=0.5)


ORDERED: Final = ("min", "max")


def _has_order(value: Value) -> bool:
    return not is_float(value.dtype) or value.all(
        lambda a: not np.isnan(a.astype(np.float64)).any()
    )


def scatter_elements(g: Growth, op: str) -> None:
    """Indices differ along the axis unless values are combined."""
    x = g.pick(g.types(op), low=1, high=3)
    axis = axis_of(g, x) % x.rank
    size = _least(x, axis)
    dims = g.dims_of(x)
    dims[axis] = g.draw.randint(1, size)
    modes = (
        ["none"]
        + (["add", "mul"] if g.opset >= 16 else [])
        + (["min", "max"] if g.opset >= 18 else [])
    )
    mode = g.draw.choice(modes)
    require(x.type != TensorProto.STRING or mode == "none")
    indices = _indices(g, op, dims, size, distinct=mode == "none", last=axis)
    updates = g.new(x.type, dims)
    require(mode not in ORDERED or (_has_order(x) and _has_order(updates)), "NaN has no place")
    g.add(op, [x, indices, updates], axis=axis, reduction=None if mode == "none" else mode)


def scatter_nd(g: Growth, op: str) -> None:
    x = g.pick(g.types(op), low=1, high=3)
    size, rest = _least(x, 0), g.dims_of(x)[1:]
    count = g.draw.randint(1, size)
    modes = (
        ["none"]
        + (["add", "mul"] if g.opset >= 16 else [])
        + (["min", "max"] if g.opset >= 18 else [])
    )
    mode = g.draw.choice(modes)
    require(x.type != TensorProto.STRING or mode == "none")

    def make(_: tuple[int, ...]) -> Array:
        rng = np.random.default_rng(g.draw.getrandbits(63))
        drawn = rng.permutation(size)[:count] if mode == "none" else rng.integers(0, size, count)
        return drawn.reshape(count, 1).astype(np.int64)

    indices = g.new(TensorProto.INT64, [count, 1], make=make, constant=0.5)
    updates = g.new(x.type, [count, *rest])
    require(mode not in ORDERED or (_has_order(x) and _has_order(updates)), "NaN has no place")
    g.add(op, [x, indices, updates], reduction=None if mode == "none" else mode)


def non_zero(g: Growth, op: str) -> None:
    x = g.pick([t for t in g.types(op) if t != TensorProto.STRING], low=1)
    g.add(op, [x])


def compress(g: Growth, op: str) -> None:
    x = g.pick(g.types(op), low=1)
    axis = axis_of(g, x) if g.draw.random() < 0.7 else None
    size = min(a.size if axis is None else a.shape[axis] for a in x.arrays)
    require(size, "nothing to choose from")
    count = g.draw.randint(1, min(size, 12))
    g.add(op, [x, g.new(TensorProto.BOOL, [count])], axis=axis)


def unique(g: Growth, op: str) -> None:
    x = g.pick([t for t in g.types(op) if t != TensorProto.STRING], low=1, high=3)
    require(x.all(lambda a: a.size and not np.isnan(a.astype(np.float64)).any()))
    axis = axis_of(g, x) if g.draw.random() < 0.5 else None
    kept = [True, *(g.draw.random() < 0.5 for _ in range(3))]
    g.add(op, [x], kept, axis=axis, sorted=g.draw.randint(0, 1))


def non_max_suppression(g: Growth, op: str) -> None:
    boxes, classes, batch = g.draw.randint(1, 8), g.draw.randint(1, 3), g.draw.randint(1, 2)
    rng = np.random.default_rng(g.draw.getrandbits(63))
    corners = rng.uniform(0, 1, (batch, boxes, 2))
    places = np.concatenate([corners, corners + rng.uniform(0.05, 0.5, corners.shape)], -1)
    scores = rng.permutation(batch * classes * boxes).reshape(batch, classes, boxes) / 50
    given = [g.parameter(a.astype(np.float32)) for a in (places, scores)]
    given.append(g.parameter(np.array(g.draw.randint(0, 5), np.int64)))
    given.append(g.parameter(np.array(round(g.draw.uniform(0, 0.9), 2), np.float32)))
    if g.draw.random() < 0.6:
        given.append(g.parameter(np.array(round(g.draw.uniform(0, 0.3), 3), np.float32)))
    g.add(op, given, center_point_box=g.draw.randint(0, 1))


RULES: Final = {
    "Compress": compress,
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "NonMaxSuppression": non_max_suppression,
    "NonZero": non_zero,
    "Scatter": scatter_elements,
    "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd,
    "Unique": unique,
}
