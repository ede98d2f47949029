"""Which part of a buffer is touched while some loops run and others stand still.

`TileStart(c, t) + i` over `i < TileSize(c, t)` becomes the span from `TileStart(c, t)` of that size.
Where an access is too irregular for that, the span is larger than needed, never smaller. `domains.py`
goes the other way, from a box of a buffer to the iterations of a block that accesses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.arith.sweep import region_bounds

__all__ = ["Span", "hull", "is_single", "is_whole", "swept", "swept_region", "terms"]

ZERO, ONE = tir.Const(0), tir.Const(1)


@dataclass(frozen=True, slots=True)
class Span:
    """All whole numbers from `lo` to `hi`, both included."""

    lo: tir.Expr
    hi: tir.Expr

    def extent(self, analyzer: Analyzer) -> tir.Expr:
        """How many numbers there are."""
        return analyzer.simplify(self.hi - self.lo + 1)


def swept(expr: tir.Expr, inner: Sequence[tir.For], analyzer: Analyzer) -> Span | None:
    """The least and greatest value of an index while the inner loops (outermost first) run.

    None if there is no bound that can be written down.
    """
    (found,) = region_bounds((expr,), [(loop.var, loop.extent) for loop in inner], analyzer)
    if found is None:
        return None
    if found.extent == ONE:
        return Span(found.start, found.start)
    return Span(found.start, analyzer.simplify(found.start + found.extent - 1))


def swept_region(
    region: tir.Region, inner: Sequence[tir.For], analyzer: Analyzer
) -> tuple[Span, ...]:
    """The box that a region, written in loop variables, covers while the inner loops run."""
    spans: list[Span] = []
    for part, size in zip(region.ranges, region.buffer.shape, strict=True):
        first = swept(part.start, inner, analyzer)
        length: Span | None = Span(ONE, ONE)
        if tir.int_value(part.extent) != 1:
            length = swept(part.extent, inner, analyzer)
        if first is None or length is None:
            spans.append(Span(ZERO, analyzer.simplify(size - 1)))
        else:
            spans.append(Span(first.lo, analyzer.simplify(first.hi + length.hi - 1)))
    return tuple(spans)


def hull(a: Span, b: Span, analyzer: Analyzer) -> Span:
    """The least span that holds both."""
    return Span(
        analyzer.simplify(tir.minimum(a.lo, b.lo)), analyzer.simplify(tir.maximum(a.hi, b.hi))
    )


def is_whole(span: Span, size: tir.Expr, analyzer: Analyzer) -> bool:
    """Does the span cover a dimension of this size?"""
    return span.lo == ZERO and bool(analyzer.prove_equal(span.hi + 1, size))


def is_single(span: Span) -> bool:
    """Does the span hold exactly one number?"""
    return span.lo == span.hi


def terms(expr: tir.Expr, factor: int = 1) -> list[tuple[int, tir.Expr]]:
    """The summands of an expression, each with its constant factor."""
    match expr:
        case tir.Add(a=a, b=b):
            return terms(a, factor) + terms(b, factor)
        case tir.Sub(a=a, b=b):
            return terms(a, factor) + terms(b, -factor)
        case tir.Mul(a=a, b=tir.Const(value=value)) | tir.Mul(a=tir.Const(value=value), b=a):
            return terms(a, factor * int(value))
    return [(factor, expr)]
