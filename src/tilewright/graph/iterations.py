"""One iteration of a loop as a graph of its own, of types that hold in every iteration.

The types of carried values are a fixpoint: the body is built with those of the initial values, and
built anew with whatever it changes, until it gives back what it takes. A size that changes becomes
a variable of its own. Element types and ranks cannot vary (G040): a loop whose first iterations
alone differ is peeled instead (`loops`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tilewright.errors import Code, GraphError
from tilewright.graph.builder import Builder
from tilewright.graph.ir import TensorType, Value
from tilewright.graph.nested import Inner, fresh_size, only_visible
from tilewright.graph.ops.control import Loop
from tilewright.graph.sizes import dims_equal
from tilewright.tensor import ir as tir

__all__ = ["G040", "Body", "Iteration", "Outside", "Turn"]

G040 = Code(
    "G040", "iterations of a loop change {what} of a carried value: {before} becomes {after}"
)

Outside = Callable[[Value], Value]


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


@dataclass(frozen=True)
class Iteration:
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
    def of(cls, b: Builder, body: Body, carried: Sequence[Value]) -> Iteration:
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
