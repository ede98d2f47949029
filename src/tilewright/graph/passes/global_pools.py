"""A pool whose window is the whole space is a reduction.

Before:  y [n, 1, 1, c] = pool(add, window [7, 7]) x [n, 7, 7, c]
After:   y [n, 1, 1, c] = reduce(add, axes [1, 2]) x

Padding changes nothing: what a pool folds there is neutral.
"""

from __future__ import annotations

from tilewright.graph.ir import Node, Value
from tilewright.graph.ops import Reduce
from tilewright.graph.ops.window import Pool
from tilewright.graph.passes.rewrite import Rewriter
from tilewright.graph.sizes import fixed

__all__ = ["reduce_global_pools"]


def reduce_global_pools(b: Rewriter, node: Node, inputs: tuple[Value, ...]) -> Value | None:
    """A rule: see the picture above."""
    op = node.op
    if not isinstance(op, Pool) or any(d != 1 for d in op.dilations):
        return None
    (x,) = inputs
    space = range(1, x.rank - 1)
    if any(fixed(node.output.shape[d]) != 1 for d in space):
        return None
    for d, window, before in zip(space, op.kernel, op.pads, strict=False):
        size = fixed(x.shape[d])
        if size is None or window - before < size:
            return None
    return b.add(Reduce(op.fold, tuple(space)), x)
