"""Operators that change types, or nothing at all."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.dtypes import DType, boolean
from tilewright.frontend.onnx.node import OnnxNode, dtype_of_onnx
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.graph import Builder, Value
from tilewright.graph.ops import computed_as

__all__ = ["converted"]


def converted(b: Builder, x: Value, dtype: DType) -> Value:
    """The same numbers as another type; into narrow floats they are rounded once, when stored."""
    if x.dtype == dtype:
        return x
    stored = computed_as(dtype) != dtype
    return b.map(lambda v: v if stored and v.dtype.is_float else v.to(computed_as(dtype)), x, dtype=dtype)


@onnx_op("Cast")
def cast(b: Builder, node: OnnxNode, x: Value) -> Value:
    """The type of an attribute."""
    return converted(b, x, dtype_of_onnx(node.int("to")))


@onnx_op("CastLike")
def cast_like(b: Builder, node: OnnxNode, x: Value, like: Value) -> Value:
    """The type of another tensor."""
    return converted(b, x, like.dtype)


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
    mask = b.expand(b.constant(True, name="mask", dtype=boolean), x.shape) if node.wants(1) else x
    return (x, mask)


def _is_false(b: Builder, value: Value) -> bool:
    held = b.contents(value)
    return held is not None and not held.any()
