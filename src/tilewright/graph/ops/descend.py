"""`Descend`: walks from the roots of decision trees to the leaves that rows of data reach.

A node is a row of a table: feature, next node if the test fails, next node if it holds, and which
outcomes of the comparison count as holding. A leaf leads to itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import numpy as np

from tilewright.dtypes import boolean, i32, index
from tilewright.graph.ir import Array, TensorType
from tilewright.graph.ops.ends import require_limits
from tilewright.graph.ops.op import Limit, Op, SizeOf
from tilewright.graph.ops.serial import Row
from tilewright.graph.sizes import count, fixed
from tilewright.tensor import ir as tir
from tilewright.tensor.build import Tensor, select, seq

__all__ = ["ABOVE", "BELOW", "EQUAL", "UNORDERED", "Descend"]

BELOW, EQUAL, ABOVE, UNORDERED = 1, 2, 4, 8
"""How a value compares with the limit of a node; the last one is for NaN."""

FEATURE, FAILS, HOLDS, OUTCOMES = range(4)
"""Columns of the table of nodes."""

MANY: Final = 1 << 12
"""Steps from which on threads share the rows."""


@dataclass(frozen=True)
class Descend(Op):
    """The node (i32) that each row of in0 reaches in each tree.

    Inputs: data [n, features]; nodes [m, 4] (i32); limits [m], of the type of the data; roots [t]
    (i32). `levels` says how many trees, from the first on, take each step: they are ordered by
    depth, and the walk takes as many steps as there are levels. `features` is how many columns
    nodes ask for. `outcomes` are those of all nodes that are no leaves if they agree, else None.
    """

    levels: tuple[int, ...]
    features: int
    outcomes: int | None = None

    def infer(self, inputs: Sequence[TensorType]) -> Sequence[TensorType]:
        nodes, limits = inputs[1].shape, inputs[2].shape
        if len(nodes) != 2 or len(limits) != 1 or fixed(nodes[0]) != fixed(limits[0]):
            raise ValueError("each node has four numbers and a limit")
        result = [TensorType(i32, (inputs[0].shape[0], inputs[3].shape[0]))]
        require_limits(self.limits(inputs, result))
        return result

    def limits(
        self, inputs: Sequence[TensorType], outputs: Sequence[TensorType]
    ) -> Iterator[Limit]:
        if self.levels:
            yield tir.Const(self.features), inputs[0].shape[1], outputs[0].shape

    def evaluate(self, arrays: Sequence[Array], size_of: SizeOf) -> Sequence[Array]:
        x, nodes, limits, roots = arrays
        at = np.repeat(roots[None].astype(np.int32), len(x), axis=0)
        rows = np.arange(len(x))[:, None]
        for trees in self.levels:
            here = at[:, :trees]
            value = x[rows, nodes[here, FEATURE]]
            with np.errstate(invalid="ignore"):
                below, equal = value < limits[here], value == limits[here]
                above = value > limits[here]
            found = np.select([below, equal, above], [BELOW, EQUAL, ABOVE], UNORDERED)
            holds = (nodes[here, OUTCOMES] & found) != 0
            at[:, :trees] = np.where(holds, nodes[here, HOLDS], nodes[here, FAILS])
        return [at]

    def lower(self, inputs: Sequence[Tensor], names: Sequence[str]) -> Sequence[Tensor]:
        x, nodes, limits, roots = inputs
        row = Row(x.shape[:1])
        result = tir.Buffer(names[0], (x.shape[0], roots.shape[0]), i32)

        def step(tree: tir.Var) -> tir.Stmt:
            at = row.load(result, tree).to(index)
            value, limit = row.load(x.buffer, nodes[at, FEATURE].to(index)), limits[at]
            if self.outcomes is None:
                kind = select(value > limit, tir.Const(ABOVE, i32), tir.Const(UNORDERED, i32))
                kind = select(value.eq(limit), tir.Const(EQUAL, i32), kind)
                kind = select(value < limit, tir.Const(BELOW, i32), kind)
                holds = (nodes[at, OUTCOMES] & kind).ne(0)
            else:
                holds = _comparison(value, limit, self.outcomes)
            following = select(holds, nodes[at, HOLDS], nodes[at, FAILS])
            return row.store(result, tree, following)

        def steps(trees: int, times: int) -> tir.Stmt:
            return row.loop(times, lambda _: row.loop(trees, step))

        levels = [steps(trees, len([*same])) for trees, same in groupby(self.levels)]
        start = row.loop(roots.shape[0], lambda t: row.store(result, t, roots[t]))
        work = count(x.shape[:1]) * sum(self.levels)
        nest = row.nest(names[0], seq(start, *levels), parallel=work >= MANY)
        return [Tensor(result, nest, tuple(dict.fromkeys(inputs)))]

    def attributes(self) -> dict[str, object]:
        shown: dict[str, object] = {"trees": max(self.levels, default=0), "depth": len(self.levels)}
        return shown if self.outcomes is None else shown | {"outcomes": self.outcomes}


def _comparison(value: tir.Expr, limit: tir.Expr, outcomes: int) -> tir.Expr:
    """Whether one of the outcomes occurs, in as few comparisons as they need."""
    plain = {
        0: tir.Const(value=False, dtype=boolean),
        BELOW: value < limit,
        BELOW | EQUAL: value <= limit,
        ABOVE: value > limit,
        ABOVE | EQUAL: value >= limit,
        EQUAL: value.eq(limit),
        BELOW | ABOVE: (value < limit) | (value > limit),
        BELOW | ABOVE | EQUAL: value.eq(value),
    }
    ordered = plain[outcomes & ~UNORDERED]
    return ordered | value.ne(value) if outcomes & UNORDERED else ordered
