"""Predicted cycles of windows whose channels lie innermost, for a whole table of points at once.

Arithmetic does not depend on tiles, which divide lines and columns as evenly as can be. What does:
loads that neighbours share, loops, and what is read again from the second cache because the lines
of a window do not stay in the first.
"""

from __future__ import annotations

from math import prod

import numpy as np

from tilewright.schedule.recipes.table import Column, Costs, Table
from tilewright.schedule.recipes.windows.channel_space import (
    ChannelPoint,
    ChannelShape,
    shares_columns,
    shares_lines,
)
from tilewright.schedule.recipes.windows.pricing import (
    Stream,
    Tile,
    busiest,
    code_cycles,
    tile_cycles,
    together,
)
from tilewright.schedule.recipes.windows.ways import (
    APART,
    ASKED,
    COPIED,
    FUSED,
    SERIAL,
    unrolled_taps,
)
from tilewright.target import MachineModel

__all__ = ["channel_cycles"]


def channel_cycles(shape: ChannelShape, machine: MachineModel, table: Table[ChannelPoint]) -> Costs:
    """Cycles until the last thread is done, for every row of a table."""
    counts = _Counts(shape, table)
    compute = _tiles(shape, machine, table, counts)
    stream = _reading(shape, machine, table, counts)
    work = together(machine, compute, stream) + _copying(shape, machine, table)
    threads = shape.threads
    part = np.where(table["parallel"] == SERIAL, 1.0, busiest(counts.shares, threads))
    waking = np.where(table["parallel"] == SERIAL, 0.0, machine.barrier_cycles)
    code = code_cycles(machine, counts.code)
    return work * part + waking + code + _border_pass(shape, machine, table)


class _Counts:
    """How many tiles there are, and how large they are on average."""

    def __init__(self, shape: ChannelShape, table: Table[ChannelPoint]) -> None:
        width = table["lanes"] * table["vectors"]
        self.steps: Column = -(-shape.channels // width)
        self.column_tiles: Column = -(-shape.columns // table["columns"])
        self.line_tiles: Column = -(-shape.lines // table["lines"])
        self.columns: Costs = shape.columns / self.column_tiles
        self.lines: Costs = shape.lines / self.line_tiles
        self.vectors: Costs = -(-shape.channels // table["lanes"]) / self.steps
        self.outer = prod(shape.around)
        self.sums: Costs = self.lines * self.columns * self.vectors
        groups = np.where(table["channels"] > 0, -(-shape.channels // _group(shape, table)), 1)
        self.groups: Column = groups
        self.shares = _shares(shape, table, self)
        copies = shape.copies(table["lines"], table["columns"])
        self.pieces: Column = np.where(table["border"] == ASKED, copies, 1)
        self.code: Costs = self.pieces * self.sums * unrolled_taps(shape.walks, table["unrolled"])


def _group(shape: ChannelShape, table: Table[ChannelPoint]) -> Column:
    """Channels that are done before the next ones."""
    return np.where(table["channels"] > 0, table["channels"], shape.channels)


def _shares(shape: ChannelShape, table: Table[ChannelPoint], counts: _Counts) -> Column:
    """Iterations of the loop that threads share."""
    loops = [counts.groups, *(np.full(len(table), n) for n in shape.around)]
    loops.append(counts.line_tiles)
    first: Column = counts.column_tiles
    for extent in reversed(loops):
        first = np.where(extent > 1, extent, first)
    return np.where(table["parallel"] == FUSED, prod(loops), first)


def _tiles(
    shape: ChannelShape, machine: MachineModel, table: Table[ChannelPoint], counts: _Counts
) -> Costs:
    """All tiles of sums, on one thread."""
    lines, columns, vectors = counts.lines, counts.columns, counts.vectors
    other = shape.taps // (shape.across.taps * shape.along.taps)
    every = lines * shape.across.taps
    rows = np.where(shares_lines(shape, table), shape.across.touched(lines), every) * other
    every = columns * shape.along.taps
    own = np.where(shares_columns(shape, table), shape.along.touched(columns), every)
    weights = shape.taps * vectors if shape.is_weighted else 0.0
    turns = shape.taps / unrolled_taps(shape.walks, table["unrolled"])
    is_cut = shape.is_cut(table["lines"], table["columns"], table["vectors"])
    turns = turns + np.where((table["border"] == ASKED) & ~is_cut, shape.taps, 0)
    tile = Tile(counts.sums, shape.taps, rows * own * vectors + weights, 0.0, counts.sums, turns)
    each = tile_cycles(machine, tile) + _conflicts(shape, machine, table)
    number = counts.outer * counts.line_tiles * counts.column_tiles * counts.steps
    pieces = np.where(table["border"] == ASKED, 3, 1)
    starts = counts.outer * counts.line_tiles * counts.groups * pieces
    return number * each + starts * machine.windows.line_cycles


def _conflicts(shape: ChannelShape, machine: MachineModel, table: Table[ChannelPoint]) -> Costs:
    """What a tile waits since its columns, and those of its result, share sets of the first cache.

    A vector as long as a line of the cache uses it at once: only what other tiles read, too, comes
    again. Of lines that it uses in part everything does. Several vectors of a column lie in sets
    beside each other, which have as much to hold each.
    """
    across, along = shape.across, shape.along
    lines = np.minimum(across.read(table["lines"]), across.taps * table["lines"])
    rows = lines * along.read(table["columns"])
    sums = table["lines"] * table["columns"]
    each = machine.conflicts(shape.pitch_bytes, rows + sums)
    used = table["lanes"] * table["vectors"] * shape.element_bytes / machine.levels[0].line_bytes
    own = np.minimum(1.0, sums * across.step * along.step / rows)
    again = np.where(used >= 1, (1.0 - own) * used, 1.0)
    return np.where(table["border"] == COPIED, 0.0, again * each)


def _reading(
    shape: ChannelShape, machine: MachineModel, table: Table[ChannelPoint], counts: _Counts
) -> Stream:
    """Data from where they live, and again what does not stay in the first cache; the result."""
    size, channels = shape.element_bytes, _group(shape, table)
    data = _data_bytes(shape)
    result = float(counts.outer * shape.lines * shape.columns * shape.channels * size)
    first = machine.near_share * machine.levels[0].size_bytes
    lines_read = shape.across.read(counts.lines)
    line = shape.along.read(shape.columns) * channels * size
    tile = lines_read * shape.along.read(counts.columns) * channels * size
    again_lines = np.maximum(1.0, lines_read / (counts.lines * shape.across.step))
    again_columns = shape.along.read(counts.columns) / (counts.columns * shape.along.step)
    again_columns = np.where(tile <= first, 1.0, np.maximum(1.0, again_columns))
    again = np.where(lines_read * line <= first, 1.0, again_lines * again_columns) - 1.0
    again = np.where(table["border"] == COPIED, 0.0, again)
    # A pass of its own has just written the data with their border; else what is inside is read.
    is_apart = shape.has_border & (table["border"] == APART)
    source = np.where(is_apart, data, data * shape.inside / shape.places)
    runs = _short_runs(shape, machine, channels, data + result)
    moved = Stream.of(
        machine, source * (1 + runs * machine.windows.short_runs) + result, data + result
    )
    # All of it comes through the second cache, and some of it again.
    through = (source + result + again * source) / machine.level(2).read
    waits = np.maximum(moved.exposed, runs * moved.cycles) + again * source * _refill(machine)
    near = machine.home_of(data + result) is machine.levels[0]
    return moved if near else Stream(np.maximum(moved.cycles, through), waits)


def _refill(machine: MachineModel) -> float:
    """Cycles that arithmetic does not hide for a byte that is read again from the second cache."""
    return machine.refill_exposed / machine.level(2).read


def _data_bytes(shape: ChannelShape) -> float:
    """Of all data, with their border."""
    batch = shape.around[0] if shape.around else 1
    return float(batch * shape.places * shape.channels * shape.element_bytes)


def _short_runs(
    shape: ChannelShape, machine: MachineModel, channels: Column, size_bytes: float
) -> Costs:
    """Lines of the cache that nothing announces, if some channels of each place are read at a time.

    A part of all lines: the first of each run. Beyond the second cache they are waited for.
    """
    near = machine.home_of(size_bytes) in machine.levels[:2]
    lines = np.maximum(1.0, channels * shape.element_bytes / machine.levels[0].line_bytes)
    return np.where((channels >= shape.channels) | near, 0.0, 1.0 / lines)


def _copying(shape: ChannelShape, machine: MachineModel, table: Table[ChannelPoint]) -> Costs:
    """Copying all channels, a group at a time, to where they lie densely."""
    vectors = -(-shape.channels // table["lanes"]) * shape.places
    each = 1 / machine.vector_stores + machine.windows.copied_cycles
    return np.where(table["border"] == COPIED, vectors * each, 0.0)


def _border_pass(shape: ChannelShape, machine: MachineModel, table: Table[ChannelPoint]) -> Costs:
    """A pass of its own in which data are copied into a border; threads share it if they can."""
    if not shape.has_border:
        return np.zeros(len(table))
    data = _data_bytes(shape)
    vectors = data / (table["lanes"] * shape.element_bytes)
    stream = Stream.of(machine, np.full(len(table), 2 * data), 2 * data)
    alone = together(machine, vectors / machine.vector_stores, stream)
    shared = alone / shape.threads + machine.barrier_cycles
    cycles = np.minimum(alone, shared) if shape.threads > 1 else alone
    return np.where(table["border"] == APART, cycles, 0.0)
