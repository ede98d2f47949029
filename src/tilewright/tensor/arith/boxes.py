"""Boxes: ranges with symbolic starts and extents, compared, joined and merged.

A box is one `Range` per dimension. All answers are proofs; None means that nothing is known.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.tensor.arith.analyzer import Analyzer
from tilewright.tensor.ir import Expr, Range, maximum, minimum

__all__ = ["Box", "contains", "covers", "end_of", "merged", "union"]

Box = Sequence[Range]


def end_of(span: Range) -> Expr:
    """The first position behind a range."""
    return span.start + span.extent


def contains(outer: Box, inner: Box, analyzer: Analyzer) -> bool | None:
    """Whether `inner` lies inside of `outer`: True, False (some of it never does), or unknown."""
    known: bool | None = True
    for big, small in zip(outer, inner, strict=True):
        begins = analyzer.prove(big.start <= small.start)
        ends = analyzer.prove(end_of(small) <= end_of(big))
        if begins is False or ends is False:
            return False
        if begins is None or ends is None:
            known = None
    return known


def union(a: Box, b: Box, analyzer: Analyzer) -> tuple[Range, ...]:
    """The smallest box around both; it may hold points of neither."""
    return tuple([_hull(x, y, analyzer) for x, y in zip(a, b, strict=True)])


def _hull(a: Range, b: Range, analyzer: Analyzer) -> Range:
    start = analyzer.simplify(minimum(a.start, b.start))
    # The extent as a maximum of differences: `min(n, 4·t + 4) - 4·t` shows its bound only so.
    lengths = maximum(end_of(a) - start, end_of(b) - start)
    return Range(start, analyzer.simplify(lengths))


def merged(a: Box, b: Box, analyzer: Analyzer) -> tuple[Range, ...] | None:
    """The union of two boxes where that is a box itself: they differ in one dimension and touch."""
    different = [n for n, (x, y) in enumerate(zip(a, b, strict=True)) if not _same(x, y, analyzer)]
    if not different:
        return tuple(a)
    if len(different) > 1:
        return None
    (n,) = different
    for x, y in ((a[n], b[n]), (b[n], a[n])):
        if analyzer.prove(x.start <= y.start) and analyzer.prove(y.start <= end_of(x)):
            return (*a[:n], _hull(x, y, analyzer), *a[n + 1 :])
    return None


def _same(a: Range, b: Range, analyzer: Analyzer) -> bool:
    return bool(analyzer.prove_equal(a.start, b.start) and analyzer.prove_equal(a.extent, b.extent))


def covers(parts: Sequence[Box], whole: Box, analyzer: Analyzer) -> bool:
    """Whether the parts together provably hold all of `whole`.

    Parts are merged two by two, so that tilings are seen; other ways to cover are not.
    """
    left = [tuple(part) for part in parts]
    while True:
        if any(contains(part, whole, analyzer) for part in left):
            return True
        pairs = ((n, m) for n in range(len(left)) for m in range(n + 1, len(left)))
        joined = ((n, m, merged(left[n], left[m], analyzer)) for n, m in pairs)
        found = next(((n, m, box) for n, m, box in joined if box is not None), None)
        if found is None:
            return False
        n, m, box = found
        left = [part for k, part in enumerate(left) if k not in (n, m)] + [box]
