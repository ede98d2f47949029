"""Operators that change types, or nothing at all."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.dtypes import DType, boolean
from tilewright.frontend.onnx.node import OnnxNode, dtype_of_onnx
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.graph import Builder, Value
from tilewright.graph.ops import computed_as
from tilewright.tensor import ir as tir

__all__ = ["converted"]


def converted(b: Builder, x: Value, dtype: DType) -> Value:
    """The same numbers as another type; into narrow floats they are rounded once, when stored."""
    if x.dtype == dtype:
        return x
    stored = computed_as(dtype) != dtype

    def body(v: tir.Expr) -> tir.Expr:
        return v if stored and v.dtype.is_float else v.to(computed_as(dtype))

    return b.map(body, x, dtype=dtype)


@onnx_op("Cast")
def cast(b: Builder, node: OnnxNode, x: Value) -> Value:
    """The type of an attribute."""
    return converted(b, x, dtype_of_onnx(node.int("to")))


@onnx_op("CastLike")
def cast_like(b: Builder, node: OnnxNode, x: Value, like: Value) -> Value:
    """The type of another tensor."""
    return converted(b, x, like.dtype)


@onnx_op("BitCast")
def bit_cast(b: Builder, node: OnnxNode, x: Value) -> Value:
    """The same bits as another type."""
    dtype = dtype_of_onnx(node.int("to"))
    if any(t.is_bool or computed_as(t) != t for t in (x.dtype, dtype)):
        node.decline("bits of a type that is only stored")
    return b.map(lambda v: v if v.dtype == dtype else tir.Reinterpret(dtype, v), x)


@onnx_op("Identity")
def identity(b: Builder, node: OnnxNode, x: Value) -> Value:
    """The tensor itself."""
    return x


@onnx_op("Dropout")
def dropout(
    b: Builder,
    node: OnnxNode,
    x: Value,
    ratio: Value | None = None,
    training: Value | None = None,
) -> Sequence[Value]:
    """Nothing is dropped outside of training."""
    drops = ratio is None or b.contents(ratio) is None or float(b.constants[ratio].item()) != 0
    if training is not None and drops and not _is_false(b, training):
        node.decline("training mode")
    if not node.wants(1):
        return (x,)
    return x, b.expand(b.constant(1, "mask", boolean), x.shape)


def _is_false(b: Builder, value: Value) -> bool:
    held = b.contents(value)
    return held is not None and not held.any()
