"""Movements that move nothing vanish, and two in a row are one.

Before:  a = remap(o0 + 2) x; b = remap(o0 + 3) a
After:   b = remap(o0 + 5) x
"""

from __future__ import annotations

from typing import Final

from tilewright.graph.ir import Node, Shape, Value
from tilewright.graph.ops import Expand, Map, Remap, Spread, axis
from tilewright.graph.passes.rewrite import Rewriter
from tilewright.graph.sizes import filled, fixed, same_shape, tidy, variables
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import free_vars, substitute, walk

__all__ = ["channel_range", "join_movements", "keeps_channels"]

MAX_PLACES: Final = 256
"""Nodes of the places of a movement that two are joined to: mirrors of mirrors grow without end."""


def join_movements(b: Rewriter, node: Node, inputs: tuple[Value, ...]) -> Value | None:
    """A rule: see the picture above."""
    match node.op:
        case Remap(indices=indices, inside=tir.Const(value=True)):
            (x,) = inputs
            plain = tuple(axis(k) for k in range(len(indices)))
            if indices == plain and same_shape(x.shape, node.op.shape):
                return x
            return _joined(b, node.op, x)
        case Expand():
            return inputs[0] if same_shape(inputs[0].shape, node.op.shape) else None
        case Map(body=tir.Var(name="arg0"), arity=1, dtype=dtype) if dtype == inputs[0].dtype:
            return inputs[0]
    return None


def _joined(b: Rewriter, op: Remap, x: Value) -> Value | None:
    found = b.made_by(x, Remap)
    if found is None or found[0].inside != tir.TRUE:
        return None
    first, node = found
    if _size_joined(first, op) > MAX_PLACES:
        return None
    values = {axis(k): index for k, index in enumerate(op.indices) if index is not axis(k)}
    moved = [substitute(index, values) for index in first.indices]
    pairs = zip(moved, first.indices, strict=True)
    # Slices of thirty dimensions are joined one by one, and each changes one place of thirty.
    indices = tuple(new if new is old else _simple(new, op.shape) for new, old in pairs)
    spread = Spread((*first.spread.pairs, *op.spread.pairs))
    return b.add(Remap(op.shape, indices, spread=spread), node.inputs[0])


def _size_joined(first: Remap, second: Remap) -> int:
    """Nodes of the places of two movements in a row, before they are made simple."""
    sizes = {axis(k): sum(1 for _ in walk(index)) for k, index in enumerate(second.indices)}
    return sum(
        sizes.get(part, 1) if isinstance(part, tir.Var) else 1
        for index in first.indices
        for part in walk(index)
    )


def _simple(index: tir.Expr, shape: Shape) -> tir.Expr:
    """A place in canonical form, for where there are places."""
    return filled(shape, variables([index])).simplify(index)


def keeps_channels(op: Remap, x: Value) -> bool:
    """Whether all channels of a place come from one place: windows, borders, resized images."""
    if len(op.shape) != x.rank or not same_shape(op.shape[-1:], x.shape[-1:]):
        return False
    channel = axis(x.rank - 1)
    moved = (channel in free_vars(index) for index in (*op.indices[:-1], op.inside))
    return op.indices[-1] == channel and not any(moved)


def channel_range(op: Remap, x: Value) -> tuple[int, int] | None:
    """The first channel of a slice of channels, and how many there are; None if it is not one."""
    axes = tuple(axis(k) for k in range(x.rank))
    size = fixed(op.shape[-1]) if op.shape else None
    if size is None or len(op.indices) != x.rank or op.inside != tir.TRUE:
        return None
    if op.indices[:-1] != axes[:-1] or not same_shape(op.shape[:-1], x.shape[:-1]):
        return None
    start = fixed(tidy(op.indices[-1] - axes[-1]))
    return None if start is None else (start, size)
