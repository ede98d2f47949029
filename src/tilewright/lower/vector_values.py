"""Expressions over several iterations of a loop at once: scalars stay scalars, the rest gets lanes.

`VectorValues` rewrites expressions for the iterations `base, base + 1, …` of a loop variable. What
does not depend on the variable is computed once and broadcast where a vector needs it. Indices that
move evenly become a `Ramp`; whether they do is decided on their form, with the analyzer's help
where there are divisions (`(8*t + lane) // 8` does not move at all).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from tilewright.dtypes import index
from tilewright.lower import fold, forms
from tilewright.lower.simplify import analyzer_of, is_linear
from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.visit import free_vars, holds

__all__ = ["CannotVectorize", "Surroundings", "VectorValues", "spread"]


class CannotVectorize(Exception):  # noqa: N818 (a way out of the walk, never seen by users)
    """Why a loop body has no vector form."""


def spread(expr: tir.Expr, lanes: int) -> tir.Expr:
    """The expression as a vector of `lanes`."""
    if expr.dtype.lanes == lanes:
        return expr
    if expr.dtype.lanes != 1:
        raise CannotVectorize("its body has vectors already")
    return tir.Broadcast(expr, lanes)


class Surroundings:
    """The loops around a vector loop, and the number of a lane.

    What an analyzer finds out about the indices of one vector holds for the others; it is made only
    for loops whose indices have divisions.
    """

    def __init__(self, func: tir.Func, around: Sequence[tir.For]) -> None:
        self.func, self.around = func, around
        self.lane = tir.Var("lane")
        self._analyzers: dict[int, Analyzer] = {}

    def analyzer(self, lanes: int) -> Analyzer:
        """Knows the ranges of the loops, and that there are so many lanes."""
        found = self._analyzers.get(lanes)
        if found is None:
            found = analyzer_of(self.func)
            for loop in self.around:
                found = found.bind(loop.var, loop.extent)
            found = self._analyzers[lanes] = found.bind(self.lane, lanes)
        return found

    def within(self, loop: tir.For) -> Surroundings:
        """The same with one more loop."""
        return Surroundings(self.func, (*self.around, loop))


class VectorValues:
    """Rewrites expressions for iterations `base … base + lanes - 1` of `var`."""

    def __init__(
        self, var: tir.Var, base: tir.Expr, lanes: int, surroundings: Surroundings
    ) -> None:
        self.var, self.base, self.lanes, self.surroundings = var, base, lanes, surroundings
        self.lane = surroundings.lane
        self.at = {var: fold.fold_binary(tir.Add, base, self.lane)}
        self.renamed: dict[tir.Var, tir.Var] = {}  # of `Let`s whose value has lanes
        self._indices: dict[tir.Expr, tir.Expr] = {}

    def moves(self, expr: tir.Expr) -> bool:
        """Does the value differ between iterations?"""
        free = free_vars(expr)
        return self.var in free or not self.renamed.keys().isdisjoint(free)

    def value(self, expr: tir.Expr) -> tir.Expr:
        """A scalar if it is the same in all iterations, else a vector."""
        if not self.moves(expr):
            return expr
        if expr.dtype.lanes != 1:
            raise CannotVectorize("its body has vectors already")
        if isinstance(expr, tir.Var):
            ramp = tir.Ramp(self.base, tir.Const(1), self.lanes)
            return ramp if expr is self.var else self.renamed[expr]
        if isinstance(expr, tir.Binary):
            if expr.dtype is index and not holds(expr, tir.Load):
                return self.index(expr)
            return self.binary(expr)
        rule = _VALUES.get(type(expr))
        if rule is None:
            raise CannotVectorize(f"`{type(expr).__name__}` in its body has no vector form")
        return rule(self, expr)

    def vector(self, expr: tir.Expr) -> tir.Expr:
        """A vector in any case."""
        return spread(self.value(expr), self.lanes)

    def index(self, expr: tir.Expr) -> tir.Expr:
        """An index: a scalar, a `Ramp`, or a vector of any other shape."""
        if not self.moves(expr):
            return expr
        if self.renamed or holds(expr, tir.Load):
            return self.value(expr) if not isinstance(expr, tir.Binary) else self.binary(expr)
        found = self._indices.get(expr)
        if found is None:
            found = self._indices[expr] = self._new_index(expr)
        return found

    def _new_index(self, expr: tir.Expr) -> tir.Expr:
        here = fold.substitute(expr, self.at)
        if not is_linear(here):
            here = self.surroundings.analyzer(self.lanes).simplify(here)
        parts = forms.split(forms.form_of(here), self.lane)
        if parts is None:
            return self.binary(expr) if isinstance(expr, tir.Binary) else self.value(expr)
        factor, rest = parts
        start = self.start(here, rest)
        step = forms.const_of(factor)
        if step == 0:
            return start
        if step is not None:
            return tir.Ramp(start, tir.Const(step), self.lanes)
        steps = tir.Ramp(tir.Const(0), tir.Const(1), self.lanes)
        return spread(start, self.lanes) + steps * spread(forms.expr_of(factor), self.lanes)

    def holds_everywhere(self, cond: tir.Expr) -> tir.Expr | None:
        """A scalar condition that holds only if `cond` does in every lane; None if none is found.

        A comparison of linear indices is decided by its worst lane, the first or the last.
        """
        if not self.moves(cond):
            return cond
        if type(cond) is tir.BitAnd:
            left, right = self.holds_everywhere(cond.a), self.holds_everywhere(cond.b)
            return None if left is None or right is None else tir.BitAnd(left, right)
        if type(cond) not in (tir.Lt, tir.Le) or cond.a.dtype != index:  # type: ignore[attr-defined]
            return None
        lane = fold.substitute(cond, self.at)
        assert isinstance(lane, tir.Compare)
        parts = forms.split(forms.form_of(fold.fold_binary(tir.Sub, lane.a, lane.b)), self.lane)
        step = None if parts is None else forms.const_of(parts[0])
        if step is None:
            return None
        worst = tir.Const(self.lanes - 1 if step > 0 else 0)
        return fold.substitute(lane, {self.lane: worst})

    def place(self, buffer: tir.Buffer, indices: tuple[tir.Expr, ...]) -> tuple[tir.Expr, ...]:
        """Where a store goes."""
        del buffer
        return tuple([self.index(i) for i in indices])

    def source(self, buffer: tir.Buffer, indices: tuple[tir.Expr, ...]) -> tuple[tir.Expr, ...]:
        """Where a load comes from."""
        del buffer
        return tuple([self.index(i) for i in indices])

    def folded(self, expr: tir.Expr, identity: tir.Expr) -> tir.Expr:
        """A vector whose lanes are folded; `identity` is what changes nothing."""
        del identity
        return self.vector(expr)

    def start(self, here: tir.Expr, rest: forms.Form) -> tir.Expr:
        """The index of lane 0, with the terms in the order they had."""
        if is_linear(here):
            return fold.substitute(here, {self.lane: tir.Const(0)})
        return forms.expr_of(rest)

    def binary(self, expr: tir.Binary) -> tir.Expr:
        return type(expr)(self.vector(expr.a), self.vector(expr.b))

    def load(self, expr: tir.Load) -> tir.Expr:
        return tir.Load(expr.buffer, self.source(expr.buffer, expr.indices))

    def select(self, expr: tir.Select) -> tir.Expr:
        return tir.Select(
            self.vector(expr.cond), self.vector(expr.if_true), self.vector(expr.if_false)
        )

    def unary(self, expr: Any) -> tir.Expr:
        return type(expr)(self.vector(expr.value))  # type: ignore[no-any-return]

    def convert(self, expr: Any) -> tir.Expr:
        return type(expr)(expr.dtype.vector(self.lanes), self.vector(expr.value))  # type: ignore[no-any-return]

    def call(self, expr: tir.Call) -> tir.Expr:
        args = tuple([self.vector(a) for a in expr.args])
        return tir.Call(expr.name, args, expr.dtype.vector(self.lanes))

    def let(self, expr: tir.Let) -> tir.Expr:
        value = self.value(expr.value)
        var = tir.Var(expr.var.name, value.dtype)
        if value.dtype.lanes == 1:
            body = fold.substitute(expr.body, {expr.var: var})
            return tir.Let(var, value, self.value(body))
        self.renamed[expr.var] = var
        return tir.Let(var, value, self.vector(expr.body))


_VALUES: Final[dict[type[tir.Expr], Callable[[VectorValues, Any], tir.Expr]]] = {
    tir.Load: VectorValues.load,
    tir.Select: VectorValues.select,
    tir.Not: VectorValues.unary,
    tir.Neg: VectorValues.unary,
    tir.Cast: VectorValues.convert,
    tir.Reinterpret: VectorValues.convert,
    tir.Call: VectorValues.call,
    tir.Let: VectorValues.let,
}
