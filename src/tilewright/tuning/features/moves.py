"""How far each loop moves an offset: steps from the linear forms of indices.

Easy to get wrong: a fused loop is taken apart by `//` and `%`. Sixteen iterations of `x // 4` are
four steps of one, and those of `x % 4` too: one loop may move an access by several steps, and by
fewer than it has iterations. Neither is a stride of zero, and neither is a guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

from tilewright.tensor import ir as tir
from tilewright.tensor.arith.linear import Atom, Kind, Linear
from tilewright.tensor.visit import free_vars

__all__ = ["Moves"]


class Moves:
    """How far each loop moves an offset, from the linear forms of its indices."""

    def __init__(self, extents: Mapping[tir.Var, int]) -> None:
        self.extents = extents
        self.plain: dict[tir.Var, float] = {}
        self.parts: dict[tir.Var, list[tuple[float, float, int]]] = {}

    def steps_of(self, var: tir.Var) -> tuple[tuple[float, int], ...]:
        """Elements apart, and places, of each step."""
        own = self.plain.get(var)
        first = [(own, self.extents[var])] if own else []
        return (*first, *((apart, count) for _, apart, count in self.parts.get(var, ())))

    def slope_of(self, var: tir.Var) -> float:
        """The least move from one iteration to the next."""
        own = self.plain.get(var)
        slopes = ([own] if own else []) + [slope for slope, _, _ in self.parts.get(var, ())]
        return min(slopes, key=abs, default=0.0)

    def anywhere(self, index: tir.Expr, elements: int) -> None:
        """An index that data decide, of a buffer of so many elements."""
        for var in free_vars(index) & self.extents.keys():
            self.plain[var] = float(elements)

    def add(self, form: Linear, stride: int) -> None:
        """Add an index in a dimension whose elements are so far apart."""
        for atom, k in form.terms.items():
            self._term(atom, float(k * stride))

    def _term(self, atom: Atom, scale: float) -> None:
        if atom.kind is Kind.VAR:
            assert isinstance(atom.expr, tir.Var)
            self.plain[atom.expr] = self.plain.get(atom.expr, 0.0) + scale
        elif atom.kind in (Kind.DIV, Kind.MOD) and self._digit(atom, scale):
            pass
        else:
            for var in free_vars(atom.expr) & self.extents.keys():
                self.parts.setdefault(var, []).append((scale, scale, self.extents[var]))

    def _digit(self, atom: Atom, scale: float) -> bool:
        """The quotient or remainder of a sum of variables by a number; False if it is not one."""
        dividend, divisor = atom.parts
        size = divisor.const if isinstance(divisor, Linear) else int(divisor)
        symbolic = isinstance(divisor, Linear) and divisor.terms
        if symbolic or size < 1 or any(a.kind is not Kind.VAR for a in dividend.terms):
            return False
        for inner, k in dividend.terms.items():
            extent = self.extents.get(inner.expr)
            if extent is None:
                continue
            step, range_ = abs(k), abs(k) * (extent - 1) + 1
            if atom.kind is Kind.DIV:
                count = min(extent, -(-range_ // size))
                part = (scale * step / size, scale * max(1.0, step / size), count)
            else:
                count = min(extent, max(1, size // gcd(size, step)))
                part = (scale * gcd(size, step), scale * gcd(size, step), count)
            self.parts.setdefault(inner.expr, []).append(part)
        return True
