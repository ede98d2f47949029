"""Do different iterations of a loop touch different elements?

Two iterations are told apart by their order: with `p < q`, what one touches must end where the
other begins, or before. Indices that never agree modulo a stride are apart in any order.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.validate.bindings import Bound
from tilewright.tensor.validate.groups import Maps
from tilewright.tensor.visit import substitute

__all__ = ["never_meet", "stay_apart"]

Ranges = tuple[tir.Range, ...]


def stay_apart(
    first: Bound, a: tir.Region, second: Bound, b: tir.Region, loop: tir.For, maps: Maps
) -> bool:
    """Is `a` of one block, in one iteration of the loop, disjoint from `b` of the other block in
    another iteration? Loops further out stand still, those further in run. False if unknown.
    """
    about = (first.mapped, a, second.mapped, b, loop.var)
    return maps.once("apart", about, lambda: _stay_apart(first, a, second, b, loop))


def never_meet(first: Bound, a: tir.Region, second: Bound, b: tir.Region, maps: Maps) -> bool:
    """Is `a` of one block disjoint from `b` of the other, whenever they run? False if unknown."""
    about = (first.mapped, a, second.mapped, b)
    return maps.once("meet", about, lambda: _never_meet(first, a, second, b))


def _never_meet(first: Bound, a: tir.Region, second: Bound, b: tir.Region) -> bool:
    others, moved = _renamed(second.place.loops)
    here = first.place.at(a).ranges
    there = tuple([substitute(r, moved) for r in second.place.at(b).ranges])
    analyzer = Analyzer({**first.place.extents(), **others})
    pairs = zip(here, there, strict=True)
    return any(_never_agree(x, y, analyzer) for x, y in pairs) or _ordered(here, there, analyzer)


def _stay_apart(first: Bound, a: tir.Region, second: Bound, b: tir.Region, loop: tir.For) -> bool:
    extents = first.place.extents()
    loops = second.place.loops
    start = next(n for n, p in enumerate(loops) if p.var is loop.var)
    others, moved = _renamed(loops[start:])
    here = first.place.at(a).ranges
    there = tuple([substitute(r, moved) for r in second.place.at(b).ranges])
    analyzer = Analyzer({**extents, **others})
    if any(_never_agree(x, y, analyzer) for x, y in zip(here, there, strict=True)):
        return True
    mine, other = loop.var, moved[loop.var]
    return all(
        _ordered(here, there, analyzer.assume(cond)) for cond in (mine < other, other < mine)
    )


def _renamed(
    loops: Sequence[tir.For],
) -> tuple[dict[tir.Var, tir.Expr], dict[tir.Var, tir.Expr]]:
    """New variables for loops, with their extents; old variables to new."""
    extents: dict[tir.Var, tir.Expr] = {}
    moved: dict[tir.Var, tir.Expr] = {}
    for part in loops:
        var = tir.Var(part.var.name)
        extents[var] = substitute(part.extent, moved)
        moved[part.var] = var
    return extents, moved


def _ordered(here: Ranges, there: Ranges, analyzer: Analyzer) -> bool:
    """Is one of the boxes completely behind the other in some dimension?"""
    return any(
        analyzer.prove(x.start + x.extent <= y.start)
        or analyzer.prove(y.start + y.extent <= x.start)
        for x, y in zip(here, there, strict=True)
    )


def _never_agree(x: tir.Range, y: tir.Range, analyzer: Analyzer) -> bool:
    """Do the distances of the two starts, all of one residue, leave no room for the ranges?"""
    modulus, rest = analyzer.residue(y.start - x.start)
    before, behind = analyzer.bounds(x.extent).hi, analyzer.bounds(y.extent).hi
    if modulus < 2 or before is None or behind is None:
        return False
    return before <= rest and behind <= modulus - rest
