"""Convolutions with windows of one element are matrix products over all places of unknown number.

Before:  y [n, h, w, o] = conv x [n, h, w, c], weights [o, c, 1, 1]
After:   y = reshape (contract(mk,nk->mn) (reshape x [n·h·w, c]), weights [o, c])

With strides the places that count are picked first, also where data are being moved anyway:

Before:  y = conv (transpose x), weights [o, c, 1, 1]        (strides 2, 2)
After:   y = conv (remap (transpose x): [n, h, w, c] ← [n, 2·h, 2·w, c]), weights

Apart from that, space of known size needs nothing: there a convolution is scheduled as a product by
itself, and its data may have any layout.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.graph.ir import Node, Value
from tilewright.graph.ops import Contract, Transpose
from tilewright.graph.ops.window import Conv
from tilewright.graph.passes.rewrite import Rewriter
from tilewright.graph.sizes import fixed, product, sized

__all__ = ["pointwise_products"]


def pointwise_products(b: Rewriter, node: Node, inputs: tuple[Value, ...]) -> Value | None:
    """A rule: see the pictures above."""
    op = node.op
    if not isinstance(op, Conv) or op.groups != 1 or any(op.pads):
        return None
    x, weights = inputs
    if any(fixed(d) != 1 for d in weights.shape[2:]) or x.dtype != op.dtype:
        return None
    has_steps = any(s != 1 for s in op.strides)
    if sized(x.shape[1:-1]) is not None:
        if not has_steps or b.made_by(x, Transpose) is None:
            return None
        ones = (1,) * len(op.strides)  # what is moved anyway is picked on the way
        return b.add(replace(op, strides=ones), _picked(b, node, op, x), weights)
    picked = _picked(b, node, op, x) if has_steps else x
    rows = b.reshape(picked, (product(picked.shape[:-1]), picked.shape[-1]))
    matrix = b.reshape(weights, weights.shape[:2])
    return b.reshape(b.add(Contract("mk", "nk", "mn", op.dtype), rows, matrix), node.output.shape)


def _picked(b: Rewriter, node: Node, op: Conv, x: Value) -> Value:
    """The places that windows of one element see."""
    steps = (1, *op.strides, 1)
    shape = [*node.output.shape[:-1], x.shape[-1]]
    return b.remap(x, shape, lambda *o: [i * s for i, s in zip(o, steps, strict=True)])
