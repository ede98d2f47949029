"""Runs in which named sizes are one: each of them alone, and all of them together.

    n, m  =  (5, 3), (1, 3), (5, 1), (1, 1)

What is broadcast, what is squeezed and what a branch asks for depend on that, and ranks with it: a
value may have another number of dimensions in another run.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from fuzz.aliases import Sizes

__all__ = ["COMMON", "runs_with_ones"]

OTHERS: Final = (2, 3, 4, 5, 8, 9)
EMPTY: Final = 0.1
"""How often there is another run, in which a size is zero."""

COMMON: Final = (
    "Squeeze", "Squeeze", "Unsqueeze", "Reshape", "Expand", "If", "Loop", "Scan", "Slice", "Concat",
    "Gather", "Shape", "Flatten", "Transpose", "Tile", "Add", "Mul", "MatMul", "ReduceSum", "Split",
    "NonZero", "Compress", "Where", "Softmax", "com.microsoft.ExpandDims",
)  # fmt: skip
"""Operators whose results depend on sizes of one, or follow them: half of the nodes."""


def runs_with_ones(draw: random.Random, names: Sequence[str]) -> Sizes:
    """What each name stands for in each run."""
    usual = dict(zip(names, draw.sample(OTHERS, len(names)), strict=True))
    rows = [usual, *({**usual, name: 1} for name in names)]
    if len(names) > 1:
        rows.append(dict.fromkeys(names, 1))
    if draw.random() < EMPTY:
        rows.append({**usual, draw.choice(names): 0})
    return {name: [row[name] for row in rows] for name in names}
