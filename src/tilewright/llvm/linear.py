"""Indices as sums: constant + Σ coefficient · product of values.

Addresses are built from this form, outermost terms first, so that statements share their pointers
and differ by a constant; the constant also tells alignment. Arithmetic is modulo 2**64, where
multiplying out changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tilewright.llvm.writer import Value
from tilewright.tensor import ir as tir

__all__ = ["Linear", "linear"]

Terms = dict[tuple[Value, ...], int]

MAX_TERMS = 16
"""Products with more terms than this stay products."""


class Linear:
    """`constant + Σ coefficient · Π values`; terms with coefficient zero do not appear."""

    __slots__ = ("constant", "terms")

    def __init__(self, constant: int, terms: Terms) -> None:
        self.constant, self.terms = constant, terms

    def factor(self) -> int:
        """A number that divides every term (0 if there is none), the constant aside."""
        return math.gcd(*self.terms.values())

    def plus(self, other: Linear, sign: int = 1) -> Linear:
        terms = dict(self.terms)
        for product, coefficient in other.terms.items():
            total = terms.get(product, 0) + sign * coefficient
            if total:
                terms[product] = total
            else:
                del terms[product]
        return Linear(self.constant + sign * other.constant, terms)

    def scaled(self, factor: int) -> Linear:
        if factor == 0:
            return Linear(0, {})
        return Linear(self.constant * factor, {p: c * factor for p, c in self.terms.items()})

    def times(self, other: Linear) -> Linear:
        result = self.scaled(other.constant).plus(Linear(0, other.scaled(self.constant).terms))
        for p, c in self.terms.items():
            for q, d in other.terms.items():
                product = tuple(sorted(p + q, key=lambda value: (value.depth, value.text)))
                result = result.plus(Linear(0, {product: c * d}))
        return result


def linear(expr: tir.Expr, emit: Callable[[tir.Expr], Value]) -> Linear:
    """The linear form of a scalar index; `emit` gives the value of what is not a sum or product."""
    kind = type(expr)
    if kind is tir.Const:
        return Linear(int(expr.value), {})  # type: ignore[attr-defined]
    if kind is tir.Add:
        return linear(expr.a, emit).plus(linear(expr.b, emit))  # type: ignore[attr-defined]
    if kind is tir.Sub:
        return linear(expr.a, emit).plus(linear(expr.b, emit), -1)  # type: ignore[attr-defined]
    if kind is tir.Mul:
        a, b = linear(expr.a, emit), linear(expr.b, emit)  # type: ignore[attr-defined]
        if not a.terms or not b.terms:
            return b.scaled(a.constant) if not a.terms else a.scaled(b.constant)
        if (len(a.terms) + 1) * (len(b.terms) + 1) <= MAX_TERMS:
            return a.times(b)
    return Linear(0, {(emit(expr),): 1})
