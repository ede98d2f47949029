"""What a kernel does where an array that it reads has no elements, though its result has some.

A border around nothing, the padded cache of the first step, attention without keys: the result is
known, and kernels do not compute it. They rely on sizes of at least one and read before they
select, and an array without elements has no place to read from. So a run takes another kernel then,
in which the border is everything:

    y = remap(x, inside …)   becomes   if elements of x >= 1: y = remap(x, inside …)
                                       else:                  y = fill
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tilewright.graph.groups import Group
from tilewright.graph.ir import Node, Shape, Value
from tilewright.graph.ops import Remap, Tabulate, computed_as
from tilewright.graph.ops.attend import Attend
from tilewright.tensor import ir as tir

__all__ = ["MAX_DOUBTS", "Doubt", "doubts_of", "without_source"]

Doubt = tuple[Shape, list[Node]]
"""Dimensions that may be zero, and the nodes that cannot read their source then."""

MAX_DOUBTS: Final = 2
"""Of one kernel, which has a version for each combination; with more, nodes are kernels."""


def doubts_of(group: Group) -> list[Doubt]:
    """What has to be asked before a group runs; nodes that ask the same are asked together."""
    found: dict[Shape, list[Node]] = {}
    for node in group.nodes:
        dims = _doubtful(node)
        if dims:
            found.setdefault(dims, []).append(node)
    return list(found.items())


def _doubtful(node: Node) -> Shape:
    match node.op:
        case Remap() as op:
            return op.doubtful(node.inputs[0].shape)
        case Attend() as op:
            return op.doubtful([value.type for value in node.inputs])
    return ()


def without_source(group: Group, nodes: Sequence[Node], left: Sequence[Value]) -> Group:
    """The group where some of its movements have nothing to move."""
    wanted, kept = set(left), list[Node]()
    for node in reversed(group.nodes):
        new = _filled(node) if any(node is n for n in nodes) else node
        if not wanted.isdisjoint(new.outputs):  # what only made the source is not needed
            wanted.update(new.inputs)
            kept.insert(0, new)
    return replace(group, nodes=kept)


def _filled(node: Node) -> Node:
    op, dtype = node.op, node.output.dtype
    value = tir.const(op.fill if isinstance(op, Remap) else 0, computed_as(dtype))
    return Node(Tabulate(node.output.shape, value, dtype), (), node.outputs, node.label)
