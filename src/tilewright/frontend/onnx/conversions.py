"""Operators that change types, or nothing at all.

Small floats follow the tables of the Cast operator. Where these leave a choice, or the reference
implementation departs from them, tests/numeric/test_small_floats.py says what is taken.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.dtypes import DType, FloatFormat, f8e8m0, f32, f64, i32, u8
from tilewright.frontend.onnx.node import OnnxNode, dtype_of_onnx
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.frontend.onnx.scope import Item
from tilewright.graph import Builder, Value
from tilewright.graph.ops import Map, argument, computed_as
from tilewright.tensor import ir as tir
from tilewright.tensor.build import select

__all__ = ["converted", "held"]

LEAST_SCALE, GREATEST_SCALE, INFINITY = 0x400000, 0x7F000000, 0x7F800000
"""The bits as `f32` of 2**-127 and 2**127, between which scales lie, and of infinity."""

HALF_UP = {"up": 0x7FFFFF, "nearest": 0x400000, "down": 0}
"""What is added to a number before all but its exponent is cut off."""


def converted(
    b: Builder, x: Value, dtype: DType, *, saturates: bool = True, mode: str = "up"
) -> Value:
    """The same numbers as another type; into narrow floats they are rounded once, when stored."""
    if x.dtype == dtype:
        return x
    stored = computed_as(dtype) != dtype

    def body(v: tir.Expr) -> tir.Expr:
        if dtype == f8e8m0:
            return _scale(_single(v), HALF_UP[mode], saturates=saturates)
        if dtype.format is not None:
            return held(_single(v), dtype.format) if saturates else _single(v)
        return v if stored and v.dtype.is_float else v.to(computed_as(dtype))

    return b.map(body, x, dtype=dtype)


def held(v: tir.Expr, form: FloatFormat) -> tir.Expr:
    """A number held in the range of a small float; NaN stays."""
    if form.nan is None:  # nothing lies beyond the range
        return v
    end = tir.const(form.max_value, v.dtype)
    low = select(end < v, end, v)
    return select(low < -form.max_value, tir.const(-form.max_value, v.dtype), low)


def _single(v: tir.Expr) -> tir.Expr:
    """As `f32`; of `f64` such that to round once more is to round once.

    It is rounded toward zero, and the last bit says that something was cut off.
    """
    if v.dtype != f64:
        return v.to(f32)
    nearest = v.to(f32)
    back, bits = nearest.to(f64), tir.Reinterpret(i32, nearest)
    outward = select(v < 0.0, back < v, v < back)
    inward = select(outward, bits - 1, bits)
    return tir.Reinterpret(f32, select(back.ne(v) & v.eq(v), inward | 1, bits))


def _scale(v: tir.Expr, added: int, *, saturates: bool) -> tir.Expr:
    """A power of two: the exponent of a number, after it is rounded. There is no sign."""
    size = tir.Reinterpret(i32, v) & 0x7FFFFFFF
    inside = tir.maximum(tir.minimum(size, GREATEST_SCALE), LEAST_SCALE)
    # The least scale is subnormal as `f32`: its mantissa begins a bit later.
    normal = select(inside < 0x800000, (inside - LEAST_SCALE) * 2, inside)
    refused = size > INFINITY if saturates else inside.ne(size)
    return tir.Reinterpret(f8e8m0, select(refused, 0xFF, (normal + added) >> 23).to(u8))


@onnx_op("Cast")
def cast(b: Builder, node: OnnxNode, x: Value) -> Value:
    """The type of an attribute."""
    return _cast(b, node, x, dtype_of_onnx(node.int("to")))


@onnx_op("CastLike")
def cast_like(b: Builder, node: OnnxNode, x: Value, like: Value) -> Value:
    """The type of another tensor."""
    return _cast(b, node, x, like.dtype)


def _cast(b: Builder, node: OnnxNode, x: Value, dtype: DType) -> Value:
    mode = node.string("round_mode", "up")
    if mode not in HALF_UP:
        node.decline(f"round_mode {mode}")
    return converted(b, x, dtype, saturates=bool(node.int("saturate", 1)), mode=mode)


@onnx_op("BitCast")
def bit_cast(b: Builder, node: OnnxNode, x: Value) -> Value:
    """The same bits as another type; a bool is a byte."""
    dtype = dtype_of_onnx(node.int("to"))
    wide = [u8 if t.is_bool else t for t in (x.dtype, dtype)]
    if wide[0].bits != wide[1].bits:
        node.decline(f"bits of {x.dtype} as {dtype}")
    if x.dtype == dtype:
        return x
    stored = argument(0, x.dtype)
    value = stored.to(u8) if x.dtype.is_bool else stored
    value = value if value.dtype == wide[1] else tir.Reinterpret(wide[1], value)
    return b.add(Map(value.ne(0) if dtype.is_bool else value, 1, dtype), x)


@onnx_op("Identity", sequences=True)
def identity(b: Builder, node: OnnxNode, x: Item) -> Sequence[Item]:
    """The tensor itself, or whatever else it is."""
    return [x]
