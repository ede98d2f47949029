"""Windows that stay inside of one tile of what is stored in tiles.

A[i * V + r]  →  A[i // t, (i % t) * V + r]        tiles every t * V elements, r in reach
"""

from __future__ import annotations

from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.layout import Unfold
from tilewright.tensor.terms import terms

__all__ = ["window_in_tile"]


def window_in_tile(
    at: tir.Expr, step: Unfold, analyzer: Analyzer
) -> tuple[tir.Expr, tir.Expr] | None:
    """(tile, place in it) of `i * V + rest`, if the rest stays in the tile that `i` begins in.

    Not simplified; None if the ranges do not prove it. Tiles that overlap hold an element several
    times: this is the copy in the tile that holds the whole window.
    """
    for factor, var in sorted(terms(at), key=lambda term: -term[0]):
        if not isinstance(var, tir.Var) or factor < 1 or step.stride % factor:
            continue
        steps = step.stride // factor
        rest = at - var * factor
        tile, last = var // steps, analyzer.bounds(var // steps).hi
        inside = analyzer.bounds(rest).within(0, step.tile - 1 - factor * (steps - 1))
        if inside and last is not None and last < step.tiles:
            return tile, (var % steps) * factor + rest
    return None
