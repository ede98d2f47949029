"""Which part of a buffer is touched while some loops run and others stand still.

`TileStart(c, t) + i` over `i < TileSize(c, t)` becomes the span from `TileStart(c, t)` of that
size. Where an access is too irregular for that, the span is larger than needed, never smaller.
`domains.py` goes the other way, from a box of a buffer to the iterations of a block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.arith.sweep import region_bounds
from tilewright.tensor.terms import terms
from tilewright.tensor.visit import free_vars

__all__ = ["Span", "hull", "is_single", "is_stepping", "is_whole", "swept", "swept_region"]

ZERO, ONE = tir.Const(0), tir.Const(1)


@dataclass(frozen=True, slots=True)
class Span:
    """`length` whole numbers from `lo` on; `inside`: all in the domain of what takes them."""

    lo: tir.Expr
    length: tir.Expr = ONE
    inside: bool = False

    @property
    def hi(self) -> tir.Expr:
        """The last number."""
        return self.lo + self.length - 1

    @classmethod
    def between(cls, lo: tir.Expr, hi: tir.Expr, analyzer: Analyzer) -> Span:
        """From `lo` to `hi`, both included and simplified."""
        return cls(lo, ONE if lo == hi else analyzer.simplify(hi - lo + 1))


def swept(expr: tir.Expr, inner: Sequence[tir.For], analyzer: Analyzer) -> Span | None:
    """The values of an index while the inner loops (outermost first) run, and what lies between.

    None if there is no bound that can be written down.
    """
    (found,) = region_bounds((expr,), [(loop.var, loop.extent) for loop in inner], analyzer)
    return None if found is None else Span(found.start, found.extent)


def swept_region(
    region: tir.Region, inner: Sequence[tir.For], analyzer: Analyzer
) -> tuple[Span, ...]:
    """The box that a region, written in loop variables, covers while the inner loops run."""
    spans: list[Span] = []
    for part, size in zip(region.ranges, region.buffer.shape, strict=True):
        first = swept(part.start, inner, analyzer)
        if first is not None and part.extent != ONE:
            more = swept(part.extent, inner, analyzer)
            length = None if more is None else analyzer.simplify(first.length + more.hi - 1)
            first = None if length is None else Span(first.lo, length)
        spans.append(Span(ZERO, size) if first is None else first)
    return tuple(spans)


def hull(a: Span, b: Span, analyzer: Analyzer) -> Span:
    """The least span that holds both."""
    if a == b:
        return a
    lo = analyzer.simplify(tir.minimum(a.lo, b.lo))
    ends = tir.maximum(a.lo + a.length - lo, b.lo + b.length - lo)
    return Span(lo, analyzer.simplify(ends), a.inside and b.inside)


def is_stepping(binding: tir.Expr, inner: Sequence[tir.For]) -> bool:
    """Is a binding a sum of loops and tile starts, and no inner loop as long as another one says?

    Then its least and greatest values are really taken, not only bounds.
    """
    running = {loop.var for loop in inner}
    if any(type(p.extent) is not tir.Const and running & free_vars(p.extent) for p in inner):
        return False
    return all(isinstance(t, tir.Var | tir.Const | tir.TileStart) for _, t in terms(binding))


def is_whole(span: Span, size: tir.Expr, analyzer: Analyzer) -> bool:
    """Does the span cover a dimension of this size?"""
    if span.lo != ZERO:
        return False
    return span.length == size or bool(analyzer.prove_equal(span.length, size))


def is_single(span: Span) -> bool:
    """Does the span hold exactly one number?"""
    return span.length == ONE
