"""How much a kernel has to do, in terms of sizes: multiply-adds, and bytes to read and write.

Together with the rates of a machine they say how fast a kernel could be at best.
"""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.graph.ir import Node, Value
from tilewright.graph.ops import Contract
from tilewright.graph.ops.attend import Attend
from tilewright.graph.ops.window import Conv, ConvTranspose
from tilewright.graph.sizes import product, tidy
from tilewright.tensor import ir as tir

__all__ = ["flops_of", "moved_bytes"]


def flops_of(nodes: Iterable[Node]) -> tir.Expr:
    """Two for each multiply-add of products, convolutions and attention; nothing for the rest."""
    total: tir.Expr = tir.Const(0)
    for node in nodes:
        total = total + _multiply_adds(node) * 2
    return tidy(total)


def moved_bytes(values: Iterable[Value]) -> tir.Expr:
    """Bytes of all these values, each read or written once."""
    total: tir.Expr = tir.Const(0)
    for value in dict.fromkeys(values):
        total = total + product((*value.shape, tir.Const(value.dtype.size_bytes)))
    return tidy(total)


def _multiply_adds(node: Node) -> tir.Expr:
    shapes = [value.shape for value in node.inputs]
    match node.op:
        case Contract(left=left, right=right):
            letters = {
                **dict(zip(right, shapes[1], strict=True)),
                **dict(zip(left, shapes[0], strict=True)),
            }
            return product(letters.values())
        case Conv():
            return product((*node.output.shape, *shapes[1][1:]))
        case ConvTranspose():
            return product((*shapes[0], *shapes[1][1:]))
        case Attend(layouts=(of_queries, of_keys, of_values, _)):
            queries = dict(zip(of_queries, shapes[0], strict=True))
            keys = dict(zip(of_keys, shapes[1], strict=True))["s"]
            features = queries["d"] + dict(zip(of_values, shapes[2], strict=True))["d"]
            return product((queries["b"], queries["h"], queries["s"], keys, features))
    return tir.Const(0)
