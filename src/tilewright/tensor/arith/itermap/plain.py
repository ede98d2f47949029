"""The short way for what most blocks look like: sums of whole loops with constant extents.

It accepts only exact mixed radix numbers with no predicate, and leaves everything else, also every
refusal, to the full algorithm. It computes with plain numbers and builds no forms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.tensor.ir import Add, Const, Expr, Mul, Var

__all__ = ["plain_uses"]


def plain_uses(
    bindings: Sequence[Expr], domain: Sequence[Expr], loops: Sequence[tuple[Var, Expr]]
) -> tuple[tuple[Var, ...], ...] | None:
    """The loops of each binding if all bindings are plain; None leaves the question open."""
    sizes: dict[Var, int] = {}
    for var, extent in loops:
        if type(extent) is not Const:
            return None
        sizes[var] = extent.value  # type: ignore[assignment]
    uses: list[tuple[Var, ...]] = []
    taken: set[Var] = set()
    for binding, extent in zip(bindings, domain, strict=True):
        factors: dict[Var, int] = {}
        if type(extent) is not Const or not _collect(binding, 1, factors):
            return None
        reach = 1
        for var, factor in sorted(factors.items(), key=lambda item: item[1]):
            size = sizes.get(var)
            if size == 1:
                continue
            if size is None or factor != reach or var in taken:
                return None
            taken.add(var)
            reach *= size
        if reach != extent.value:
            return None
        uses.append(tuple(v for v in sizes if v in factors and sizes[v] != 1))
    return tuple(uses)


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
