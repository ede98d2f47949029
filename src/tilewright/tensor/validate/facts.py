"""Proving conditions on loops, with predicates as further facts, and images of loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.arith.itermap import Refusal
from tilewright.tensor.validate.groups import Maps
from tilewright.tensor.visit import free_vars, substitute, walk

__all__ = ["Image", "Known", "image_of", "rises"]

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

    def reached(self, low: tir.Expr, high: tir.Expr, image: Image, n: int) -> bool:
        """Whether a value (two forms of it, of which `low` is the lesser) is in an image."""
        least, extent, step = image.least[n], image.extents[n], image.steps[n]
        if step > 1:
            if self.analyzer.divisor(low - least) % step:
                return False
            low, high, least = (low - least) // step, (high - least) // step, ZERO
        return self.holds(least <= high) and self.holds(low < least + extent)

    def within(self, value: tir.Expr, least: tir.Expr, extent: tir.Expr) -> bool:
        """Whether `least <= value < least + extent`."""
        return self.holds(least <= value) and self.holds(value < least + extent)


@dataclass(slots=True)
class Image:
    """The values of some expressions while loops run: a box, each point of which is taken.

    Along each dimension: the least value, how many there are, and how far apart they are.
    """

    least: list[tir.Expr]
    extents: list[tir.Expr]
    steps: list[int]
    exact: bool


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
    image = Image([], [], [], exact=True)
    moved: list[tir.Expr] = []
    zeros: dict[tir.Var, tir.Expr] = {p.var: ZERO for p in used}
    for expr in exprs:
        low = analyzer.simplify(substitute(expr, zeros))
        high = expr
        for var, extent in reversed(inner):
            high = substitute(high, {var: extent - 1})
        distance = analyzer.simplify(expr - low)
        step = analyzer.divisor(distance) or 1
        image.least.append(low)
        image.steps.append(step)
        image.extents.append(analyzer.simplify((high - low) // step + 1))
        moved.append(distance if step == 1 else analyzer.simplify(distance // step))
    found = maps.detect(moved, image.extents, inner, tir.TRUE, outer)
    if not isinstance(found, Refusal):
        image.exact = found.is_exact
        return image
    if image.steps != [1]:
        return None
    exact = _telescopes(exprs[0], inner, outer)
    image.exact = exact is True
    return None if exact is None else image


Loops = Sequence[tuple[tir.Var, tir.Expr]]


def _telescopes(expr: tir.Expr, loops: Loops, outer: Mapping[tir.Var, tir.Expr]) -> bool | None:
    """Is every value from the first to the last taken, because each iteration of a loop begins
    where the one before has ended, or earlier? True if never earlier, None if it is not known.

    Tiles inside of tiles are so, whatever their sizes are.
    """
    exact = True
    for where, last, further in _steps(expr, loops, outer):
        if not where.prove(further <= last + 1):
            return None
        exact = exact and where.prove_equal(further, last + 1) is True
    return exact


def _steps(
    expr: tir.Expr, loops: Loops, outer: Mapping[tir.Var, tir.Expr]
) -> Iterator[tuple[Analyzer, tir.Expr, tir.Expr]]:
    """For each loop, innermost first: the last value of an iteration and the first of the next one,
    and what holds where there is a next one.
    """
    first = last = expr
    for n in range(len(loops) - 1, -1, -1):
        var, extent = loops[n]
        if tir.int_value(extent) != 1:
            where = Analyzer({**outer, **dict(loops[: n + 1])}).assume(var + 1 < extent)
            yield where, last, substitute(first, {var: var + 1})
        first = substitute(first, {var: ZERO})
        last = substitute(last, {var: extent - 1})


def rises(expr: tir.Expr, loops: Loops) -> bool:
    """Is an expression the larger, the later it is reached?

    Loops that are not in it do not matter, and of a loop only the digits that are in it do.
    """
    used = [loop for loop in loops if loop[0] in free_vars(expr)]
    while (cut := _digit_in(expr, used)) is not None:
        expr, used = cut
    return all(where.prove(last < further) for where, last, further in _steps(expr, used, {}))


def _digit_in(
    expr: tir.Expr, loops: Loops
) -> tuple[tir.Expr, list[tuple[tir.Var, tir.Expr]]] | None:
    """A loop of which the expression has digits, `i % c` or `i // c`, as two loops."""
    extents = dict(loops)
    for part in walk(expr):
        if not isinstance(part, tir.FloorDiv | tir.FloorMod) or part.a not in extents:
            continue
        var, by = part.a, part.b
        assert isinstance(var, tir.Var)
        analyzer = Analyzer(extents)
        if not free_vars(by).isdisjoint(extents) or not analyzer.prove(by >= 1):
            continue
        count = analyzer.simplify(extents[var] // by)
        if not analyzer.prove_equal(count * by, extents[var]):
            continue
        upper, lower = tir.Var(f"{var.name}_0"), tir.Var(f"{var.name}_1")
        value = {var: upper * by + lower}
        halves = [(upper, count), (lower, by)]
        made: list[tuple[tir.Var, tir.Expr]] = []
        for old, extent in loops:
            made += halves if old is var else [(old, substitute(extent, value))]
        known = Analyzer(dict(made))
        made = [(v, known.simplify(e)) for v, e in made]
        new = known.simplify(substitute(expr, value))
        return new, [loop for loop in made if loop[0] in free_vars(new)]
    return None
