"""Tensors that are known, or follow from shapes."""

from __future__ import annotations

import math

import numpy as np

from tilewright.dtypes import DType, dtype_of, i64, u64
from tilewright.frontend.onnx.node import OnnxNode, dtype_of_onnx
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.frontend.onnx.sparse import paid_dense
from tilewright.frontend.onnx.told import along, counted, elements
from tilewright.graph import Builder, Value
from tilewright.graph.builder import MAX_SYMBOLIC
from tilewright.graph.folding import MAX_KNOWN, MAX_RANK
from tilewright.graph.ir import Array
from tilewright.graph.sizes import fixed, tidy
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call, select

__all__: list[str] = []


@onnx_op("Constant")
def constant(b: Builder, node: OnnxNode) -> Value:
    """One of the attributes that hold a value."""
    name = node.proto.output[0]
    if node.has("value"):
        held = _known_type(node, "value")
        b.purse.fill(held.size)
        return b.constant(held, name)
    for attribute, dtype in (("value_int", np.int64), ("value_float", np.float32)):
        for form in (attribute, f"{attribute}s"):
            if node.has(form):
                return b.constant(np.array(node.attributes[form], dtype=dtype), name)
    if node.has("sparse_value"):
        dense = paid_dense(node.attributes["sparse_value"], b.purse)
        if dense is None:
            raise ValueError("a sparse tensor that stands for too many elements")
        return b.constant(dense, name)
    return node.decline(f"the form {', '.join(node.attributes)}")


def _known_type(node: OnnxNode, attribute: str) -> Array:
    """A tensor attribute; declined if its elements are strings, complex numbers, …"""
    array = node.attributes[attribute]
    if not isinstance(array, np.ndarray):
        raise TypeError(f"the attribute `{attribute}` is no tensor")
    try:
        dtype_of(array.dtype)
    except TypeError:
        node.decline(f"elements of type {array.dtype}")
    return np.asarray(array)


@onnx_op("ConstantOfShape")
def constant_of_shape(b: Builder, node: OnnxNode, shape: Value) -> Value:
    """One value everywhere."""
    held = _known_type(node, "value") if node.has("value") else np.zeros(1, np.float32)
    value = b.constant(held.reshape(()), "value")
    dims = elements(b, node, "sizes", shape)
    if len(dims) > MAX_RANK:
        raise ValueError(f"a tensor of {len(dims)} dimensions")
    told = {k: counted(b, d) for k, d in enumerate(dims) if isinstance(d, Value)}
    if told:
        value = b.map(lambda v, *_: v, value, *(along(b, told[k], k, len(dims)) for k in told))
    return b.expand(
        value, [d if isinstance(d, tir.Expr) else told[k].shape[0] for k, d in enumerate(dims)]
    )


@onnx_op("EyeLike")
def eye_like(b: Builder, node: OnnxNode, x: Value) -> Value:
    """Ones on a diagonal."""
    dtype = dtype_of_onnx(node.int("dtype")) if node.has("dtype") else x.dtype
    one = b.constant(1, "one", dtype)
    shift = node.int("k")
    return b.remap(one, x.shape, lambda *_: (), inside=lambda i, j: (j - i).eq(shift))


@onnx_op("Range")
def arange(b: Builder, node: OnnxNode, start: Value, limit: Value, step: Value) -> Value:
    """start, start + step, … up to the limit."""
    held = [b.contents(v) for v in (start, limit, step)]
    if all(h is not None and h.dtype != object for h in held):
        first, end, by = (b.constants[v].item() for v in (start, limit, step))
        if _count(first, end, by) <= MAX_KNOWN:
            return b.constant(_numbers(first, end, by), "range", start.dtype)
    parts = [p for v in (start, limit, step) if (p := b.integers(v)) is not None]
    if len(parts) == 3:
        return _counted(b, parts[0][0], parts[1][0], parts[2][0], start.dtype)
    start, limit, step = (b.reshape(v, ()) for v in (start, limit, step))
    length = b.map(_steps, start, limit, step, dtype=i64)
    return b.map(
        lambda i, first, by: first + i.to(first.dtype) * by,
        counted(b, length),
        start,
        step,
        dtype=start.dtype,
    )


def _steps(start: tir.Expr, limit: tir.Expr, step: tir.Expr) -> tir.Expr:
    """How many steps lie between, rounded up; none if the step leads away.

    Integers may be further apart than the greatest of them, so distances have no sign. Without a
    step there is no end, and no number: -1.
    """
    if not start.dtype.is_float:
        first, end, by = (v.to(i64) for v in (start, limit, step))
        ahead, back = (u.to(u64) - v.to(u64) for u, v in ((end, first), (first, end)))
        up, down = by.to(u64), tir.const(0, u64) - by.to(u64)
        rises = by > 0
        distance = select(rises, ahead, back)
        stride = tir.maximum(select(rises, up, down), tir.const(1, u64))
        count = ((distance - tir.const(1, u64)) // stride + tir.const(1, u64)).to(i64)
        leads = select(rises, first < end, first > end)
        return select(by.eq(0), -1, select(leads, count, 0))
    return tir.maximum(call("ceil", (limit - start) / step), 0).to(i64)


def _counted(b: Builder, start: tir.Expr, limit: tir.Expr, step: tir.Expr, dtype: DType) -> Value:
    length = tidy(tir.maximum(-((start - limit) // step), 0))
    count = fixed(length)
    if count is not None and count <= MAX_SYMBOLIC:
        return b.sizes([start + step * i for i in range(count)], dtype)
    return b.tabulate((length,), lambda i: start + step * i, dtype)


def _numbers(start: float, limit: float, step: float) -> Array:
    """In the widest type, so that their number is exact."""
    return np.asarray(start + np.arange(_count(start, limit, step)) * step)


def _count(start: float, limit: float, step: float) -> int:
    return max(math.ceil((limit - start) / step), 0)
