"""Dimensions along which products are stacked: their names, and fewer of them where they are many.

A kernel has a loop for each. Neighbours that both operands have, or that only one of them has, are
one dimension to a product.
"""

from __future__ import annotations

from itertools import groupby
from string import ascii_letters
from typing import Final

from tilewright.graph.ir import Shape
from tilewright.graph.sizes import dims_equal, fixed, product
from tilewright.tensor import ir as tir

__all__ = ["BATCH_LETTERS", "MAX_BATCH", "merged_batch"]

MAX_BATCH: Final = 6
"""Dimensions along which products are stacked, as they are: more than networks have."""

BATCH_LETTERS: Final = "".join(c for c in ascii_letters if c not in "kmn")
"""Names of the dimensions along which products are stacked: more than tensors have."""


def merged_batch(a: Shape, b: Shape) -> tuple[Shape, Shape] | None:
    """Both shapes with neighbours merged that are stacked alike; None if there are none."""
    rank = max(len(a), len(b))
    one = tir.Const(1)
    wide = [(*[one] * (rank - len(shape)), *shape) for shape in (a, b)]
    keys = []
    for d, (p, q) in enumerate(zip(*wide, strict=True)):
        single = fixed(p) == 1, fixed(q) == 1
        keys.append((single, None if any(single) or dims_equal(p, q) else d))
    runs = [list(run) for _, run in groupby(range(rank), key=keys.__getitem__)]
    if len(runs) == rank:
        return None
    first, second = (tuple(product(shape[d] for d in run) for run in runs) for shape in wide)
    return first, second
