"""Quantised tensors as the floats that they stand for, and back."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.dtypes import i32
from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.quantization import Quantized, aligned, saturated
from tilewright.frontend.onnx.registry import Handler
from tilewright.graph import Builder, Value
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call

__all__ = ["as_floats", "as_small", "on_floats"]


def as_floats(b: Builder, x: Quantized) -> Value:
    """What quantised numbers stand for."""
    parts = [aligned(b, p, x.values, 0) for p in (x.scale, x.zero) if p is not None]

    def body(v: tir.Expr, s: tir.Expr, z: tir.Expr | None = None) -> tir.Expr:
        return (v.to(i32) if z is None else v.to(i32) - z.to(i32)).to(s.dtype) * s

    return b.map(body, x.values, *parts)


def as_small(b: Builder, x: Value, scale: Value, zero: Value | None, like: Value) -> Value:
    """Floats quantised, in the type of the zero point, or of `like`."""
    offset = b.constant(0, "zero", like.dtype) if zero is None else zero
    dtype = offset.dtype
    parts = [aligned(b, p, x, 0) for p in (scale, offset)]
    return b.map(lambda v, s, z: saturated(call("round", v / s) + z.to(v.dtype), dtype), x, *parts)


def on_floats(function: Callable[[Builder, OnnxNode, Value], Value]) -> Handler:
    """A handler for one quantised tensor, given what becomes of the floats that it stands for."""

    def handler(
        b: Builder,
        node: OnnxNode,
        x: Value,
        x_scale: Value,
        x_zero: Value | None,
        scale: Value,
        zero: Value | None = None,
    ) -> Value:
        floats = as_floats(b, Quantized(x, x_scale, x_zero))
        return as_small(b, function(b, node, floats), scale, zero, x)

    handler.__doc__ = function.__doc__
    return handler
