"""Convolutions with windows of one element are matrix products over all places of unknown number.

Before:  y [n, h, w, o] = conv x [n, h, w, c], weights [o, c, 1, 1]
After:   y = reshape (contract(mk,nk->mn) (reshape x [n·h·w, c]), weights [o, c])

With strides the places that count are picked first. Space of known size needs none of that: there
a convolution is scheduled as a product by itself, and its data may have any layout. A transposed
convolution of a single place (the first layer of a generator) is a product, too.
"""

from __future__ import annotations

from tilewright.graph.ir import Node, Value
from tilewright.graph.ops import Contract
from tilewright.graph.ops.window import Conv, ConvTranspose
from tilewright.graph.passes.rewrite import Rewriter
from tilewright.graph.sizes import fixed, product, sized

__all__ = ["pointwise_products"]


def pointwise_products(b: Rewriter, node: Node, inputs: tuple[Value, ...]) -> Value | None:
    """A rule: see the picture above."""
    op = node.op
    if isinstance(op, ConvTranspose):
        return _from_one_place(b, node, op, inputs)
    if not isinstance(op, Conv) or op.groups != 1 or any(op.pads):
        return None
    x, weights = inputs
    if any(fixed(d) != 1 for d in weights.shape[2:]) or x.dtype != op.dtype:
        return None
    if sized(x.shape[1:-1]) is not None:
        return None
    picked = x
    if any(s != 1 for s in op.strides):
        steps = (1, *op.strides, 1)
        shape = [*node.output.shape[:-1], x.shape[-1]]
        picked = b.remap(x, shape, lambda *o: [i * s for i, s in zip(o, steps, strict=True)])
    rows = b.reshape(picked, (product(picked.shape[:-1]), picked.shape[-1]))
    matrix = b.reshape(weights, weights.shape[:2])
    return b.reshape(b.add(Contract("mk", "nk", "mn", op.dtype), rows, matrix), node.output.shape)


def _from_one_place(
    b: Rewriter, node: Node, op: ConvTranspose, inputs: tuple[Value, ...]
) -> Value | None:
    """A transposed convolution of a single place writes its window, which is a product."""
    x, weights = inputs
    space = x.shape[1:-1]
    if op.groups != 1 or any(op.pads) or any(op.extra) or any(d != 1 for d in op.dilations):
        return None
    if any(fixed(d) != 1 for d in space) or x.dtype != op.dtype:
        return None
    window = "pqr"[: len(space)]
    rows = b.reshape(x, (x.shape[0], x.shape[-1]))
    product_ = Contract("nk", f"ko{window}", f"n{window}o", op.dtype)
    return b.reshape(b.add(product_, rows, weights), node.output.shape)
