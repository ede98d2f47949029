"""Graphs inside of graphs: builders that capture what they read from outside.

    inner = Inner(b, "body")
    y = inner.map(lambda v: v + 1.0, inner.capture(x))
    graph = inner.closed([y])

What is known outside (constants, contents that are expressions over sizes) is known inside; every
other value becomes an input. A product or a fold that the outside has computed of the same values
is such a value, too, instead of being computed again: in a loop behind its first iteration, that is
whatever does not change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from tilewright.graph.builder import Builder
from tilewright.graph.ir import Graph, TensorType, Value
from tilewright.graph.ops.op import Op, Role
from tilewright.graph.sizes import variables
from tilewright.tensor import ir as tir

__all__ = ["Inner", "hidden_sizes", "only_visible"]

HEAVY: Final = (Role.ANCHOR, Role.REDUCE)
"""What costs more to compute than to keep; the rest shares kernels with its neighbours."""


class Inner(Builder):
    """Builds a graph inside of the graph of `outer`; `counters` are its own size variables."""

    def __init__(self, outer: Builder, name: str, counters: Sequence[tir.Var] = ()) -> None:
        super().__init__(name, outer.purse)
        self.outer, self.spreads = outer, outer.spreads
        self.strict, self.claims, self.guards = outer.strict, outer.claims, outer.guards
        self.counters = tuple(counters)
        self.label = outer.label
        self.captured: dict[Value, Value] = {}
        self.origins: dict[Value, Value] = {}
        self._known: dict[Value, Value] = {}
        self._twins: dict[Value, Value] = {}  # values of the outside that are the same
        self.facts: dict[Value | tir.Expr, bool] = {}

    def assume(self, condition: Value, *, holds: bool) -> None:
        """What is known of a condition of the outside wherever this graph runs."""
        self.facts[condition] = holds
        told = self.outer.integers(condition)
        if told is not None:
            self.facts[told[0]] = holds

    def truth(self, condition: Value) -> bool | None:
        """Whether a condition holds: also one on which the graph itself, or one around it, runs."""
        known = super().truth(condition)
        told = self.integers(condition) if known is None else None
        builder: Builder = self
        while known is None and isinstance(builder, Inner):
            if condition in builder.origins:
                condition = builder.origins[condition]
                known = builder.facts.get(condition)
            if known is None and told is not None:
                known = builder.facts.get(told[0])
            builder = builder.outer
        return known

    def add_all(self, op: Op, *inputs: Value, fold: bool = True) -> tuple[Value, ...]:
        """Apply an operator, or take what the outside has made of the same values."""
        twins = [self._twins.get(value) for value in inputs]
        around = [value for value in twins if value is not None]
        is_same = fold and bool(inputs) and len(around) == len(twins)
        found = self.outer.computed(op, around) if is_same else None
        if found is None:
            return super().add_all(op, *inputs, fold=fold)
        if op.role in HEAVY:
            return tuple(map(self.capture, found))
        made = super().add_all(op, *inputs, fold=fold)
        self._twins.update(zip(made, found, strict=True))
        return made

    def capture(self, value: Value) -> Value:
        """What stands inside for a value of the outside."""
        inside = self._captured(value)
        self._twins[inside] = value
        return inside

    def _captured(self, value: Value) -> Value:
        if value in self.captured:
            return self.captured[value]
        if value not in self._known:
            held = self.outer.contents(value)
            if held is None:
                inside = self.input(value.name, value.dtype, value.shape)
                self.captured[value] = inside
                self.origins[inside] = value
                return inside
            if held.dtype == object:
                flat = self.sizes(list(held.flat), value.dtype)
                self._known[value] = self.reshape(flat, held.shape)
            else:
                self._known[value] = self.constant(held, value.name)
        return self._known[value]

    def closed(
        self,
        outputs: Sequence[Value],
        own: Sequence[Value] = (),
        captured: Iterable[Value] | None = None,
    ) -> Graph:
        """The graph with the inputs `own`, then those of `captured` (all captured so far)."""
        order = list(self.captured) if captured is None else list(captured)
        for value in order:
            if value not in self.captured:  # another graph of the same operator reads it
                self.captured[value] = self.input(value.name, value.dtype, value.shape)
        self.inputs = [*own, *(self.captured[value] for value in order)]
        return self.graph(outputs)


def visible_sizes(b: Builder) -> set[tir.Var]:
    """The size variables that have a value where `b` builds."""
    found: set[tir.Var] = set()
    values = [*b.inputs, *(value for node in b.nodes for value in node.outputs)]
    found.update(variables(dim for value in values for dim in value.shape))
    if isinstance(b, Inner):
        found.update(b.counters)
        found |= visible_sizes(b.outer)
    return found


def hidden_sizes(dims: Iterable[tir.Expr], outer: Builder) -> set[tir.Var]:
    """Size variables in dimensions that mean nothing where `outer` builds."""
    return set(variables(dims)) - visible_sizes(outer)


def only_visible(kind: TensorType, outer: Builder) -> TensorType:
    """A type of the inside for the outside: a dimension that only the inside knows is a new
    variable.
    """
    hidden = hidden_sizes(kind.shape, outer)
    dims = [fresh_size() if hidden & set(variables([d])) else d for d in kind.shape]
    return TensorType(kind.dtype, tuple(dims))


_made = 0


def fresh_size() -> tir.Var:
    """A size that only a run tells."""
    global _made  # noqa: PLW0603  (names differ for readers only; identity is meaning)
    _made += 1
    return tir.Var(f"found{_made}")
