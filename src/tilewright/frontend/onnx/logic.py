"""Comparisons, logic, bits, and choices between values."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Final

import numpy as np

from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.frontend.onnx.shapes import aligned
from tilewright.graph import Builder, Value
from tilewright.tensor import ir as tir
from tilewright.tensor.build import call, select

__all__: list[str] = []

LARGEST: Final = float(np.finfo(np.float32).max)

BINARY: Final[dict[str, Callable[[tir.Expr, tir.Expr], tir.Expr]]] = {
    "Equal": lambda x, y: x.eq(y),
    "Less": lambda x, y: x < y,
    "Greater": lambda x, y: x > y,
    "LessOrEqual": lambda x, y: x <= y,
    "GreaterOrEqual": lambda x, y: x >= y,
    "And": lambda x, y: x & y,
    "Or": lambda x, y: x | y,
    "Xor": lambda x, y: x ^ y,
    "BitwiseAnd": lambda x, y: x & y,
    "BitwiseOr": lambda x, y: x | y,
    "BitwiseXor": lambda x, y: x ^ y,
}


@onnx_op(*BINARY)
def binary(b: Builder, node: OnnxNode, x: Value, y: Value) -> Value:
    """Two operands, broadcast together."""
    return b.map(BINARY[node.op], x, aligned(b, node, x, y))


@onnx_op("Not", "BitwiseNot")
def invert(b: Builder, node: OnnxNode, x: Value) -> Value:
    """The other truth value, or the other bits."""
    return b.map(lambda v: ~v, x)


@onnx_op("BitShift")
def bit_shift(b: Builder, node: OnnxNode, x: Value, amount: Value) -> Value:
    """Bits moved left or right; by too much only the sign is left, and that by a right shift."""
    left = node.string("direction") == "LEFT"

    def body(v: tir.Expr, n: tir.Expr) -> tir.Expr:
        last = v.dtype.bits - 1
        fits = (n >= 0) & (n <= last) if n.dtype.is_signed else n <= last
        held = select(fits, n, last)
        moved = v << held if left else v >> held
        return moved if v.dtype.is_signed and not left else select(fits, moved, 0)

    return b.map(body, x, amount)


@onnx_op("IsNaN")
def is_nan(b: Builder, node: OnnxNode, x: Value) -> Value:
    """Whether a value is no number."""
    return b.map(lambda v: v.ne(v), x)


@onnx_op("IsInf")
def is_infinite(b: Builder, node: OnnxNode, x: Value) -> Value:
    """Whether a value is infinite, of one sign or of both."""
    positive, negative = node.int("detect_positive", 1), node.int("detect_negative", 1)
    infinity = float("inf")

    def body(v: tir.Expr) -> tir.Expr:
        if positive and negative:
            return call("abs", v).eq(infinity)
        if positive or negative:
            return v.eq(infinity if positive else -infinity)
        return v.ne(v) & v.eq(v)

    return b.map(body, x)


@onnx_op("Where")
def where(b: Builder, node: OnnxNode, condition: Value, x: Value, y: Value) -> Value:
    """One of two values, by a condition."""
    return b.map(select, condition, x, y)


@onnx_op("Clip")
def clip(
    b: Builder, node: OnnxNode, x: Value, low: Value | None = None, high: Value | None = None
) -> Value:
    """Values held between two bounds, of which the upper one wins.

    Before opset 11 they are attributes; those that are left out are the ends of f32, so that there
    is no infinity among the results.
    """
    if node.opset < 11:
        low, high = (_attribute(b, node, name, x) for name in ("min", "max"))
    bounds = [(tir.maximum, low), (tir.minimum, high)]
    given = [(hold, b.reshape(v, ())) for hold, v in bounds if v is not None]
    if not given:
        return x

    def body(v: tir.Expr, *limits: tir.Expr) -> tir.Expr:
        steps = zip((hold for hold, _ in given), limits, strict=True)
        return reduce(lambda held, step: step[0](held, step[1]), steps, v)

    return b.map(body, x, *(v for _, v in given))


def _attribute(b: Builder, node: OnnxNode, name: str, like: Value) -> Value | None:
    default = LARGEST if name == "max" else -LARGEST
    with np.errstate(over="ignore"):  # f16 has no such numbers, and needs no such bound
        number = np.float64(node.float(name, default)).astype(like.dtype.numpy)
    return b.constant(number, name) if np.isfinite(number) or node.has(name) else None
