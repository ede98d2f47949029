"""Parts that are joined are written where they belong: a concatenation without a copy.

In memory, parts lie one after another if everything outside of the dimension along which they are
joined has size one: channels first, or in blocks, of a single image. The kernel that makes a part
then writes it into the whole. What cannot be written there (an input of the graph, a part that is
stored otherwise, or joined twice) is copied to its place.

Many parts of sizes that only a run tells are all copied, each by the same kernel: in one kernel for
all of them every place would be a sum of all sizes before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from tilewright.graph.groups import is_view
from tilewright.graph.ir import Graph, Node, Value
from tilewright.graph.ops import Concat
from tilewright.graph.ops.op import Role
from tilewright.graph.sizes import fixed, product, sized, tidy
from tilewright.model.sizing import is_plain
from tilewright.tensor import ir as tir
from tilewright.tensor.layout import Reorder, Split
from tilewright.tensor.stored import misfit

__all__ = ["Join", "joins_of", "lie_in_order"]

NAMED_EACH: Final = 16
"""Parts of symbolic sizes after which the place of the next one is a size of its own."""

_TOLD = (Role.MAP, Role.MOVE, Role.REDUCE, Role.ANCHOR)
"""Roles of operators whose kernels write to any place."""


@dataclass(frozen=True)
class Join:
    """`places` are the parts, with the byte at which each begins in the whole.

    `copied` are pairs (value, part) that have to be copied. `named` are sizes for long sums: where
    each of a thousand parts begins is where one of the last dozen does, and what lies between.
    """

    whole: Value
    places: dict[Value, tir.Expr]
    copied: tuple[tuple[Value, Value], ...]
    named: dict[tir.Var, tir.Expr]


def joins_of(graph: Graph, root: Callable[[Value], Value]) -> dict[Node, Join]:
    """The concatenations of a graph that need no kernel; `root` is the value behind views."""
    makers = {v: n for n in graph.nodes if not is_view(n) for v in n.outputs}
    taken = {root(value) for value in graph.outputs}
    found: dict[Node, Join] = {}
    for node in graph.nodes:
        if not isinstance(node.op, Concat) or not lie_in_order(node, node.op):
            continue
        symbolic = sized(node.output.stored_shape) is None
        copied: list[tuple[Value, Value]] = []
        places: dict[Value, tir.Expr] = {}
        begin: tir.Expr = tir.Const(0)
        named: dict[tir.Var, tir.Expr] = {}
        for number, value in enumerate(node.inputs, 1):
            kind = replace(value.type, layout=node.output.layout)
            behind = root(value)
            maker = makers.get(behind)
            told = maker is not None and (maker.op.role in _TOLD or isinstance(maker.op, Concat))
            # What has a symbolic size may have no memory yet when its parts are made.
            if told and not symbolic and behind not in taken and value.layout == kind.layout:
                taken.add(behind)
                places[behind] = begin
            else:
                part = Value(f"{value.name}_part", kind)
                places[part] = begin
                copied.append((value, part))
            begin = tidy(begin + product((*kind.stored_shape, tir.Const(kind.dtype.size_bytes))))
            if number % NAMED_EACH == 0 and fixed(begin) is None and is_plain(begin):
                name = tir.Var(f"{node.output.name} from {number}")
                named[name], begin = begin, name
        if len(copied) < len(node.inputs) or symbolic:
            found[node] = Join(node.output, places, tuple(copied), named)
    return found


def lie_in_order(node: Node, op: Concat) -> bool:
    """Whether parts that are stored like the whole lie in it one after another."""
    layout, shape = node.output.layout, node.output.stored_shape
    if any(misfit(value.shape, layout) for value in node.inputs):
        return False
    if sized(shape) is None and not op.is_copied([value.shape for value in node.inputs]):
        return False
    at = op.axis  # the dimension in memory that counts the parts, or blocks of them
    for step in layout:
        match step:
            case Split(dim=dim):
                at += dim < at
            case Reorder(order=order):
                at = order.index(at)
            case _:
                return False
    return all(fixed(size) == 1 for size in shape[:at])
