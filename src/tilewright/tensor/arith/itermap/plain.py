"""The short way for what most blocks look like: sums of digits of loops with constant extents.

It accepts only exact mixed radix numbers with no predicate, and leaves everything else, also every
refusal, to the full algorithm. It computes with plain numbers and builds no forms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.tensor.ir import Add, Const, Expr, FloorDiv, FloorMod, Mul, Var

__all__ = ["plain_uses"]

Digit = tuple[Var, int, int]
"""(loop, lower, extent): `(loop // lower) % extent`."""


def plain_uses(
    bindings: Sequence[Expr], domain: Sequence[Expr], loops: Sequence[tuple[Var, Expr]]
) -> list[tuple[Var, ...] | None]:
    """The loops of each plain binding; None leaves the question of a binding open."""
    sizes = {v: int(e.value) for v, e in loops if type(e) is Const}
    parts = zip(bindings, domain, strict=True)
    numbers = [_mixed_radix(binding, extent, sizes) for binding, extent in parts]
    while (spoiled := _not_partitioned(numbers, sizes)) is not None:
        numbers = [None if n and any(d[0] in spoiled for d in n) else n for n in numbers]
    return [
        None if n is None else tuple([v for v, size in sizes.items() if size != 1 and _has(n, v)])
        for n in numbers
    ]


def _has(number: list[Digit], var: Var) -> bool:
    return any(digit[0] is var for digit in number)


def _mixed_radix(binding: Expr, extent: Expr, sizes: Mapping[Var, int]) -> list[Digit] | None:
    """The digits of a binding that is an exact mixed radix number of its extent."""
    factors: dict[Digit, int] = {}
    if type(extent) is not Const or not _collect(binding, 1, factors, sizes):
        return None
    reach = 1
    kept: list[Digit] = []
    for digit, factor in sorted(factors.items(), key=lambda item: item[1]):
        if digit[2] == 1:
            continue
        if factor != reach:
            return None
        reach *= digit[2]
        kept.append(digit)
    return kept if reach == extent.value else None


def _not_partitioned(
    numbers: list[list[Digit] | None], sizes: Mapping[Var, int]
) -> set[Var] | None:
    """Loops whose digits are not all used, each once; None if there are none."""
    digits: dict[Var, list[tuple[int, int]]] = {}
    for number in numbers:
        for var, lower, extent in number or ():
            digits.setdefault(var, []).append((lower, extent))
    spoiled: set[Var] = set()
    for var, own in digits.items():
        reach = 1
        for lower, extent in sorted(own):
            if lower != reach:
                spoiled.add(var)
            reach *= extent
        if reach != sizes[var]:
            spoiled.add(var)
    return spoiled or None


def _collect(expr: Any, factor: int, factors: dict[Digit, int], sizes: Mapping[Var, int]) -> bool:
    """Add the terms of a sum of digits; False if there is anything else in it."""
    kind = type(expr)
    if kind is Add:
        return _collect(expr.a, factor, factors, sizes) and _collect(expr.b, factor, factors, sizes)
    if kind is Mul and type(expr.b) is Const:
        return _collect(expr.a, factor * int(expr.b.value), factors, sizes)
    if kind is Const:
        return bool(expr.value == 0)
    digit = _digit(expr, sizes)
    if digit is None:
        return False
    factors[digit] = factors.get(digit, 0) + factor
    return True


def _digit(expr: Any, sizes: Mapping[Var, int]) -> Digit | None:
    """Read `v`, `v // c`, `v % c` or `v // c % d`."""
    kind = type(expr)
    if kind is Var:
        size = sizes.get(expr)
        return None if size is None else (expr, 1, size)
    if (kind is not FloorDiv and kind is not FloorMod) or type(expr.b) is not Const:
        return None
    inner, by = _digit(expr.a, sizes), int(expr.b.value)
    if inner is None or by <= 0:
        return None
    var, lower, extent = inner
    if lower * extent < sizes[var] and extent % by and extent > by:
        return None  # a remainder that is cut once more, unevenly
    if kind is FloorMod:
        return var, lower, min(extent, by)
    return var, lower * by, -(-extent // by)
