"""How much a kernel has to do, in terms of sizes: multiply-adds, and bytes to read and write.

Together with the rates of a machine they say how fast a kernel could be at best.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilewright.graph.ir import Node, Value
from tilewright.graph.ops import Contract, Gather
from tilewright.graph.ops.attend import Attend
from tilewright.graph.ops.window import Conv, ConvTranspose
from tilewright.graph.ops.winograd import WinogradConv, WinogradTransposed
from tilewright.graph.sizes import product, tidy
from tilewright.tensor import ir as tir

__all__ = ["flops_of", "moved_bytes"]


def flops_of(nodes: Iterable[Node]) -> tir.Expr:
    """Two for each multiply-add of products, convolutions and attention; nothing for the rest."""
    total: tir.Expr = tir.Const(0)
    for node in nodes:
        total = total + _multiply_adds(node) * 2
    return tidy(total)


def moved_bytes(nodes: Sequence[Node], params: Iterable[Value]) -> tir.Expr:
    """Bytes of all parameters, each read or written once; of a table, what is looked up in it."""
    tables = _tables(nodes)
    total: tir.Expr = tir.Const(0)
    for value in dict.fromkeys(params):
        for part in tables.get(value, [value]):
            total = total + product((*part.stored_shape, tir.Const(part.dtype.size_bytes)))
    return tidy(total)


def _tables(nodes: Sequence[Node]) -> dict[Value, list[Value]]:
    """What is looked up in values that are read in no other way."""
    found: dict[Value, list[Value]] = {}
    otherwise: set[Value] = set()
    for node in nodes:
        is_lookup = isinstance(node.op, Gather)
        if is_lookup:
            found.setdefault(node.inputs[0], []).append(node.output)
        otherwise.update(node.inputs[1:] if is_lookup else node.inputs)
    return {value: parts for value, parts in found.items() if value not in otherwise}


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
        case WinogradConv(taps=taps):  # as many as a direct convolution has
            return product((*node.output.shape, *map(tir.as_index, taps), shapes[1][-2]))
        case WinogradTransposed(taps=taps, groups=groups):
            filters = shapes[1][-1] // groups
            return product((*shapes[0], filters, *map(tir.as_index, taps)))
        case Attend(layouts=(of_queries, of_keys, of_values, _)):
            queries = dict(zip(of_queries, shapes[0], strict=True))
            keys = dict(zip(of_keys, shapes[1], strict=True))["s"]
            features = queries["d"] + dict(zip(of_values, shapes[2], strict=True))["d"]
            return product((queries["b"], queries["h"], queries["s"], keys, features))
    return tir.Const(0)
