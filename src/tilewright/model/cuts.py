"""Tensors that are cut into many parts: each part is copied from where it lies.

A part that lies in one piece is the same memory from some byte on, so that one kernel copies all
of them. A kernel that looks for its part itself, as others do that may share one with what comes
next, has another start in each.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Final

from tilewright.graph.ir import Graph, Node, Value
from tilewright.graph.ops import Remap, axis
from tilewright.graph.sizes import fixed, product, same_shape, tidy
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import free_vars

__all__ = ["Cut", "cuts_of"]

FEW: Final = 16
"""Parts of a tensor that have kernels of their own: more than those of gates and heads."""


@dataclass(frozen=True)
class Cut:
    """`part` is the memory of `source` from byte `begin` on."""

    source: Value
    part: Value
    begin: tir.Expr


def cuts_of(
    graph: Graph, root: Callable[[Value], Value], apart: Collection[Value]
) -> dict[Node, Cut]:
    """The movements of a graph that are parts in one piece of a tensor with many such parts.

    `root` is the value behind views; `apart` are values whose memory is not told before a run.
    """
    found: dict[Value, dict[Node, Cut]] = {}
    for node in graph.nodes:
        if isinstance(node.op, Remap) and root(node.inputs[0]) not in apart:
            begin = _begin(node.op, node.inputs[0])
            if begin is not None and not node.output.layout:
                source = node.inputs[0]
                part = Value(f"{node.output.name}_part", replace(source.type, shape=node.op.shape))
                found.setdefault(source, {})[node] = Cut(source, part, begin)
    return {node: cut for cuts in found.values() if len(cuts) > FEW for node, cut in cuts.items()}


def _begin(op: Remap, source: Value) -> tir.Expr | None:
    """The byte at which a part in one piece begins; None if it is no such part."""
    axes = [axis(d) for d in range(source.rank)]
    moved = [d for d, index in enumerate(op.indices) if index != axes[d]]
    if op.inside != tir.TRUE or len(op.shape) != source.rank or source.layout or len(moved) != 1:
        return None
    (along,) = moved
    first = tidy(op.indices[along] - axes[along])
    behind = source.shape[along + 1 :]
    if not free_vars(first).isdisjoint(axes) or not same_shape(op.shape[along + 1 :], behind):
        return None
    if any(fixed(dim) != 1 for dim in source.shape[:along]):
        return None
    return product((first, *behind, tir.Const(source.dtype.size_bytes)))
