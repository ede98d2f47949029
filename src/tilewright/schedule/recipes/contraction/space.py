"""The space of the contraction recipe: what it is about, and every way it can go.

A point is a register tile, how many of its kind make a block for the second cache, how far the
reduction goes in one cut, and whether threads share the work. Every point can be followed: what the
registers do not hold, and what the recipe has no steps for, is not in the space.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tilewright.schedule.recipes.table import Column, Table
from tilewright.target import Target

__all__ = ["ContractionPoint", "ContractionShape", "contraction_space"]

# Shorter cuts of a reduction spend their time on partial sums.
_SHORTEST_CUT = 192

# Numbers of cuts, and of blocks of rows, that are tried: a sum of billions of elements has too many
# divisors, and blocks that differ by one tile do not differ.
_MOST_CUTS = 1 << 14
_BLOCK_COUNTS = (*range(1, 17), *(b * n for b in (4, 8, 16, 32, 64) for n in (5, 6, 7, 8)))


@dataclass(frozen=True)
class ContractionShape:
    """What costs need to know: extents, element size, and how the left operand lies in memory."""

    batch: int
    rows: int
    columns: int
    reduce: int
    element_bytes: int
    right_is_constant: bool
    threads: int
    density: float = 1.0
    """Elements of the left operand by rows and steps: windows that overlap share them."""
    reduce_step: int = 1
    """Cuts of the reduction are multiples of this: loops inside of the one that is cut."""
    pitch_bytes: int = 0
    """How far rows of the left operand are apart; 0 if that is not known, or not one number."""


@dataclass(frozen=True)
class ContractionPoint:
    """Decisions of the recipe: micro tile, and how many of its kind make a cache block."""

    tile_rows: int
    tile_vectors: int
    lanes: int
    row_tiles_per_block: int
    reduce_per_block: int
    parallel: int

    @property
    def tile_columns(self) -> int:
        """Width of the micro tile in elements."""
        return self.tile_vectors * self.lanes


def contraction_space(shape: ContractionShape, target: Target) -> Table[ContractionPoint]:
    """All points for a shape."""
    lanes = max(1, target.lanes(shape.element_bytes))
    registers = target.vector_registers
    widest = math.ceil(shape.columns / lanes)
    tile_rows, tile_vectors = _tiles(registers, min(shape.rows, registers), widest)
    cuts = np.array(_cuts(shape.reduce, shape.reduce_step), np.int64)
    counts = np.array(_BLOCK_COUNTS, np.int64)
    shares = np.array([0, 1] if shape.threads > 1 else [0], np.int64)
    tile, cut, count, share = _combinations(tile_rows, cuts, counts, shares)
    rows = tile_rows[tile]
    tiles = -(-shape.rows // rows)
    per_block = -(-tiles // counts[count])
    is_own = -(-tiles // per_block) == counts[count]  # other numbers of blocks have the same size
    is_followed = (rows > 1) | (cuts[cut] == shape.reduce)  # a single row has no partial sums
    keep = is_own & is_followed
    columns: dict[str, Column] = {
        "tile_rows": rows[keep],
        "tile_vectors": tile_vectors[tile][keep],
        "lanes": np.full(int(keep.sum()), lanes, np.int64),
        "row_tiles_per_block": per_block[keep],
        "reduce_per_block": cuts[cut][keep],
        "parallel": shares[share][keep],
    }
    return Table(ContractionPoint, columns)


def _combinations(*columns: Column) -> list[Column]:
    """Places in each column, for every combination of them."""
    return [places.ravel() for places in np.indices([len(c) for c in columns])]


@lru_cache(maxsize=1024)
def _tiles(registers: int, most_rows: int, widest: int) -> tuple[Column, Column]:
    """Rows and vectors of micro tiles that fit the register file, with room to feed them.

    With one row each vector of the right operand is used once, straight from memory.
    """
    found = [
        (rows, vectors)
        for vectors in range(1, min(widest, registers - 2) + 1)
        for rows in range(1, most_rows + 1)
        if rows * vectors + (2 if rows == 1 else vectors + 1) <= registers
    ]
    rows, vectors = np.array(found or [(1, 1)], np.int64).T
    return rows, vectors


@lru_cache(maxsize=1024)
def _cuts(reduce: int, step: int) -> tuple[int, ...]:
    """Lengths of a cut of the reduction, all of it first; each divides the whole."""
    turns = reduce // step
    counts = range(1, min(max(1, reduce // _SHORTEST_CUT), _MOST_CUTS) + 1)
    return tuple(step * (turns // n) for n in counts if turns % n == 0)
