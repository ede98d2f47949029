"""Writing loops and branches: bodies are Python functions that build.

    def body(b, step, carried, outside):
        (h,) = carried
        y = b.map(lambda v, w: v + w, h, outside(x))
        return Turn(carried=[y], collected=[y])

    last, all_of_them = loop(b, body, limit, carried=[h0])

A loop with a small number of iterations that is known becomes copies of its body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from tilewright.errors import Code, GraphError
from tilewright.graph.builder import Builder
from tilewright.graph.ir import TensorType, Value
from tilewright.graph.nested import Inner, fresh_size, only_visible
from tilewright.graph.ops.control import If, Loop
from tilewright.graph.sizes import dims_equal, fixed, tidy
from tilewright.tensor import ir as tir

__all__ = ["Body", "Outside", "Turn", "Way", "branch", "loop"]

MAX_COPIES: Final = 16
"""Iterations of a loop that becomes copies of its body."""
MAX_COPIED_NODES: Final = 256
"""Nodes that all copies may have together."""

G040 = Code(
    "G040", "iterations of a loop change {what} of a carried value: {before} becomes {after}"
)
G041 = Code("G041", "the branches of a condition differ in {what}: {first} and {second}")

Outside = Callable[[Value], Value]
Way = Callable[[Builder, Outside], Sequence[Value]]


@dataclass(frozen=True)
class Turn:
    """What one iteration gives; `goes_on` says whether there is another one (None: always).

    `empty` are sizes of collected values for a loop without iterations, where only these tell.
    """

    carried: Sequence[Value]
    collected: Sequence[Value] = ()
    goes_on: Value | None = None
    empty: Sequence[Sequence[int]] = ()


class Body(Protocol):
    """Builds one iteration; `step` is its number from 0, `outside` brings values in."""

    def __call__(
        self, b: Builder, step: Value, carried: Sequence[Value], outside: Outside, /
    ) -> Turn: ...


def loop(
    b: Builder,
    body: Body,
    limit: Value | None,
    carried: Sequence[Value],
    condition: Value | None = None,
    copies: int = MAX_COPIES,
) -> list[Value]:
    """The carried values after the last iteration, and the collected ones of all, stacked."""
    inner = _Iteration.of(b, body, carried)
    starts = condition is None or b.numbers(condition) == [1]
    trips = b.integers(limit) if limit is not None else None
    count = fixed(trips[0]) if trips else None
    nodes = len(inner.builder.nodes)
    if (
        count is not None
        and starts
        and not inner.tested
        and 0 < count <= min(copies, MAX_COPIED_NODES // max(nodes, 1))
    ):
        return _copied(b, body, carried, count)
    most = tidy(tir.maximum(trips[0], 0)) if trips else None
    known = most if starts and not inner.tested else None
    begins = b.constant(np.bool_(1)) if condition is None else b.reshape(condition, ())
    return inner.as_node(b, _limit(b, limit, most), begins, carried, known)


def _limit(b: Builder, limit: Value | None, known: tir.Expr | None) -> Value:
    """How many iterations there are at most; a negative number of them is none."""
    if limit is None:
        return b.constant(np.int64(2**63 - 1))
    if known is not None:
        return b.reshape(b.sizes([known]), ())
    return b.map(lambda v: tir.maximum(v, 0), b.reshape(limit, ()))


def _copied(b: Builder, body: Body, carried: Sequence[Value], count: int) -> list[Value]:
    rows: list[list[Value]] = []
    for number in range(count):
        turn = body(b, b.constant(np.int64(number)), carried, lambda v: v)
        carried = turn.carried
        rows.append([b.reshape(v, (1, *v.shape)) for v in turn.collected])
    return [*carried, *(b.concat(column, 0) for column in zip(*rows, strict=True))]


@dataclass(frozen=True)
class _Iteration:
    """One iteration as a graph of its own."""

    builder: Inner
    counter: tir.Var
    own: list[Value]
    turn: Turn

    @property
    def tested(self) -> bool:
        goes_on = self.turn.goes_on
        return goes_on is not None and self.builder.numbers(goes_on) != [1]

    @classmethod
    def of(cls, b: Builder, body: Body, carried: Sequence[Value]) -> _Iteration:
        """With carried types that every iteration keeps; what changes is found by trying."""
        types = [value.type for value in carried]
        changing: set[tir.Expr] = set()
        while True:
            counter = tir.Var("step")
            inner = Inner(b, "body", [counter])
            own = [
                inner.input(v.name, t.dtype, t.shape) for v, t in zip(carried, types, strict=True)
            ]
            step = inner.reshape(inner.sizes([counter - 1]), ())
            turn = body(inner, step, own, inner.capture)
            pairs = zip(types, turn.carried, strict=True)
            after = [_kept(t, v.type, changing) for t, v in pairs]
            if all(t is kept for t, kept in zip(types, after, strict=True)):
                return cls(inner, counter, own, turn)
            types = after

    def as_node(
        self,
        b: Builder,
        limit: Value,
        condition: Value,
        carried: Sequence[Value],
        count: tir.Expr | None,
    ) -> list[Value]:
        kept = [only_visible(v.type, b) for v in self.own]
        length = fresh_size() if count is None else count
        inside = [only_visible(v.type, b) for v in self.turn.collected]
        results = [*kept, *(TensorType(t.dtype, (length, *t.shape)) for t in inside)]
        first = [self.turn.goes_on] if self.tested and self.turn.goes_on is not None else []
        outputs = [self.builder.reshape(v, ()) for v in first]
        body = self.builder.closed([*outputs, *self.turn.carried, *self.turn.collected], self.own)
        empty = tuple(map(tuple, self.turn.empty))
        op = Loop(body, self.counter, len(carried), self.tested, tuple(results), empty)
        return list(b.add_all(op, limit, condition, *carried, *self.builder.captured))


def _kept(before: TensorType, after: TensorType, changing: set[tir.Expr]) -> TensorType:
    """The type of a carried value in every iteration; `before` itself if it stays."""
    if before.dtype != after.dtype or before.rank != after.rank:
        what = "the element type" if before.dtype != after.dtype else "the rank"
        facts = {"what": what, "before": str(before), "after": str(after)}
        hint = "let the body give each carried value back with its element type and rank"
        raise GraphError(G040, facts, hint=hint)
    dims: list[tir.Expr] = []
    for dim, new in zip(before.shape, after.shape, strict=True):
        if dim not in changing and not dims_equal(dim, new):
            dim = tir.Var("carried")
            changing.add(dim)
        dims.append(dim)
    same = all(p is q for p, q in zip(dims, before.shape, strict=True))
    return before if same else TensorType(before.dtype, tuple(dims))


def branch(b: Builder, condition: Value, then: Way, otherwise: Way) -> list[Value]:
    """The results of one of two ways to compute them."""
    known = b.truth(condition)
    if known is not None:
        return list((then if known else otherwise)(b, lambda v: v))
    ways = [Inner(b, "then"), Inner(b, "else")]
    for way, holds in zip(ways, (True, False), strict=True):
        way.assume(condition, holds=holds)
    outputs = [make(way, way.capture) for make, way in zip((then, otherwise), ways, strict=True)]
    results = [_either(p.type, q.type, b) for p, q in zip(*outputs, strict=True)]
    captured = list(dict.fromkeys(v for way in ways for v in way.captured))
    graphs = [w.closed(o, captured=captured) for w, o in zip(ways, outputs, strict=True)]
    op = If(graphs[0], graphs[1], tuple(results))
    return list(b.add_all(op, b.reshape(condition, ()), *captured))


def _either(first: TensorType, second: TensorType, outer: Builder) -> TensorType:
    if first.dtype != second.dtype or first.rank != second.rank:
        what = "element type" if first.dtype != second.dtype else "rank"
        facts = {"what": what, "first": str(first), "second": str(second)}
        hint = "let both branches give tensors of one element type and rank"
        raise GraphError(G041, facts, hint=hint)
    dims = [
        p if dims_equal(p, q) else fresh_size()
        for p, q in zip(first.shape, second.shape, strict=True)
    ]
    return only_visible(TensorType(first.dtype, tuple(dims)), outer)
