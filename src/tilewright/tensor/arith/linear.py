"""Linear forms: what the simplifier computes with instead of expression trees.

A `Linear` is `const + Σ coefficient · atom`. An `Atom` is whatever is not a sum: a variable, a
floor division, a remainder, a product, a minimum, a tile start. Atoms are interned by the space
that makes them (`space.py`), so equal atoms are one object and dictionaries of atoms compare by
identity, which is what makes the arithmetic cheap. Values are mathematical integers: index
arithmetic is assumed not to overflow 64 bits.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Mapping
from typing import Any

from tilewright.tensor.ir import Expr

__all__ = ["Atom", "Kind", "Linear", "Terms"]
__all__ += ["add_into", "constant", "high", "low", "plus", "scaled"]


class Kind(enum.IntEnum):
    """What an atom is; also its place among atoms with the same leading variable."""

    VAR = 0
    PRODUCT = 1
    DIV = 2
    MOD = 3
    MIN = 4
    MAX = 5
    START = 6
    SIZE = 7
    SELECT = 8
    OTHER = 9


class Atom:
    """One interned term. `lo ≤ value ≤ hi` where known; `parts` depends on the kind.

    VAR: (extent − 1 as a Linear,) or (). PRODUCT: the factors. DIV, MOD: (dividend, divisor), both
    Linear, the divisor known to be positive. MIN, MAX: the operands. START, SIZE: (tiling, tile).
    `key` orders all atoms of one space; `depth` is the rank of the innermost variable inside.
    """

    __slots__ = ("depth", "expr", "hi", "key", "kind", "lo", "parts")

    def __init__(
        self,
        kind: Kind,
        parts: tuple[Any, ...],
        bounds: tuple[int | None, int | None],
        key: tuple[Any, ...],
        depth: int,
        expr: Expr,
    ) -> None:
        self.kind, self.parts, self.key, self.depth, self.expr = kind, parts, key, depth, expr
        self.lo, self.hi = bounds

    def __repr__(self) -> str:
        return repr(self.expr)


Terms = dict[Atom, int]


class Linear:
    """`const + Σ terms[atom] · atom`, no coefficient is zero. Never changed once it is shared."""

    __slots__ = ("const", "terms")

    def __init__(self, const: int, terms: Terms) -> None:
        self.const, self.terms = const, terms

    def key(self) -> Hashable:
        """Equal for equal forms of one space."""
        return self.const, frozenset(self.terms.items())

    def is_const(self) -> bool:
        return not self.terms

    def single(self) -> tuple[Atom, int] | None:
        """(atom, coefficient) if the form is exactly one term."""
        if self.const or len(self.terms) != 1:
            return None
        return next(iter(self.terms.items()))

    def same(self, other: Linear) -> bool:
        return self.const == other.const and self.terms == other.terms

    def __repr__(self) -> str:
        return " + ".join([*(f"{k}·{a!r}" for a, k in self.terms.items()), str(self.const)])


def constant(value: int) -> Linear:
    """The form without terms."""
    return Linear(value, {})


def add_into(terms: Terms, more: Mapping[Atom, int], factor: int) -> None:
    """`terms += factor · more`, dropping what cancels."""
    for atom, k in more.items():
        total = terms.get(atom, 0) + factor * k
        if total:
            terms[atom] = total
        elif atom in terms:
            del terms[atom]


def plus(a: Linear, b: Linear, factor: int = 1) -> Linear:
    """`a + factor · b`."""
    if not b.terms:
        return Linear(a.const + factor * b.const, a.terms) if b.const else a
    terms = dict(a.terms)
    add_into(terms, b.terms, factor)
    return Linear(a.const + factor * b.const, terms)


def scaled(a: Linear, factor: int) -> Linear:
    """`factor · a`."""
    if factor == 1:
        return a
    if factor == 0:
        return constant(0)
    return Linear(a.const * factor, {atom: k * factor for atom, k in a.terms.items()})


def low(const: int, terms: Mapping[Atom, int]) -> int | None:
    """A lower bound by interval arithmetic."""
    total = const
    for atom, k in terms.items():
        bound = atom.lo if k > 0 else atom.hi
        if bound is None:
            return None
        total += k * bound
    return total


def high(const: int, terms: Mapping[Atom, int]) -> int | None:
    """An upper bound by interval arithmetic."""
    total = const
    for atom, k in terms.items():
        bound = atom.hi if k > 0 else atom.lo
        if bound is None:
            return None
        total += k * bound
    return total
