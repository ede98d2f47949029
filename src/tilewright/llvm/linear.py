"""Indices as sums: constant + Σ coefficient · product of values.

Addresses are built from this form, outermost terms first, so that statements share their pointers
and differ by a constant; the constant also tells alignment. Arithmetic is modulo 2**64, where
multiplying out changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tilewright.llvm.writer import Value
from tilewright.tensor import ir as tir

__all__ = ["Linear", "Terms", "linear"]

Terms = dict[tuple[Value, ...], int]
Key = tuple[tuple[tuple[Value, ...], int], ...]

MAX_TERMS = 16
"""Products with more terms than this stay products."""


class Linear:
    """`constant + Σ coefficient · Π values`; terms with coefficient zero do not appear."""

    __slots__ = ("_key", "constant", "terms")

    def __init__(self, constant: int, terms: Terms) -> None:
        self.constant, self.terms = constant, terms
        self._key: Key | None = None

    def key(self) -> Key:
        """Equal for forms that differ by a constant only."""
        if self._key is None:
            self._key = tuple(self.terms.items())
        return self._key

    def is_named(self) -> bool:
        """Whether all values have names: loop variables and sizes, which hold wherever they are
        in scope.
        """
        return not any(v.text.startswith("%.") for product in self.terms for v in product)

    def plus(self, number: int) -> Linear:
        """The same with another constant."""
        if not number:
            return self
        made = Linear(self.constant + number, self.terms)
        made._key = self.key()
        return made

    def factor(self) -> int:
        """A number that divides every term (0 if there is none), the constant aside."""
        return math.gcd(*self.terms.values())

    def times(self, other: Linear) -> Linear:
        """The product, multiplied out."""
        terms: Terms = {}
        for p, c in (*self.terms.items(), ((), self.constant)):
            for q, d in (*other.terms.items(), ((), other.constant)):
                if (p or q) and c * d:
                    _add(terms, tuple(sorted(p + q, key=_by_depth)), c * d)
        return Linear(self.constant * other.constant, terms)


def linear(expr: tir.Expr, emit: Callable[[tir.Expr], Value]) -> Linear:
    """The linear form of a scalar index; `emit` gives the value of what is not a sum or product."""
    terms: Terms = {}
    constant = _collect(expr, 1, terms, emit)
    return Linear(constant, terms)


def _collect(expr: Any, scale: int, terms: Terms, emit: Callable[[tir.Expr], Value]) -> int:
    """Add `scale · expr` to `terms`; returns the constant part."""
    kind = type(expr)
    if kind is tir.Const:
        return scale * int(expr.value)
    if kind is tir.Add:
        return _collect(expr.a, scale, terms, emit) + _collect(expr.b, scale, terms, emit)
    if kind is tir.Sub:
        return _collect(expr.a, scale, terms, emit) + _collect(expr.b, -scale, terms, emit)
    if kind is tir.Mul:
        if type(expr.b) is tir.Const:
            return _collect(expr.a, scale * int(expr.b.value), terms, emit) if expr.b.value else 0
        if type(expr.a) is tir.Const:
            return _collect(expr.b, scale * int(expr.a.value), terms, emit) if expr.a.value else 0
        factors = _factors(expr)
        if factors is not None:
            emitted = [emit(factor) for factor in factors if type(factor) is not tir.Const]
            numbers = (int(factor.value) for factor in factors if type(factor) is tir.Const)
            _add(terms, tuple(sorted(emitted, key=_by_depth)), scale * math.prod(numbers))
            return 0
        a, b = linear(expr.a, emit), linear(expr.b, emit)
        if (len(a.terms) + 1) * (len(b.terms) + 1) <= MAX_TERMS:
            product = a.times(b)
            for values, coefficient in product.terms.items():
                _add(terms, values, scale * coefficient)
            return scale * product.constant
    _add(terms, (emit(expr),), scale)
    return 0


def _factors(expr: tir.Mul) -> list[tir.Expr] | None:
    """What a product multiplies, from left to right; None if there are sums among it.

    The strides of thirty dimensions are products of up to thirty sizes: step by step, each of
    them would be put in order thirty times.
    """
    found: list[tir.Expr] = []
    left: list[tir.Expr] = [expr]
    while left:
        part = left.pop()
        if isinstance(part, tir.Mul):
            left += (part.b, part.a)
        elif isinstance(part, tir.Add | tir.Sub) or tir.int_value(part) == 0:
            return None
        else:
            found.append(part)
    return found


def _by_depth(value: Value) -> tuple[int, str]:
    return value.depth, value.text


def _add(terms: Terms, product: tuple[Value, ...], coefficient: int) -> None:
    total = terms.get(product, 0) + coefficient
    if total:
        terms[product] = total
    else:
        del terms[product]
