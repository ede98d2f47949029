"""The short way for what most blocks look like: sums of whole loops with constant extents.

It accepts only exact mixed radix numbers with no predicate, and leaves everything else, also every
refusal, to the full algorithm. It computes with plain numbers and builds no forms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.tensor.ir import Add, Const, Expr, Mul, Var

__all__ = ["plain_uses"]


def plain_uses(
    bindings: Sequence[Expr], domain: Sequence[Expr], loops: Sequence[tuple[Var, Expr]]
) -> list[tuple[Var, ...] | None]:
    """The loops of each plain binding; None leaves the question of a binding open."""
    sizes = {v: int(e.value) for v, e in loops if type(e) is Const}
    uses: list[tuple[Var, ...] | None] = []
    taken: set[Var] = set()
    for binding, extent in zip(bindings, domain, strict=True):
        used = _mixed_radix(binding, extent, sizes)
        if used is None or not taken.isdisjoint(used):
            uses.append(None)
        else:
            taken.update(used)
            uses.append(used)
    return uses


def _mixed_radix(binding: Expr, extent: Expr, sizes: Mapping[Var, int]) -> tuple[Var, ...] | None:
    """The loops of a binding that is an exact mixed radix number of its extent."""
    factors: dict[Var, int] = {}
    if type(extent) is not Const or not _collect(binding, 1, factors):
        return None
    reach = 1
    for var, factor in sorted(factors.items(), key=lambda item: item[1]):
        size = sizes.get(var)
        if size == 1:
            continue
        if size is None or factor != reach:
            return None
        reach *= size
    if reach != extent.value:
        return None
    return tuple([v for v, size in sizes.items() if v in factors and size != 1])


def _collect(expr: Any, factor: int, factors: dict[Var, int]) -> bool:
    """Add the terms of a sum of variables; False if there is anything else in it."""
    kind = type(expr)
    if kind is Var:
        factors[expr] = factors.get(expr, 0) + factor
        return True
    if kind is Add:
        return _collect(expr.a, factor, factors) and _collect(expr.b, factor, factors)
    if kind is Mul and type(expr.b) is Const:
        return _collect(expr.a, factor * int(expr.b.value), factors)
    return kind is Const and expr.value == 0
