"""Values of single columns: register tiles and blocks of them, cuts, steps of a walk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from tilewright.schedule.recipes.table import Column

__all__ = ["BLOCK_COUNTS", "lengths", "some_of", "steps_at_once", "tiles_in_blocks"]

# Shorter cuts of a reduction, and more numbers of cuts and of blocks, are not tried: tables stay
# small, since a sum of billions of elements has many divisors, and neighbours hardly differ.
_SHORTEST_CUT = 64
_MOST_CUTS = 1 << 14
BLOCK_COUNTS = (*range(1, 17), *(b * n for b in (4, 8, 16, 32, 64) for n in (5, 6, 7, 8)))

_STEPS_AT_ONCE = (1, 2, 3, 4, 5, 6)
_MOST_STEPS = 12
"""Steps of short loops that are unrolled at most: compile time grows with every one of them."""


@lru_cache(maxsize=1024)
def tiles_in_blocks(
    registers: int, most_rows: int, widest: int, counts: tuple[int, ...], *, few: bool
) -> dict[str, Column]:
    """Register tiles, and how many of them make a block of rows, for some numbers of blocks."""
    rows, vectors = _tiles(registers, min(most_rows, registers), widest, few=few)
    tiles = -(-most_rows // rows)
    tile, number = np.divmod(np.arange(len(rows) * len(counts)), len(counts))
    count = np.array(counts, np.int64)[number]
    per_block = -(-tiles[tile] // count)
    own = -(-tiles[tile] // per_block) == count  # other numbers of blocks have the same size
    tile = tile[own]
    return {
        "tile_rows": rows[tile],
        "tile_vectors": vectors[tile],
        "row_tiles_per_block": per_block[own],
    }


def _tiles(registers: int, most_rows: int, widest: int, *, few: bool) -> tuple[Column, Column]:
    """Rows and vectors of micro tiles that fit the register file, with room to feed them.

    With one row each vector of the right operand is used once, straight from memory. A draft does
    without tiles that have less than half of the sums of another one.
    """
    found = [
        (rows, vectors)
        for vectors in range(1, min(widest, registers - 2) + 1)
        for rows in range(1, most_rows + 1)
        if rows * vectors + (2 if rows == 1 else vectors + 1) <= registers
    ] or [(1, 1)]
    if few and most_rows > 1:
        most = max(rows * vectors for rows, vectors in found)
        found = [(rows, vectors) for rows, vectors in found if 2 * rows * vectors >= most]
    rows, vectors = np.array(found, np.int64).T
    return rows, vectors


@lru_cache(maxsize=1024)
def lengths(reduce: int, step: int) -> tuple[int, ...]:
    """Lengths of a cut of the reduction, all of it first; each divides the whole."""
    turns = reduce // step
    counts = range(1, min(max(1, reduce // _SHORTEST_CUT), _MOST_CUTS) + 1)
    return tuple(step * (turns // n) for n in counts if turns % n == 0)


def some_of(wanted: Sequence[int], most: int) -> list[int]:
    """At most so many lengths, each about half as long as the one before."""
    found = [wanted[0]]
    for length in wanted[1:]:
        if len(found) < most and 2 * length <= found[-1] + length // 2:
            found.append(length)
    return found


def _whole_loops(extents: Iterable[int]) -> list[int]:
    """Steps of the innermost loop, of the two innermost ones, …, as far as they are few."""
    found, steps = [], 1
    for extent in extents:
        steps *= extent
        if steps > _MOST_STEPS:
            break
        found.append(steps)
    return found


def steps_at_once(walks: tuple[int, ...]) -> list[int]:
    """How many steps an iteration may take, of a walk along loops of known lengths, inner first.

    Several steps of the innermost loop, or all steps of a few short loops inside of another one.
    """
    if not walks:
        return [1]
    found = [steps for steps in _STEPS_AT_ONCE if steps == 1 or 2 * steps <= walks[0]]
    return sorted({*found, *_whole_loops(walks[:-1])})
