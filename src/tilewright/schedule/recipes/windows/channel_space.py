"""The space of windows whose channels lie innermost: what it is about, and every way it can go.

A point is a register tile of sums (lines × columns × vectors of channels), how much of the window
is unrolled, how a border is made, and what threads share. Every point can be followed: what the
registers do not hold is not in the space.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from tilewright.schedule.recipes.table import Column, Table
from tilewright.schedule.recipes.windows.moves import Move
from tilewright.schedule.recipes.windows.ways import (
    APART,
    ASKED,
    COPIED,
    CUT,
    CUT_LINES,
    FUSED,
    STRAIGHT,
    shared_ways,
    unrolled_taps,
)
from tilewright.target import Target

__all__ = ["ChannelPoint", "ChannelShape", "channel_space", "shares_columns", "shares_lines"]

# Lines and vectors of a tile that are tried.
_LINES, _VECTORS = (1, 2, 3, 4), (1, 2, 4)


@dataclass(frozen=True)
class ChannelShape:
    """What costs need to know of a window over channels that lie innermost."""

    around: tuple[int, ...]
    """Places in front of lines: a batch, blocks of channels, depth."""
    lines: int
    columns: int
    channels: int
    across: Move
    along: Move
    walks: tuple[int, ...]
    """Loops over the window, the innermost last; those along columns are innermost."""
    places: int
    """Elements of the data of one channel, with their border."""
    element_bytes: int
    """Of the widest element that is computed with."""
    threads: int
    is_weighted: bool = True
    along_walks: int = 1
    has_border: bool = False
    may_ask: bool = False
    """Whether the border may be computed where it is read."""
    may_copy: bool = False
    """Whether some channels may be copied with their border."""
    is_sized: bool = True
    """Whether all sizes but those of a batch are known."""
    is_deep: bool = False
    """Whether lines may be taken several at a time."""

    @property
    def taps(self) -> int:
        """Elements of a window."""
        return prod(self.walks)

    @property
    def inside(self) -> int:
        """Elements of the data of one channel, without their border."""
        windows = prod(self.around[1:]) * self.lines * self.columns
        return min(self.places, windows * self.across.step * self.along.step)

    @property
    def pitch_bytes(self) -> int:
        """From one column of the data to the next."""
        return self.channels * self.element_bytes

    def copies(self, lines: Column, columns: Column) -> Column:
        """Copies of the code of a tile if the border is asked for: its tiles have their own."""
        return self.across.pieces(self.lines, lines) * self.along.pieces(self.columns, columns)

    def is_cut(self, lines: Column, columns: Column, vectors: Column) -> NDArray[np.bool_]:
        """Whether lowering cuts loops at the border, so that no tile asks where it is."""
        each = lines * columns * vectors * (self.taps + 2)
        return np.asarray(each * self.copies(lines, columns) <= CUT)


@dataclass(frozen=True)
class ChannelPoint:
    """Decisions of the recipe."""

    lines: int
    columns: int
    vectors: int
    """Lines, columns and vectors of channels of a tile of sums."""
    lanes: int
    unrolled: int
    """Loops over the window that are unrolled, from the innermost one on."""
    border: int
    channels: int
    """Channels that are done, and copied, before the next ones; 0: all, tile by tile."""
    parallel: int


def channel_space(shape: ChannelShape, target: Target) -> Table[ChannelPoint]:
    """All points for a shape."""
    lanes = target.lanes(shape.element_bytes)
    registers = target.vector_registers
    vectors = [v for v in _VECTORS if v == 1 or (shape.is_sized and v * lanes <= shape.channels)]
    groups = _channel_groups(shape, target)
    tiles = {
        "lines": [n for n in _LINES if n == 1 or (shape.is_deep and n <= shape.lines)],
        "columns": range(1, min(shape.columns, registers - 2) + 1),
        "vectors": vectors,
        "lanes": [lanes],
        "unrolled": sorted({0, shape.along_walks, len(shape.walks) - 1, len(shape.walks)}),
    }
    around = {
        "border": [APART, *([ASKED] * shape.may_ask), *([COPIED] * shape.may_copy)],
        "channels": groups,
        "parallel": shared_ways(shape.threads),
    }
    table = Table.every(ChannelPoint, tiles)
    table = table.where(_fits(shape, table, registers))
    table = table.times(Table.every(ChannelPoint, around))
    return table.where(_is_followed(shape, table, target))


def _channel_groups(shape: ChannelShape, target: Target) -> list[int]:
    """Sizes of groups of channels: whole lines of the cache that divide all of them."""
    line = max(1, target.cache(1).line_bytes // shape.element_bytes)
    if not shape.is_sized:
        return [0]
    sizes = [line * n for n in (1, 2, 3, 4, 6, 8, 12, 16)]
    return [0, *(c for c in sizes if c < shape.channels and shape.channels % c == 0)]


def _fits(shape: ChannelShape, table: Table[ChannelPoint], registers: int) -> NDArray[np.bool_]:
    """Whether sums, what neighbours share and a weight stay in registers, and code stays short."""
    lines, columns, vectors = table["lines"], table["columns"], table["vectors"]
    shared = shares_columns(shape, table) | shares_lines(shape, table)
    data: Column = np.where(shared, lines * shape.along.read(columns), 1) * vectors
    sums = lines * columns * vectors
    fed = sums + data + vectors * shape.is_weighted <= registers
    straight = sums * unrolled_taps(shape.walks, table["unrolled"])
    is_least = (sums == 1) & (table["unrolled"] == 0)
    return np.asarray((fed & (straight <= STRAIGHT)) | is_least)


def shares_columns(shape: ChannelShape, table: Table[ChannelPoint]) -> NDArray[np.bool_]:
    """Whether neighbouring columns use what is loaded for one of them."""
    unrolled = table["unrolled"] >= max(1, shape.along_walks)
    return np.asarray(unrolled & (table["columns"] > 1) & shape.along.overlaps)


def shares_lines(shape: ChannelShape, table: Table[ChannelPoint]) -> NDArray[np.bool_]:
    """Whether neighbouring lines use what is loaded for one of them."""
    whole = table["unrolled"] == len(shape.walks)
    return np.asarray(whole & (table["lines"] > 1) & shape.across.overlaps)


def _is_followed(
    shape: ChannelShape, table: Table[ChannelPoint], target: Target
) -> NDArray[np.bool_]:
    """What the recipe has steps for."""
    border, groups, parallel = table["border"], table["channels"], table["parallel"]
    width = table["vectors"] * table["lanes"]
    in_groups = (groups == 0) | (groups % width == 0)
    # Code is cut at a border only where every element of the window has code of its own.
    each = table["lines"] * table["columns"] * table["vectors"] * (shape.taps + 2)
    # Where several tiles reach into a border, lowering counts what lies between them twice.
    counted = np.where(shape.across.at_end(table["lines"]) > 1, 2, 1)
    pieces = shape.across.pieces(shape.lines, table["lines"]) * counted
    is_short = each * pieces <= CUT_LINES
    asks = (border != ASKED) | (is_short & (table["unrolled"] == len(shape.walks)))
    near = groups * shape.places * shape.element_bytes <= target.cache(1).share_bytes
    copies = (border != COPIED) | ((groups > 0) & near & (parallel != FUSED))
    lines = (table["lines"] == 1) | (shape.lines >= 2)
    fused = (parallel != FUSED) | (shape.is_sized & (len(shape.around) > 0))
    return np.asarray(in_groups & asks & copies & lines & fused)
