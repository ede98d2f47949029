"""Decisions that both recipes for windows know, and what they cost in code."""

from __future__ import annotations

from math import prod

import numpy as np

from tilewright.schedule.recipes.table import Column

__all__ = [
    "APART",
    "ASKED",
    "COPIED",
    "CUT",
    "CUT_LINES",
    "FUSED",
    "OUTERMOST",
    "SERIAL",
    "STRAIGHT",
    "shared_ways",
    "unrolled_taps",
]

APART, ASKED, COPIED = range(3)
"""A border: in a pass of its own, computed where it is read, or copied where it is used."""

SERIAL, OUTERMOST, FUSED = range(3)
"""What threads share: nothing, the outermost loop, or several loops as one."""

STRAIGHT = 600
"""Multiply-adds at most in one piece of code: what is longer takes LLVM seconds to compile."""

CUT_LINES = 1024
"""Statements in all copies of a tile up to which lowering cuts a loop at a border
(`lower/cut_loops.py`): lines first. Beyond, every element of a window would ask where it is."""

CUT = 600
"""The same for columns, inside of lines: lowering counts pieces that turn out to be empty."""


def shared_ways(threads: int) -> list[int]:
    """What threads may share."""
    return [SERIAL, OUTERMOST, FUSED] if threads > 1 else [SERIAL]


def unrolled_taps(walks: tuple[int, ...], unrolled: Column) -> Column:
    """Elements of the window in one piece of code, if so many inner loops are unrolled."""
    rank = len(walks)
    sizes = np.array([prod(walks[rank - n :]) for n in range(rank + 1)], np.int64)
    return np.asarray(sizes[unrolled])
