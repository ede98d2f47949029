"""Which sizes are equal because operators say so, and which are only taken for equal.

    t = x[n] + z[m];  y = t · w[m]     n and m are equal in the product, if they are in the sum

A product has one size to sum over: whoever calls with others is refused. But a size that stands for
one that it met in a broadcast before says nothing: the result may have the other one.
"""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.graph.ir import Meeting
from tilewright.tensor import ir as tir

__all__ = ["Claims"]


class Claims:
    """The pairs of sizes of a graph that are `equal`, as far as nodes come in order."""

    def __init__(self) -> None:
        self.equal: set[Meeting] = set()
        self._met: set[Meeting] = set()

    def note(self, pairs: Iterable[tuple[tir.Expr, tir.Expr]], *, strict: bool) -> None:
        """Sizes that meet in an operator: a strict one needs equal ones, others broadcast them."""
        found = set(map(frozenset, pairs))
        if strict:
            self.equal |= found - self._met
        else:
            self._met |= found
