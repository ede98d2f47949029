"""Writing loops and branches: bodies are Python functions that build.

    def body(b, step, carried, outside):
        (h,) = carried
        y = b.map(lambda v, w: v + w, h, outside(x))
        return Turn(carried=[y], collected=[y])

    last, all_of_them = loop(b, body, limit, carried=[h0])

A loop with a small number of iterations that is known becomes copies of its body. One whose first
iterations change the rank or element type of a carried value (exporters begin with a placeholder)
is peeled: these iterations stand in front of a loop over the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from tilewright.errors import Code, GraphError
from tilewright.graph.builder import Builder
from tilewright.graph.ir import TensorType, Value
from tilewright.graph.iterations import G040, Body, Iteration, Outside, Turn
from tilewright.graph.nested import Inner, fresh_size, hidden_sizes, only_visible
from tilewright.graph.ops.control import If
from tilewright.graph.sizes import dims_equal, fixed, tidy, variables
from tilewright.tensor import ir as tir

__all__ = ["G040", "G041", "Body", "Outside", "Peeled", "Turn", "Way", "branch", "loop", "peeled"]

MAX_COPIES: Final = 16
"""Iterations of a loop that becomes copies of its body."""
MAX_COPIED_NODES: Final = 256
"""Nodes that all copies may have together."""
MAX_PEELED: Final = 4
"""Iterations that are peeled off a loop of unknown length: one for each placeholder behind which
another one stands."""

G041 = Code("G041", "the branches of a condition differ in {what}: {first} and {second}")

Way = Callable[[Builder, Outside], Sequence[Value]]


def loop(
    b: Builder,
    body: Body,
    limit: Value | None,
    carried: Sequence[Value],
    condition: Value | None = None,
    copies: int = MAX_COPIES,
    peels: int = MAX_PEELED,
) -> list[Value]:
    """The carried values after the last iteration, and the collected ones of all, stacked.

    At most so many `peels` stand in front of a loop of unknown length.
    """
    starts = condition is None or b.numbers(condition) == [1]
    trips = b.integers(limit) if limit is not None else None
    count = fixed(trips[0]) if trips else None
    try:
        inner = Iteration.of(b, body, carried)
    except GraphError as problem:
        if problem.code is not G040 or (peels == 0 and (count is None or count > copies)):
            raise
        first = peeled(b, body, limit, carried, condition, peels)
        try:
            return branch(b, first.condition, first.then, first.otherwise)
        except GraphError as later:
            raise problem if later.code is G040 else later from None
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
        rows.append([_row(b, v) for v in turn.collected])
    return [*carried, *(b.concat(column, 0) for column in zip(*rows, strict=True))]


@dataclass(frozen=True)
class Peeled:
    """A loop as a condition: the first iteration and a loop over the others, or no iteration."""

    condition: Value
    then: Way
    otherwise: Way


def peeled(
    b: Builder,
    body: Body,
    limit: Value | None,
    carried: Sequence[Value],
    condition: Value | None = None,
    peels: int = MAX_PEELED,
) -> Peeled:
    """A loop with its first iteration in front."""
    allowed = b.constant(np.bool_(1)) if condition is None else b.reshape(condition, ())
    most = None if limit is None else b.reshape(limit, ())
    begins = allowed if most is None else b.map(lambda c, n: c & (n > 0), allowed, most)

    def then(inner: Builder, outside: Outside) -> list[Value]:
        start = inner.constant(np.int64(0))
        turn = body(inner, start, [outside(v) for v in carried], outside)
        left = None if most is None else inner.map(lambda n: n - 1, outside(most))
        goes_on = None if turn.goes_on is None else inner.reshape(turn.goes_on, ())
        if left is not None and inner.numbers(left) == [0]:
            return [*turn.carried, *(_row(inner, v) for v in turn.collected)]
        others = _later(body, outside)
        rest = loop(inner, others, left, turn.carried, goes_on, peels=max(peels - 1, 0))
        pairs = zip(turn.collected, rest[len(carried) :], strict=True)
        rows = [_joined(inner, first, later) for first, later in pairs]
        return [*rest[: len(carried)], *rows]

    def otherwise(inner: Builder, outside: Outside) -> list[Value]:
        scratch = Inner(inner, "trial")

        def capture(value: Value) -> Value:
            return scratch.capture(outside(value))

        own = [capture(v) for v in carried]
        turn = body(scratch, scratch.constant(np.int64(0)), own, capture)
        sizes = turn.empty or [[0] * v.rank for v in turn.collected]
        pairs = zip(turn.collected, sizes, strict=True)
        nothing = [_no_rows(inner, v.type, empty) for v, empty in pairs]
        return [*(outside(v) for v in carried), *nothing]

    return Peeled(begins, then, otherwise)


def _later(body: Body, around: Outside) -> Body:
    """The body of the iterations behind the first one, in a graph that `around` leads into."""

    def build(b: Builder, step: Value, carried: Sequence[Value], outside: Outside) -> Turn:
        following = b.map(lambda n: n + 1, step)
        return body(b, following, carried, lambda v: outside(around(v)))

    return build


def _row(b: Builder, value: Value) -> Value:
    return b.reshape(value, (1, *value.shape))


def _joined(b: Builder, first: Value, later: Value) -> Value:
    """A row and those behind it, which have its shape: also if there are none to tell a shape."""
    return b.concat([_row(b, first), b.reshape(later, (later.shape[0], *first.shape))], 0)


def _no_rows(b: Builder, kind: TensorType, declared: Sequence[int]) -> Value:
    """What no iteration collects; sizes that only an iteration tells are as declared."""
    hidden = hidden_sizes(kind.shape, b)
    pairs = zip(kind.shape, declared, strict=True)
    dims = [size if hidden.intersection(variables([d])) else d for d, size in pairs]
    return b.expand(b.constant(0, "none", kind.dtype), (0, *dims))


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
