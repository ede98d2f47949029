"""Do different iterations of a loop touch different elements?

Two iterations are told apart by their order: with `p < q`, what one touches must end where the other
begins, or before. Indices that never agree modulo a stride are apart in any order.
"""

from __future__ import annotations

from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.validate.bindings import Bound
from tilewright.tensor.validate.groups import Maps
from tilewright.tensor.visit import substitute

__all__ = ["stay_apart"]

Ranges = tuple[tir.Range, ...]


def stay_apart(
    first: Bound, a: tir.Region, second: Bound, b: tir.Region, loop: tir.For, maps: Maps
) -> bool:
    """Is `a` of one block, in one iteration of the loop, disjoint from `b` of the other block in
    another iteration? Loops further out stand still, those further in run. False if unknown.
    """
    about = (first.mapped, a, second.mapped, b, loop.var)
    return maps.once("apart", about, lambda: _stay_apart(first, a, second, b, loop))


def _stay_apart(first: Bound, a: tir.Region, second: Bound, b: tir.Region, loop: tir.For) -> bool:
    extents = first.place.extents()
    others, moved = _renamed(second, loop)
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
    block: Bound, loop: tir.For
) -> tuple[dict[tir.Var, tir.Expr], dict[tir.Var, tir.Expr]]:
    """New variables, with extents, for the loop and those further in; old variables to new."""
    extents: dict[tir.Var, tir.Expr] = {}
    moved: dict[tir.Var, tir.Expr] = {}
    loops = block.place.loops
    start = next(n for n, p in enumerate(loops) if p.var is loop.var)
    for part in loops[start:]:
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
