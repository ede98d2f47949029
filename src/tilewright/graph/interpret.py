"""What a graph means: NumPy, one node after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tilewright.errors import Code, GraphError
from tilewright.graph.ir import Array, Graph, Value
from tilewright.graph.sizes import evaluate_size, variables
from tilewright.tensor import ir as tir

__all__ = ["bind_sizes", "interpret"]

G201 = Code("G201", "`{value}` has the shape {found}, which does not fit {expected}")


def bind_sizes(graph: Graph, feeds: Mapping[str, Array]) -> dict[tir.Var, int]:
    """The sizes that the arrays of a call tell."""
    sizes: dict[tir.Var, int] = {}
    for value in graph.inputs:
        bind_value(value, np.shape(feeds[value.name]), sizes)
    return sizes


def bind_value(value: Value, shape: tuple[int, ...], sizes: dict[tir.Var, int]) -> None:
    """Learn the sizes that the shape of one array tells, and check the rest."""
    fits = len(shape) == value.rank
    for dim, extent in zip(value.shape, shape, strict=False):
        if isinstance(dim, tir.Var):
            fits &= sizes.setdefault(dim, extent) == extent
        elif tir.int_value(dim) is not None:
            fits &= tir.int_value(dim) == extent
    if not fits:
        facts = {"value": value.name, "found": list(shape), "expected": str(value.type)}
        raise GraphError(G201, facts, hint="pass an array of that shape")


def interpret(
    graph: Graph,
    feeds: Mapping[str, Array],
    watch: Callable[[Value, Array], None] | None = None,
    outer: Callable[[tir.Expr], int] | None = None,
) -> list[Array]:
    """The outputs for these inputs; `watch` sees every value that is computed.

    `outer` tells the sizes that come from outside, if this is a graph inside of another one.
    """
    sizes = bind_sizes(graph, feeds)
    arrays: dict[Value, Array] = {v: np.asarray(feeds[v.name]) for v in graph.inputs}
    arrays.update(graph.constants)

    def size_of(dim: tir.Expr) -> int:
        for var in variables([dim]):
            if outer is not None and var not in sizes:
                sizes[var] = outer(var)
        return evaluate_size(dim, sizes)

    for node in graph.nodes:
        found = node.op.evaluate([arrays[v] for v in node.inputs], size_of)
        for value, array in zip(node.outputs, found, strict=True):
            bind_value(value, np.shape(array), sizes)
            arrays[value] = array
            if watch is not None:
                watch(value, array)
    return [arrays[value] for value in graph.outputs]
