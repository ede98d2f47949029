"""Kernels see as few dimensions as they need: those that are always walked together are one.

Elements of tensors of many dimensions lie one after another, and what maps and folds do with two
neighbouring dimensions is often the same. Each loop costs the scheduler proofs about all sizes
inside of it, so that thirty symbolic dimensions would take it seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from tilewright.graph.ir import Node, Value
from tilewright.graph.ops import Map, Reduce
from tilewright.graph.sizes import fixed, product

__all__ = ["flattened"]

MAX_DIMS: Final = 8
"""Dimensions that kernels keep: more than networks have."""

Runs = Sequence[Sequence[int]]


def flattened(nodes: Sequence[Node]) -> tuple[Sequence[Node], dict[Value, Value]]:
    """Nodes on values of fewer dimensions, and what these values are; none if all stay as is."""
    values = list(dict.fromkeys(v for node in nodes for v in (*node.inputs, *node.outputs)))
    rank = max((value.rank for value in values), default=0)
    known = all(isinstance(node.op, Map | Reduce) for node in nodes)
    if rank <= MAX_DIMS or not known or any(value.layout for value in values):
        return nodes, {}
    runs = _runs(values, rank)
    new = {value: _merged(value, rank, runs) for value in values}
    return [_node(node, new, runs) for node in nodes], new


def _runs(values: Iterable[Value], rank: int) -> Runs:
    """Neighbouring dimensions along which the same values have one element."""
    single = [
        [True] * (rank - value.rank) + [fixed(dim) == 1 for dim in value.shape] for value in values
    ]
    alike = [tuple(ones[d] for ones in single) for d in range(rank)]
    return [list(run) for _, run in groupby(range(rank), key=alike.__getitem__)]


def _merged(value: Value, rank: int, runs: Runs) -> Value:
    missing = rank - value.rank
    shape = tuple(product(value.shape[d - missing] for d in run if d >= missing) for run in runs)
    return Value(value.name, replace(value.type, shape=shape))


def _node(node: Node, new: dict[Value, Value], runs: Runs) -> Node:
    op = node.op
    if isinstance(op, Reduce):  # what it folds has one element in the result: whole runs
        op = replace(op, axes=tuple(k for k, run in enumerate(runs) if set(run) & set(op.axes)))
    inputs, outputs = (tuple(new[v] for v in side) for side in (node.inputs, node.outputs))
    return replace(node, op=op, inputs=inputs, outputs=outputs)
