"""Minimal filtering F(m, r): m results of a filter of r elements by m + r - 1 products.

A product of polynomials is known from its values at as many points as it has coefficients (Toom and
Cook); a filter is the transpose of such a product (Winograd). With t = m + r - 1 points, the last
one at infinity, there are three matrices, all exact fractions made from the points:

    y = A · ((G · w) ⊙ (B · d))          d: t elements of data, w: r weights, y: m results

    A[i, j] = aⱼⁱ        G[j, k] = aⱼᵏ / fⱼ        B[j, ·] = coefficients of  ∏ (x - aₗ),  l ≠ j

with fⱼ = ∏ (aⱼ - aₗ); the row at infinity of G is the last weight, that of B the product over all
points. Points come in pairs ±a: rows of B that belong to a pair are a sum and a difference of the
same two parts, as are the columns of A, which halves the additions.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import prod
from typing import Final

from tilewright.tensor import ir as tir
from tilewright.tensor.build import call, placeholder
from tilewright.tensor.visit import walk

__all__ = ["Elements", "Filter", "Matrix", "minimal_filter"]

Elements = Callable[[int], tir.Expr]
Matrix = tuple[tuple[Fraction, ...], ...]

_POINTS: Final = tuple(
    map(Fraction, ("0", "1", "-1", "2", "-2", "1/2", "-1/2", "4", "-4", "1/4", "-1/4"))
)
"""Points in the order in which they are taken: small numbers and their inverses round least."""

_BETTER: Final = {
    4: tuple(map(Fraction, ("1/2", "-1/2", "5/4", "-5/4"))),
    5: tuple(map(Fraction, ("0", "3/4", "-3/4", "3/2", "-3/2"))),
    6: tuple(map(Fraction, ("1/4", "-1/4", "3/4", "-3/4", "2", "-2"))),
}
"""Of so many points these round least, about half as much (`scripts/winograd_errors.py`)."""


@dataclass(frozen=True)
class Filter:
    """The three matrices of F(results, taps)."""

    results: int
    taps: int
    back: Matrix
    weights: Matrix
    data: Matrix

    @property
    def tile(self) -> int:
        """How many elements of data one tile has: as many as there are products."""
        return self.results + self.taps - 1

    @cached_property
    def data_adds(self) -> int:
        """Additions to transform the data of a tile; those that rows share count once."""
        return _additions(self.transformed)

    @cached_property
    def back_adds(self) -> int:
        """Additions to make results of the products of a tile."""
        return _additions(self.finished)

    def transformed(self, elements: Elements) -> list[tir.Expr]:
        """The rows of B times the elements of a tile."""
        rows, pairs = self.data, _pairs(self.data)
        sums: list[tir.Expr | None] = [None] * len(rows)
        for i, row in enumerate(rows):
            other = pairs.get(i)
            if other is None:
                sums[i] = _sum(row, elements)
            elif other > i:
                same = [c if c == d else Fraction(0) for c, d in zip(row, rows[other], strict=True)]
                rest = [c - s for c, s in zip(row, same, strict=True)]
                a, b = _sum(same, elements), _sum(rest, elements)
                sums[i], sums[other] = a + b, a - b
        return [_contracted(row, s) for row, s in zip(rows, sums, strict=True) if s is not None]

    def finished(self, products: Elements) -> list[tir.Expr]:
        """The rows of A times the products of a tile."""
        pairs = _pairs(list(zip(*self.back, strict=True)))
        found: list[tir.Expr] = []
        for row in self.back:
            parts: dict[Fraction, tir.Expr] = {}
            for j, factor in enumerate(row):
                other = pairs.get(j)
                if factor == 0 or (other is not None and other < j):
                    continue
                part = products(j)
                if other is not None:
                    twin = products(other)
                    part = part + twin if row[other] == factor else part - twin
                parts[factor] = parts[factor] + part if factor in parts else part
            total = _sum(list(parts), list(parts.values()).__getitem__)
            found.append(_contracted(row, total))
        return found


@lru_cache(maxsize=64)
def minimal_filter(results: int, taps: int) -> Filter:
    """F(results, taps)."""
    tile = results + taps - 1
    if results < 1 or taps < 1 or tile > len(_POINTS) + 1:
        raise ValueError(f"no points for {results} results of {taps} elements")
    points = _BETTER.get(tile - 1, _POINTS[: tile - 1])
    back = [[_power(a, i) for a in points] + [Fraction(i == results - 1)] for i in range(results)]
    weights, data = [], []
    for a in points:
        others = [b for b in points if b != a]
        value = prod((a - b for b in others), start=Fraction(1))
        weights.append([_power(a, k) / value for k in range(taps)])
        data.append([*_from_roots(others), Fraction(0)])
    weights.append([Fraction(k == taps - 1) for k in range(taps)])
    data.append(_from_roots(points))
    return Filter(results, taps, _matrix(back), _matrix(weights), _matrix(data))


def _matrix(rows: Sequence[Sequence[Fraction]]) -> Matrix:
    return tuple(tuple(row) for row in rows)


def _additions(transform: Callable[[Elements], list[tir.Expr]]) -> int:
    place = placeholder("d", (1 << 8,))
    sums = transform(lambda k: place[k])
    return len({part for s in sums for part in walk(s) if _is_addition(part)})


def _is_addition(part: object) -> bool:
    return isinstance(part, tir.Add | tir.Sub) and part.dtype.is_float


def _power(a: Fraction, exponent: int) -> Fraction:
    return a**exponent if exponent else Fraction(1)


def _from_roots(roots: Sequence[Fraction]) -> list[Fraction]:
    """The coefficients of ∏ (x - root), the constant one first."""
    found = [Fraction(1)]
    for root in roots:
        raised, lowered = [Fraction(0), *found], [*(c * root for c in found), Fraction(0)]
        found = [a - b for a, b in zip(raised, lowered, strict=True)]
    return found


def _pairs(rows: Sequence[Sequence[Fraction]]) -> dict[int, int]:
    """Rows that have the same numbers, some of them with the other sign: each has one partner."""
    found: dict[int, int] = {}
    for i, j in itertools.combinations(range(len(rows)), 2):
        alike = all(abs(c) == abs(d) for c, d in zip(rows[i], rows[j], strict=True))
        if alike and i not in found and j not in found:
            found[i], found[j] = j, i
    return found


def _contracted(factors: Sequence[Fraction], total: tir.Expr) -> tir.Expr:
    """A transform rounds as it likes: products are fused with sums where there are any."""
    has_products = any(abs(factor) not in (0, 1) for factor in factors)
    return call("contracted", total) if has_products else total


def _sum(factors: Sequence[Fraction], elements: Elements) -> tir.Expr:
    """Σ factor · element, without those of factor 0; one that is taken as it is goes first."""
    used = sorted((k for k, f in enumerate(factors) if f), key=lambda k: factors[k] != 1)
    first, *others = used
    total = elements(first) if factors[first] == 1 else elements(first) * float(factors[first])
    for k in others:
        factor = factors[k]
        if abs(factor) == 1:
            total = total + elements(k) if factor > 0 else total - elements(k)
        else:
            total = total + elements(k) * float(factor)
    return total
