"""Proving conditions on loops, with predicates as further facts, and images of loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.arith.itermap import Refusal
from tilewright.tensor.validate.groups import Maps
from tilewright.tensor.visit import free_vars, substitute

__all__ = ["Image", "Known", "image_of"]

ZERO = tir.Const(0)


class Known:
    """What holds at a place: the ranges of its loops, and the parts of a predicate."""

    def __init__(self, extents: Mapping[tir.Var, tir.Expr], facts: Sequence[tir.Expr] = ()) -> None:
        self.analyzer = Analyzer(extents)
        self.facts = [f for f in facts if type(f) is tir.Lt or type(f) is tir.Le]

    def holds(self, cond: tir.Expr) -> bool:
        """Whether `cond` (a comparison) follows."""
        if self.analyzer.prove(cond):
            return True
        if type(cond) is not tir.Lt and type(cond) is not tir.Le:
            return False
        return any(self._implies(fact, cond) for fact in self.facts)

    def _implies(self, fact: tir.Expr, cond: tir.Expr) -> bool:
        """The fact a < b gives c < d if c - a ≤ d - b."""
        assert isinstance(fact, tir.Compare)
        assert isinstance(cond, tir.Compare)
        slack = int(type(fact) is tir.Le) - int(type(cond) is tir.Le)
        return bool(self.analyzer.prove(cond.a - fact.a + slack <= cond.b - fact.b))

    def within(self, value: tir.Expr, least: tir.Expr, extent: tir.Expr) -> bool:
        """Whether `least <= value < least + extent`."""
        return self.holds(least <= value) and self.holds(value < least + extent)


class Image:
    """The values of some expressions while loops run: a box, each point of which is taken."""

    __slots__ = ("exact", "extents", "least")

    def __init__(self, least: list[tir.Expr], extents: list[tir.Expr], *, exact: bool) -> None:
        self.least, self.extents, self.exact = least, extents, exact


def image_of(
    exprs: Sequence[tir.Expr],
    loops: Sequence[tir.For],
    outer: Mapping[tir.Var, tir.Expr],
    maps: Maps,
) -> Image | None:
    """The box that `exprs` fill while `loops` run and `outer` stand still; None if unknown.

    Expressions must grow with the loops; otherwise detection refuses them.
    """
    used = [p for p in loops if any(p.var in free_vars(e) for e in exprs)]
    inner = [(p.var, p.extent) for p in used]
    analyzer = Analyzer({**outer, **dict(inner)})
    least: list[tir.Expr] = []
    extents: list[tir.Expr] = []
    moved: list[tir.Expr] = []
    zeros: dict[tir.Var, tir.Expr] = {p.var: ZERO for p in used}
    for expr in exprs:
        low = analyzer.simplify(substitute(expr, zeros))
        high = expr
        for var, extent in reversed(inner):
            high = substitute(high, {var: extent - 1})
        least.append(low)
        extents.append(analyzer.simplify(high - low + 1))
        moved.append(analyzer.simplify(expr - low))
    found = maps.detect(moved, extents, inner, tir.TRUE, outer)
    if not isinstance(found, Refusal):
        return Image(least, extents, exact=found.is_exact)
    if len(exprs) == 1:
        exact = _telescopes(exprs[0], inner, outer)
        return None if exact is None else Image(least, extents, exact=exact)
    return None


def _telescopes(
    expr: tir.Expr, loops: Sequence[tuple[tir.Var, tir.Expr]], outer: Mapping[tir.Var, tir.Expr]
) -> bool | None:
    """Is every value from the first to the last taken, because each iteration of a loop begins
    where the one before has ended, or earlier? True if never earlier, None if it is not known.

    Tiles inside of tiles are so, whatever their sizes are.
    """
    first = last = expr
    exact = True
    for n in range(len(loops) - 1, -1, -1):
        var, extent = loops[n]
        if tir.int_value(extent) != 1:
            around = Analyzer({**outer, **dict(loops[: n + 1])}).assume(var + 1 < extent)
            further = substitute(first, {var: var + 1})
            if not around.prove(further <= last + 1):
                return None
            exact = exact and around.prove_equal(further, last + 1) is True
        first = substitute(first, {var: ZERO})
        last = substitute(last, {var: extent - 1})
    return exact
