"""Transposed convolutions whose windows do not meet are matrix products.

One of a single place (the first layer of a generator) writes its window and nothing else:

Before:  y [n, p, q, o] = convtranspose x [n, 1, 1, c], weights [c, o, p, q]
After:   y = reshape (contract(nk,kopq->npqo) (reshape x [n, c]), weights)

With windows side by side, what one place gives is a row of results. That row fills vectors where
few filters alone would not; many filters are better left to the convolution, which moves nothing.
So are lines of known length, whose places can be in vectors (`layouts/algorithms.py`):

Before:  y [n, h·p, w·q, o] = convtranspose x [n, h, w, c], weights [c, o, p, q]     (strides p, q)
After:   y = reshape (transpose (contract x, weights: [n, h, w, p, q, o]) → [n, h, p, w, q, o])
"""

from __future__ import annotations

from typing import Final

from tilewright.graph.ir import Node, Value
from tilewright.graph.ops import Contract
from tilewright.graph.ops.window import ConvTranspose
from tilewright.graph.passes.rewrite import Rewriter
from tilewright.graph.sizes import fixed

__all__ = ["transposed_products"]

# Filters that do not fill a vector.
_FEW: Final = 4


def transposed_products(b: Rewriter, node: Node, inputs: tuple[Value, ...]) -> Value | None:
    """A rule: see the pictures above."""
    op = node.op
    if not isinstance(op, ConvTranspose) or not _is_plain(op, inputs[0]):
        return None
    return _of_one_place(b, node, op, inputs) or _side_by_side(b, node, op, inputs)


def _is_plain(op: ConvTranspose, x: Value) -> bool:
    """Whether nothing is grouped, spread, cut off or converted."""
    spread = any(d != 1 for d in op.dilations)
    return op.groups == 1 and not (any(op.pads) or any(op.extra) or spread) and x.dtype == op.dtype


def _of_one_place(
    b: Rewriter, node: Node, op: ConvTranspose, inputs: tuple[Value, ...]
) -> Value | None:
    """The first picture."""
    x, weights = inputs
    space = x.shape[1:-1]
    if any(fixed(d) != 1 for d in space):
        return None
    window = "pqr"[: len(space)]
    contract = Contract("nk", f"ko{window}", f"n{window}o", op.dtype)
    rows = b.reshape(x, (x.shape[0], x.shape[-1]))
    return b.reshape(b.add(contract, rows, weights), node.output.shape)


def _side_by_side(
    b: Rewriter, node: Node, op: ConvTranspose, inputs: tuple[Value, ...]
) -> Value | None:
    """The second picture."""
    x, weights = inputs
    kernel, filters = tuple(fixed(d) for d in weights.shape[2:]), fixed(weights.shape[1])
    if kernel != op.strides or filters is None or filters > _FEW or _has_lines(op, x):
        return None
    rank = len(kernel)
    places, window = f"n{'xyz'[:rank]}", "pqr"[:rank]
    contract = Contract(f"{places}k", f"ko{window}", f"{places}{window}o", op.dtype)
    rows = b.add(contract, x, weights)
    pairs = [d for k in range(rank) for d in (1 + k, 1 + rank + k)]
    return b.reshape(b.transpose(rows, (0, *pairs, 1 + 2 * rank)), node.output.shape)


def _has_lines(op: ConvTranspose, x: Value) -> bool:
    """Whether the choice of algorithms may put places into vectors."""
    known = all(fixed(size) is not None for size in x.shape[1:-1])
    return known and op.dtype.is_float and op.dtype.bits >= 32
