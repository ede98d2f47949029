"""Convolutions with windows of one element are matrix products over all places of unknown number.

Before:  y [n, h, w, o] = conv x [n, h, w, c], weights [o, c, 1, 1]
After:   y = reshape (contract(mk,nk->mn) (reshape x [n·h·w, c]), weights [o, c])

With strides the places that count are picked first, also where data are being moved anyway. Apart
from that, space of known size needs nothing: there a convolution is scheduled as a product by
itself, and its data may have any layout.

A transposed convolution of a single place (the first layer of a generator) is a product, too, and
so is one whose windows do not overlap, if it has few filters: what one place gives is then a row of
results that fills vectors, where the filters alone would not.

Before:  y [n, h·p, w·q, o] = convtranspose x [n, h, w, c], weights [c, o, p, q]     (strides p, q)
After:   y = reshape (transpose (contract x, weights: [n, h, w, p, q, o]) → [n, h, p, w, q, o])
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tilewright.graph.ir import Node, Value
from tilewright.graph.ops import Contract, Transpose
from tilewright.graph.ops.window import Conv, ConvTranspose
from tilewright.graph.passes.rewrite import Rewriter
from tilewright.graph.sizes import fixed, product, sized

__all__ = ["pointwise_products"]

# Filters that do not fill a vector.
_FEW: Final = 4


def pointwise_products(b: Rewriter, node: Node, inputs: tuple[Value, ...]) -> Value | None:
    """A rule: see the picture above."""
    op = node.op
    if isinstance(op, ConvTranspose):
        return _from_one_place(b, node, op, inputs) or _side_by_side(b, node, op, inputs)
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


def _from_one_place(
    b: Rewriter, node: Node, op: ConvTranspose, inputs: tuple[Value, ...]
) -> Value | None:
    """A transposed convolution of a single place writes its window, which is a product."""
    x, weights = inputs
    space = x.shape[1:-1]
    if not _is_plain(op, x) or any(fixed(d) != 1 for d in space):
        return None
    window = "pqr"[: len(space)]
    rows = b.reshape(x, (x.shape[0], x.shape[-1]))
    product_ = Contract("nk", f"ko{window}", f"n{window}o", op.dtype)
    return b.reshape(b.add(product_, rows, weights), node.output.shape)


def _is_plain(op: ConvTranspose, x: Value) -> bool:
    """Whether nothing is grouped, spread, cut off or converted."""
    spread = any(d != 1 for d in op.dilations)
    return op.groups == 1 and not (any(op.pads) or any(op.extra) or spread) and x.dtype == op.dtype


def _side_by_side(
    b: Rewriter, node: Node, op: ConvTranspose, inputs: tuple[Value, ...]
) -> Value | None:
    """Windows that do not overlap, of few filters."""
    x, weights = inputs
    kernel, filters = tuple(fixed(d) for d in weights.shape[2:]), fixed(weights.shape[1])
    if not _is_plain(op, x) or kernel != op.strides or filters is None or filters > _FEW:
        return None
    rank = len(kernel)
    space, window = "xyz"[:rank], "pqr"[:rank]
    places = f"n{space}"
    product_ = Contract(f"{places}k", f"ko{window}", f"{places}{window}o", op.dtype)
    rows = b.add(product_, x, weights)
    pairs = [d for k in range(rank) for d in (1 + k, 1 + rank + k)]
    return b.reshape(b.transpose(rows, (0, *pairs, 1 + 2 * rank)), node.output.shape)
