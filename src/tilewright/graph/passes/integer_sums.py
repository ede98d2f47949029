"""Corrections of sums of integer products: sums of one operand, in the places of the result."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.dtypes import i32
from tilewright.graph.ir import Value
from tilewright.graph.ops import Contract
from tilewright.graph.passes.rewrite import Rewriter
from tilewright.graph.sizes import fixed
from tilewright.tensor import ir as tir

__all__ = ["bordered", "filter_sums", "placed", "summed", "sums_both", "terms_of"]


def summed(b: Rewriter, values: Value, letters: str, result: str) -> Value | None:
    """The sums of one operand, in the places of a result."""
    axes = [k for k, c in enumerate(letters) if c not in result]
    wide = b.map(lambda v: v.to(i32), values)
    return placed(b, b.reduce(tir.Fold.ADD, wide, axes), letters, result)


def placed(b: Rewriter, part: Value | None, letters: str, result: str) -> Value | None:
    """A part of an operand that does not move along the sum, with the dimensions of the result."""
    if part is None or not part.rank:
        return part
    kept = [c for c in letters if c in result]
    sizes = dict(zip(letters, part.shape, strict=True))
    narrow = b.reshape(part, [sizes[c] for c in kept])
    order = [kept.index(c) for c in result if c in kept]
    return b.reshape(b.transpose(narrow, order), [sizes.get(c, 1) for c in result])


def sums_both(op: Contract) -> bool:
    """Whether both operands have all dimensions that are summed over.

    A dimension of one alone would count the sums of the other several times.
    """
    return set(op.left) - set(op.result) == set(op.right) - set(op.result)


def terms_of(weights: Value) -> int:
    """Products that each sum of a convolution has."""
    count = 1
    for size in weights.shape[1:]:
        count *= fixed(size) or 0
    return count


def filter_sums(b: Rewriter, weights: Value) -> Value:
    """The sum of each filter of a convolution."""
    wide = b.map(lambda v: v.to(i32), weights)
    return b.reduce(tir.Fold.ADD, wide, range(1, weights.rank), keepdims=False)


def bordered(b: Rewriter, data: Value, pads: Sequence[int], more: int, fill: int) -> Value:
    """Channels-last data with the border written out, of zero points, and more channels."""
    rank = len(pads) // 2
    begins, ends = (0, *pads[:rank], 0), (0, *pads[rank:], more)
    sizes = [n + p + q for n, p, q in zip(data.shape, begins, ends, strict=True)]

    def places(*out: tir.Expr) -> list[tir.Expr]:
        return [o - p if p else o for o, p in zip(out, begins, strict=True)]

    def inside(*out: tir.Expr) -> tir.Expr:
        held: tir.Expr = tir.TRUE
        for o, p, q, n in zip(out, begins, ends, data.shape, strict=True):
            held = held & (o >= p) if p else held
            held = held & (o < p + n) if q else held
        return held

    return b.remap(data, sizes, places, inside, fill)
