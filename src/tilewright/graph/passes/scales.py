"""Factors of channels become part of the weights in front of them.

A batch normalisation behind a convolution, a product or another one of these scales each channel by
a constant, which costs nothing when the weights are scaled instead:

Before:  y = conv x, w; z = map(arg0 * arg1) y, [channels]
After:   z = conv x, (w · channels)
"""

from __future__ import annotations

import numpy as np

from tilewright.graph.ir import Array, Node, Value
from tilewright.graph.ops import Contract, Map, argument, computed_as
from tilewright.graph.ops.window import Conv, ConvTranspose
from tilewright.graph.passes.rewrite import Rewriter
from tilewright.graph.sizes import dims_equal, fixed
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import substitute, walk

__all__ = ["fold_scales"]


def fold_scales(b: Rewriter, node: Node, inputs: tuple[Value, ...]) -> Value | None:
    """A rule: see the picture above; also for `arg0 * arg1 + arg2` and literals."""
    op = node.op
    if not isinstance(op, Map) or not op.dtype.is_float:
        return None
    found = _factor(op, {k for k, v in enumerate(inputs) if b.producer(v) is not None})
    if found is None:
        return None
    data, scale, rest = found
    producer = b.producer(inputs[data])
    if producer is None or not b.is_read_once(inputs[data]) or inputs[data].dtype != op.dtype:
        return None
    factors = _factors(b, scale, inputs, inputs[data])
    scaled = None if factors is None else _scaled(b, producer, factors)
    if scaled is None:
        return None
    others = [k for k in range(len(inputs)) if k != data and _uses(rest, k, inputs[k])]
    kept = [data, *others]
    names = {_argument(k, inputs[k]): _argument(n, inputs[k]) for n, k in enumerate(kept)}
    body = substitute(rest, names)
    if isinstance(body, tir.Var):
        return scaled
    return b.add(Map(body, len(kept), op.dtype), scaled, *(inputs[k] for k in others))


def _argument(position: int, value: Value) -> tir.Var:
    return argument(position, computed_as(value.dtype))


def _factor(op: Map, made: set[int]) -> tuple[int, tir.Expr, tir.Expr] | None:
    """(input, factor, body without the factor) if the body is `input · factor (+ …)`.

    `made` are the inputs that nodes compute: one of these is scaled.
    """
    body = op.body
    if isinstance(body, tir.Add | tir.Sub) and not isinstance(body.b, tir.Mul):
        found = _product(body.a, made)
        if found is None:
            return None
        data, scale, var = found
        if any(part is var for part in walk(body.b)):  # what is added is not scaled
            return None
        return data, scale, type(body)(var, body.b)
    return _product(body, made)


def _product(body: tir.Expr, made: set[int]) -> tuple[int, tir.Expr, tir.Expr] | None:
    if not isinstance(body, tir.Mul):
        return None
    for x, y in ((body.a, body.b), (body.b, body.a)):
        position = _position(x)
        if position in made and (_position(y) is not None or isinstance(y, tir.Const)) and x != y:
            return position, y, x
    return None


def _position(expr: tir.Expr) -> int | None:
    if isinstance(expr, tir.Var) and expr.name.startswith("arg"):
        return int(expr.name.removeprefix("arg"))
    return None


def _uses(body: tir.Expr, position: int, value: Value) -> bool:
    var = _argument(position, value)
    return any(part is var for part in walk(body))


def _factors(b: Rewriter, scale: tir.Expr, inputs: tuple[Value, ...], data: Value) -> Array | None:
    """One factor for each element of the last dimension, if these are constants."""
    width = fixed(data.shape[-1]) if data.rank else None
    if width is None:
        return None
    if isinstance(scale, tir.Const):
        return np.broadcast_to(np.float64(scale.value), (width,))
    position = _position(scale)
    assert position is not None
    value = inputs[position]
    held = b.constants.get(value)
    if held is None or held.size not in (1, width) or value.rank > data.rank:
        return None
    if held.size == width and (not value.rank or not dims_equal(value.shape[-1], data.shape[-1])):
        return None
    return np.broadcast_to(held.reshape(-1), (width,))


def _scaled(b: Rewriter, node: Node, factors: Array) -> Value | None:
    """The producer with its weights scaled."""
    match node.op:
        case Conv():
            weights = b.constants.get(node.inputs[1])
            if weights is None:
                return None
            shaped = factors.reshape(-1, *([1] * (weights.ndim - 1)))
            return b.add(node.op, node.inputs[0], _times(b, weights, shaped))
        case ConvTranspose(groups=1):
            weights = b.constants.get(node.inputs[1])
            if weights is None:
                return None
            shaped = factors.reshape(1, -1, *([1] * (weights.ndim - 2)))
            return b.add(node.op, node.inputs[0], _times(b, weights, shaped))
        case Contract(left=left, right=right, result=result):
            weights = b.constants.get(node.inputs[1])
            if weights is None or result[-1] not in right or result[-1] in left:
                return None
            shape = [-1 if c == result[-1] else 1 for c in right]
            return b.add(node.op, node.inputs[0], _times(b, weights, factors.reshape(shape)))
    return None


def _times(b: Rewriter, weights: Array, factors: Array) -> Value:
    scaled = weights.astype(np.float64) * factors.astype(np.float64)
    return b.constant(scaled.astype(weights.dtype), "scaled")
