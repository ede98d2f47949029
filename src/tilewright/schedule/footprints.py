"""Which part of a buffer is touched while some loops run, and which iterations touch a given part.

`swept` lets the inner loops run and keeps the outer ones symbolic: `TileStart(c, t) + i` over
`i < TileSize(c, t)` becomes the box from `TileStart(c, t)` of extent `TileSize(c, t)`. Where an
access is too irregular for that, the box is larger than needed, never smaller. `domains.py` goes
the other way, from a box of a buffer to the iterations of a block that accesses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.tensor import cover as covers
from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.visit import free_vars, substitute

__all__ = ["Span", "hull", "is_single", "is_whole", "swept", "swept_region", "terms"]

ZERO, ONE = tir.Const(0), tir.Const(1)


@dataclass(frozen=True, slots=True)
class Span:
    """All whole numbers from `lo` to `hi`, both included."""

    lo: tir.Expr
    hi: tir.Expr

    def extent(self, analyzer: Analyzer) -> tir.Expr:
        return analyzer.simplify(self.hi - self.lo + 1)


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


def swept(expr: tir.Expr, inner: Sequence[tir.For], analyzer: Analyzer) -> Span | None:
    """The least and greatest value of an index while the inner loops (outermost first) run.

    Exact for indices that only grow or only fall with each loop; else by interval arithmetic. None
    if there is no bound that can be written down.
    """
    expr = analyzer.simplify(expr)
    lo = hi = expr
    for loop in reversed(inner):
        if loop.var not in free_vars(lo) and loop.var not in free_vars(hi):
            continue
        low = _extreme(lo, loop, analyzer, greatest=False)
        high = _extreme(hi, loop, analyzer, greatest=True)
        if low is None or high is None:
            return _rough(expr, {p.var: p for p in inner}, analyzer)
        lo, hi = low, high
    return Span(lo, hi)


def _extreme(
    expr: tir.Expr, loop: tir.For, analyzer: Analyzer, *, greatest: bool
) -> tir.Expr | None:
    """The value of a monotone expression at the end of a loop where it is least or greatest."""
    expr = _tile_ends(expr, loop.var)
    direction = _direction(expr, loop.var, analyzer)
    if direction is None:
        return None
    if direction == 0:
        return expr
    end = tir.Const(0) if (direction > 0) != greatest else loop.extent - 1
    return analyzer.simplify(_totals(substitute(expr, {loop.var: end}), analyzer))


def _direction(expr: tir.Expr, var: tir.Var, analyzer: Analyzer) -> int | None:
    """1 if the expression never falls as `var` grows, -1 if it never rises, 0 if it is the same."""
    if expr is var:
        return 1
    match expr:
        case tir.Const() | tir.Var():
            return 0
        case tir.Add(a=a, b=b) | tir.Min(a=a, b=b) | tir.Max(a=a, b=b):
            return _both(_direction(a, var, analyzer), _direction(b, var, analyzer))
        case tir.Sub(a=a, b=b):
            second = _direction(b, var, analyzer)
            return _both(_direction(a, var, analyzer), None if second is None else -second)
        case tir.Mul(a=a, b=b):
            if _direction(b, var, analyzer) != 0:
                a, b = b, a
            sign = _sign(b, analyzer) if _direction(b, var, analyzer) == 0 else None
            first = _direction(a, var, analyzer)
            return None if sign is None or first is None else first * sign
        case tir.FloorDiv(a=a, b=b):
            steady = _direction(b, var, analyzer) == 0 and _sign(b, analyzer) == 1
            return _direction(a, var, analyzer) if steady else None
        case tir.TileStart(tile=tile):
            return _direction(tile, var, analyzer)
    return None if var in free_vars(expr) else 0


def _both(a: int | None, b: int | None) -> int | None:
    if a is None or b is None or a * b < 0:
        return None
    return a or b


def _sign(expr: tir.Expr, analyzer: Analyzer) -> int | None:
    bounds = analyzer.bounds(expr)
    if bounds.lo is not None and bounds.lo >= 0:
        return 1
    return -1 if bounds.hi is not None and bounds.hi <= 0 else None


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


def _tile_ends(expr: tir.Expr, tile: tir.Var) -> tir.Expr:
    """`start(tile) + size(tile)` written as the start of the next tile, which grows with `tile`."""
    parts = terms(expr)
    for n, (factor, size) in enumerate(parts):
        if type(size) is not tir.TileSize or size.tile is not tile or factor < 0:
            continue
        lengths = [(length * factor, count) for length, count in size.cover.segments]
        for m, (other, start) in enumerate(parts):
            end = _next_start(start, other, lengths, tile)
            if end is not None:
                rest = [t for k, t in enumerate(parts) if k not in (n, m)]
                return _sum([*rest, (1, end)])
    return expr


def _next_start(
    start: tir.Expr, factor: int, lengths: list[tuple[int, tir.Expr]], tile: tir.Var
) -> tir.Expr | None:
    """`factor * start` one tile later, if `start` is where tiles of these lengths start."""
    if type(start) is tir.TileStart and start.tile is tile:
        own = [(length * factor, count) for length, count in start.cover.segments]
        return tir.TileStart(start.cover, tile + 1) * factor if own == lengths else None
    cover = tir.Cover(tuple(lengths))
    if start is tile and covers.regular_size(cover) == factor:
        return tir.minimum((tile + 1) * factor, covers.total(cover))
    return None


def _sum(parts: Sequence[tuple[int, tir.Expr]]) -> tir.Expr:
    result: tir.Expr = tir.Const(0)
    for factor, term in parts:
        result = result + term * factor
    return result


def _totals(expr: tir.Expr, analyzer: Analyzer) -> tir.Expr:
    """The start of the tile behind the last one is the total of the cover."""
    parts = terms(expr)
    if not any(type(t) is tir.TileStart for _, t in parts):
        return expr
    return _sum([(k, _total(t, analyzer) if type(t) is tir.TileStart else t) for k, t in parts])


def _total(start: tir.TileStart, analyzer: Analyzer) -> tir.Expr:
    tile = analyzer.simplify(start.tile)
    if tile == analyzer.simplify(covers.count(start.cover)):
        return covers.total(start.cover)
    return covers.start(start.cover, tile)


def _rough(expr: tir.Expr, inner: dict[tir.Var, tir.For], analyzer: Analyzer) -> Span | None:
    """Bounds by interval arithmetic on the tree: always safe, exact if no loop appears twice."""

    def bounds(part: tir.Expr) -> Span:
        match part:
            case tir.Var() if part in inner:
                return Span(ZERO, bounds(inner[part].extent).hi - 1)
            case tir.Add(a=a, b=b):
                x, y = bounds(a), bounds(b)
                return Span(x.lo + y.lo, x.hi + y.hi)
            case tir.Sub(a=a, b=b):
                x, y = bounds(a), bounds(b)
                return Span(x.lo - y.hi, x.hi - y.lo)
            case tir.Mul(a=a, b=b) if not inner.keys() & free_vars(b):
                x, sign = bounds(a), _sign(b, analyzer)
                if sign is not None:
                    lo, hi = (x.lo, x.hi) if sign > 0 else (x.hi, x.lo)
                    return Span(lo * b, hi * b)
            case tir.FloorDiv(a=a, b=tir.Const(value=value)) if value > 0:
                x = bounds(a)
                return Span(x.lo // int(value), x.hi // int(value))
            case tir.Min(a=a, b=b):
                x, y = bounds(a), bounds(b)
                return Span(tir.minimum(x.lo, y.lo), tir.minimum(x.hi, y.hi))
            case tir.Max(a=a, b=b):
                x, y = bounds(a), bounds(b)
                return Span(tir.maximum(x.lo, y.lo), tir.maximum(x.hi, y.hi))
        if not inner.keys() & free_vars(part):
            return Span(part, part)
        found = analyzer.bounds(part)
        if found.lo is None or found.hi is None:
            raise _UnboundedError
        return Span(tir.Const(found.lo), tir.Const(found.hi))

    try:
        span = bounds(expr)
    except _UnboundedError:
        return None
    return Span(analyzer.simplify(span.lo), analyzer.simplify(span.hi))


class _UnboundedError(Exception):
    """A part of an index has no bound that can be written down."""


def hull(a: Span, b: Span, analyzer: Analyzer) -> Span:
    """The least span that holds both."""
    lo = a.lo if (d := _order(a.lo, b.lo, analyzer)) == -1 else b.lo if d == 1 else None
    hi = b.hi if (d := _order(a.hi, b.hi, analyzer)) == -1 else a.hi if d == 1 else None
    return Span(
        tir.minimum(a.lo, b.lo) if lo is None else lo, tir.maximum(a.hi, b.hi) if hi is None else hi
    )


def _order(a: tir.Expr, b: tir.Expr, analyzer: Analyzer) -> int | None:
    """-1 if `a` is never greater than `b`, 1 if it is never less, None if that is not known."""
    if a == b:
        return -1
    return _sign_reversed(analyzer.simplify(b - a), analyzer)


def _sign_reversed(expr: tir.Expr, analyzer: Analyzer) -> int | None:
    sign = _sign(expr, analyzer)
    return None if sign is None else -sign


def is_whole(span: Span, size: tir.Expr, analyzer: Analyzer) -> bool:
    """Does the span cover a dimension of this size?"""
    return span.lo == ZERO and bool(analyzer.prove_equal(span.hi + 1, size))


def is_single(span: Span) -> bool:
    """Does the span hold exactly one number?"""
    return span.lo == span.hi
