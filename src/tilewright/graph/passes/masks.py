"""What masks of attention say: parts that are joined, parts that hold always, and the causal one.

A mask that is a formula of places (`key <= query`) is told from one that holds data by following
it back to where its elements come from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tilewright.graph.ir import Array, Shape, Value
from tilewright.graph.ops import Expand, Map, Reshape, Sizes, Tabulate, argument, axis, computed_as
from tilewright.graph.passes.logits import NEVER, literal_body
from tilewright.graph.passes.rewrite import Rewriter
from tilewright.graph.sizes import dims_equal, filled, fixed, tidy, variables
from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.visit import free_vars, substitute

__all__ = ["Masks"]


@dataclass
class Masks:
    """Masks for scores of a shape; `causal` is the offset of a causal one."""

    b: Rewriter
    scores: Shape
    kept: list[Value] = field(default_factory=list)
    causal: tir.Expr | None = None

    def add(self, mask: Value, *, alone: bool) -> None:
        """One mask, in parts if it has some; `alone`: no other one is added to the scores.

        Where a mask is finite, a query without any key sees all keys alike: such a mask is taken
        apart only if every query has a key.
        """
        condition, low = self._condition(mask, alone=alone)
        if condition is None:
            self.kept.append(mask)
            return
        parts = self._parts(condition)
        offsets = {part: offset for part in parts if (offset := self._offset(part)) is not None}
        needed = [p for p in parts if p not in offsets or not self._sees_all(offsets[p])]
        causal = next((p for p in needed if p in offsets), None)
        seeing = causal is not None and len(needed) == 1 and self._holds(offsets[causal] >= 0)
        if low == -math.inf or (alone and seeing):
            if causal is not None and self.causal is None:
                self.causal = offsets[causal]
                needed.remove(causal)
            self.kept += needed
        elif len(needed) == len(parts):
            self.kept.append(mask)
        elif needed:
            self.kept.append(self._cut(needed, low, mask))

    def _cut(self, conditions: Sequence[Value], low: float, like: Value) -> Value:
        """0 where all conditions hold, else `low`."""
        whole = conditions[0]
        for other in conditions[1:]:
            whole = self.b.map(lambda p, q: p & q, whole, other)
        wide = computed_as(like.dtype)
        zero, never = tir.const(0, wide), tir.const(low, wide)
        return self.b.map(lambda c: tir.Select(c, zero, never), whole, dtype=like.dtype)

    def _condition(self, mask: Value, *, alone: bool) -> tuple[Value | None, float]:
        """What holds where a mask is 0, and what it is elsewhere."""
        if mask.dtype.is_bool:
            return mask, -math.inf
        known = self.b.constants.get(mask)
        if known is not None:
            cut = alone and _is_cut(known)
            return (self.b.constant(known > -1.0), float(known.min())) if cut else (None, 0.0)
        found = self.b.made_by(mask, Map)
        body = None if found is None else literal_body(self.b, found[1])
        if found is None or not isinstance(body, tir.Select) or not isinstance(body.cond, tir.Var):
            return None, 0.0
        zero, low = _literal(body.if_true), _literal(body.if_false)
        if zero != 0 or low is None or low > NEVER:
            return None, 0.0
        return found[1].inputs[int(body.cond.name.removeprefix("arg"))], low

    def _parts(self, condition: Value) -> list[Value]:
        """Conditions that hold together, without those that always do."""
        found = self.b.made_by(condition, Map)
        if found is not None and _is_and(found[0].body):
            return [part for operand in found[1].inputs for part in self._parts(operand)]
        return [condition]

    def _sees_all(self, offset: tir.Expr) -> bool:
        """Whether already the first query sees the last key."""
        return self._holds(self.scores[-1] - 1 <= offset)

    def _holds(self, condition: tir.Expr) -> bool:
        """Whether a relation between sizes is certain where there are scores."""
        return filled(tuple(self.scores), variables([condition])).prove(condition) is True

    def _offset(self, cond: Value) -> tir.Expr | None:
        """The c of a condition `key <= query + c`; a great one if it always holds."""
        known = self.b.constants.get(cond)
        if known is not None:
            return self.scores[-1] if known.all() else _offset_of(known)
        places: list[tir.Expr] = [axis(k) for k in range(len(self.scores))]
        places = places[len(places) - cond.rank :]
        at = [tir.Const(0) if fixed(d) == 1 else p for d, p in zip(cond.shape, places, strict=True)]
        element = self._element(cond, at)
        if element is None:
            return None
        query, key = axis(len(self.scores) - 2), axis(len(self.scores) - 1)
        analyzer = Analyzer({query: self.scores[-2], key: self.scores[-1]})
        element = analyzer.simplify(element)
        if element == tir.TRUE:
            return self.scores[-1]
        if not isinstance(element, tir.Le | tir.Lt):
            return None
        if fixed(self.scores[-2]) == 1:
            element = substitute(element, {query: tir.Const(0)})
            query = tir.Var("first")
        distance = element.b - element.a - (1 if isinstance(element, tir.Lt) else 0)
        offset = tidy(distance + key - (0 if query.name == "first" else query))
        return None if {query, key} & free_vars(offset) else offset

    def _element(self, value: Value, at: Sequence[tir.Expr]) -> tir.Expr | None:
        """An element as a formula of its place; None if it depends on data."""
        known = self.b.constants.get(value)
        if known is not None:
            same = known.size > 0 and bool((known == known.flat[0]).all())
            return tir.const(known.flat[0].item(), value.dtype) if same else None
        node = self.b.producer(value)
        if node is None:
            return None
        match node.op:
            case Tabulate(value=formula):
                return substitute(formula, {axis(k): p for k, p in enumerate(at)}).to(value.dtype)
            case Sizes(values=(single,)):
                return single.to(value.dtype)
            case Reshape():
                inner = _without_ones(value.shape, node.inputs[0].shape, at)
                return None if inner is None else self._element(node.inputs[0], inner)
            case Expand():
                return self._element(node.inputs[0], _narrowed(node.inputs[0].shape, at))
            case Map(body=body):
                return self._mapped(body, node.inputs, at)
        return None

    def _mapped(
        self, body: tir.Expr, inputs: Sequence[Value], at: Sequence[tir.Expr]
    ) -> tir.Expr | None:
        values: dict[tir.Var, tir.Expr] = {}
        for k, value in enumerate(inputs):
            element = self._element(value, _narrowed(value.shape, at))
            if element is None:
                return None
            values[argument(k, computed_as(value.dtype))] = element
        return substitute(body, values)


def _narrowed(shape: Shape, at: Sequence[tir.Expr]) -> list[tir.Expr]:
    """The place in an operand that is broadcast."""
    own = at[len(at) - len(shape) :]
    return [tir.Const(0) if fixed(d) == 1 else p for d, p in zip(shape, own, strict=True)]


def _without_ones(after: Shape, before: Shape, at: Sequence[tir.Expr]) -> list[tir.Expr] | None:
    """The place before a reshape that only adds or drops dimensions of size one."""
    wide = [(d, p) for d, p in zip(after, at, strict=True) if fixed(d) != 1]
    result: list[tir.Expr] = []
    for dim in before:
        if fixed(dim) == 1:
            result.append(tir.Const(0))
        elif wide and dims_equal(wide[0][0], dim):
            result.append(wide.pop(0)[1])
        else:
            return None
    return None if wide else result


def _is_and(body: tir.Expr) -> bool:
    """Whether an expression is nothing but `arg0 and arg1`."""
    if not isinstance(body, tir.BitAnd) or not body.dtype.is_bool:
        return False
    return isinstance(body.a, tir.Var) and isinstance(body.b, tir.Var)


def _literal(expr: tir.Expr) -> float | None:
    return float(expr.value) if isinstance(expr, tir.Const) else None


def _is_cut(known: Array) -> bool:
    """Whether each row keeps some keys as they are (0) and cuts off the others (very small)."""
    kept = known == 0
    cut = known <= -1e30
    return bool((kept | cut).all() and kept.any(axis=-1).all())


def _offset_of(known: Array) -> tir.Expr | None:
    """The c of a constant mask `key <= query + c`, the same for all heads and samples."""
    if known.ndim < 2 or known.size == 0:
        return None
    table = known.reshape(-1, *known.shape[-2:])
    offset = int(table[0, 0].sum()) - 1
    i, j = np.ogrid[: table.shape[1], : table.shape[2]]
    return tir.Const(offset) if offset >= 0 and (table == (j <= i + offset)).all() else None
