"""The space of windows along lines: what it is about, and every way it can go.

A point is a register tile of sums (lines × vectors of places), how much of the window is unrolled,
whether and how data are copied, and what threads share. Every point can be followed: what the
registers do not hold is not in the space.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from tilewright.schedule.recipes.table import Table
from tilewright.schedule.recipes.windows.moves import Move
from tilewright.schedule.recipes.windows.ways import (
    APART,
    COPIED,
    FUSED,
    STRAIGHT,
    shared_ways,
    unrolled_taps,
)
from tilewright.target import Target

__all__ = ["LinePoint", "LineShape", "line_space", "shares_lines"]

# Lines of a result that one copy may be for: all, and these parts of them.
_PARTS = (2, 3, 4, 6, 8, 12, 16)

# Registers for what arrives while all weights of a window wait in others.
_ARRIVING = 2


@dataclass(frozen=True)
class LineShape:
    """What costs need to know of a window along lines."""

    around: tuple[int, ...]
    """Places in front of lines: a batch, channels, depth."""
    depth: int
    """The first of them along which windows overlap, or their number."""
    height: int
    width: int
    """Lines of a result, and places of a line."""
    across: Move
    along: Move
    is_across: bool
    """Whether windows slide across lines, too."""
    pictures: int
    """How many pictures a window is deep."""
    walks: tuple[int, ...]
    """Loops over the window: those along a line, and inside of them those across lines."""
    along_walks: int
    across_walks: int
    images: int
    """Pictures of the data; lines, if windows do not slide across these."""
    element_bytes: int
    """Of the widest element that is computed with."""
    threads: int
    is_weighted: bool = True
    has_border: bool = False
    may_sort: bool = False
    """Whether data may be copied by phases."""
    is_sized: bool = True
    """Whether the batch is known, too."""

    @property
    def taps(self) -> int:
        """Elements of a window."""
        return prod(self.walks)

    @property
    def is_deep(self) -> bool:
        """Whether a window is deeper than a picture."""
        return self.depth < len(self.around)

    @property
    def data_lines(self) -> int:
        """Lines of all data, with their border."""
        return self.images * (self.across.read(self.height) if self.is_across else 1)

    @property
    def line_bytes(self) -> int:
        """Of a line of the data."""
        return self.along.read(self.width) * self.element_bytes


@dataclass(frozen=True)
class LinePoint:
    """Decisions of the recipe."""

    lines: int
    vectors: int
    """Lines of a tile of sums, and vectors of places of each."""
    lanes: int
    unrolled: int
    """Loops over the window that are unrolled, from the innermost one on."""
    border: int
    """Whether data are copied where they are used; else a border has a pass of its own."""
    phases: int
    """Whether the copy stores places by their remainder."""
    rows: int
    """Lines of the result that are computed of one copy; 0: all."""
    stacked: int
    """Whether all pictures that windows reach are copied at once."""
    parallel: int


def line_space(shape: LineShape, target: Target) -> Table[LinePoint]:
    """All points for a shape."""
    lanes, registers = target.lanes(shape.element_bytes), target.vector_registers
    longest = -(-shape.width // lanes)
    most = min(registers // 2, shape.height if shape.is_across else 1)
    rank, inner = len(shape.walks), shape.across_walks + shape.along_walks
    parts = sorted({-(-shape.height // n) for n in _PARTS} - {shape.height}) * shape.is_across
    tiles = {
        "lines": range(1, most + 1),
        "vectors": [v for v in (1, 2, 3, 4, 6, 8) if v <= longest],
        "lanes": [lanes],
        "unrolled": sorted({0, shape.across_walks, min(inner, rank), rank}),
    }
    around = {
        "border": [APART, *([COPIED] * (shape.has_border or shape.may_sort))],
        "phases": [0, *([1] * shape.may_sort)],
        "rows": [0, *parts],
        "stacked": [0, *([1] * shape.is_deep)],
        "parallel": shared_ways(shape.threads),
    }
    table = Table.every(LinePoint, tiles)
    table = table.where(_fits(shape, table, registers))
    table = table.times(Table.every(LinePoint, around))
    rows, lines = table["rows"], table["lines"]
    # Whole tiles of lines have one copy; where that is all of them, there are no parts.
    whole = -(-rows // lines) * lines
    table.columns["rows"] = np.where(whole >= shape.height, 0, whole)
    table = table.where(_is_followed(shape, table))
    return table.where(_is_first(table))


def _is_first(table: Table[LinePoint]) -> NDArray[np.bool_]:
    """Whether a row has no equal before it."""
    rows = np.stack(list(table.columns.values()), axis=1)
    _, places = np.unique(rows, axis=0, return_index=True)
    found = np.zeros(len(rows), np.bool_)
    found[places] = True
    return found


def shares_lines(shape: LineShape, table: Table[LinePoint]) -> NDArray[np.bool_]:
    """Whether neighbouring lines use what is loaded for one of them."""
    unrolled = table["unrolled"] >= max(1, shape.across_walks)
    return np.asarray(unrolled & (table["lines"] > 1) & shape.across.overlaps)


def _fits(shape: LineShape, table: Table[LinePoint], registers: int) -> NDArray[np.bool_]:
    """Whether sums, what neighbours share and a weight stay in registers, and code stays short."""
    lines, vectors = table["lines"], table["vectors"]
    sums = lines * vectors
    data = np.where(shares_lines(shape, table), lines * vectors, 1)
    # Weights of a window in one piece wait in registers for all sums; in a loop they take turns.
    inner = prod(shape.walks[len(shape.walks) - shape.across_walks :])
    is_one_piece = unrolled_taps(shape.walks, table["unrolled"]) > inner
    ahead = np.where(is_one_piece, shape.taps + _ARRIVING, 1)
    fed = sums + data + np.where(shape.is_weighted, ahead, 0) <= registers
    straight = sums * unrolled_taps(shape.walks, table["unrolled"])
    is_least = (sums == 1) & (table["unrolled"] == 0)
    return np.asarray((fed & (straight <= STRAIGHT)) | is_least)


def _is_followed(shape: LineShape, table: Table[LinePoint]) -> NDArray[np.bool_]:
    """What the recipe has steps for."""
    copied, phases = table["border"] == COPIED, table["phases"] == 1
    # Without a border there is a copy only where it sorts; what is not copied is not sorted.
    sorts = (copied & (phases | shape.has_border)) | (~copied & ~phases)
    parts = (table["rows"] == 0) | (copied & (table["stacked"] == 0))
    stacked = (table["stacked"] == 0) | copied
    fused = (table["parallel"] != FUSED) | shape.is_sized
    # Tiles of several lines share what they load, or a copy.
    lines = (table["lines"] == 1) | copied | shape.across.overlaps
    return np.asarray(sorts & parts & stacked & fused & lines)
