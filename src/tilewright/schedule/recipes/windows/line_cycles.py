"""Predicted cycles of windows along lines, for a whole table of points at once.

Vectors of places begin anywhere, so that loads cross lines of the cache; weights are single
elements. What is copied lies densely in the first cache, and costs a pass over its lines.
"""

from __future__ import annotations

from math import prod

import numpy as np

from tilewright.schedule.recipes.table import Column, Costs, Table
from tilewright.schedule.recipes.windows.line_space import LinePoint, LineShape, shares_lines
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
    COPIED,
    FUSED,
    SERIAL,
    unrolled_taps,
)
from tilewright.target import MachineModel

__all__ = ["line_cycles"]


def line_cycles(shape: LineShape, machine: MachineModel, table: Table[LinePoint]) -> Costs:
    """Cycles until the last thread is done, for every row of a table."""
    counts = _Counts(shape, table)
    read, written = _streams(shape, machine, table, counts)
    tiles = _tiles(shape, machine, table, counts)
    copying = _copying(shape, machine, table, counts)
    beside = together(machine, copying, read) + together(machine, tiles, written)
    work = np.where(counts.is_copied, beside, together(machine, tiles, read + written))
    is_serial = table["parallel"] == SERIAL
    part = np.where(is_serial, 1.0, busiest(counts.shares, shape.threads))
    waking = np.where(is_serial, 0.0, machine.barrier_cycles)
    sums = table["lines"] * table["vectors"]
    code = code_cycles(machine, sums * unrolled_taps(shape.walks, table["unrolled"]))
    return work * part + waking + code + _border_pass(shape, machine, table)


class _Counts:
    """How many tiles and copies there are, and how large they are on average."""

    def __init__(self, shape: LineShape, table: Table[LinePoint]) -> None:
        self.is_copied = table["border"] == COPIED
        in_parts = table["rows"] > 0
        rounded = -(-shape.height // table["lines"]) * table["lines"]
        self.height: Column = np.where(in_parts, rounded, shape.height)
        self.row_tiles: Column = -(-shape.height // table["lines"])
        self.lines: Costs = self.height / self.row_tiles
        self.line_vectors: Column = -(-shape.width // table["lanes"])
        self.line_tiles: Column = -(-self.line_vectors // table["vectors"])
        self.vectors: Costs = self.line_vectors / self.line_tiles
        self.outer = prod(shape.around)
        rows = np.where(in_parts, table["rows"], shape.height)
        if not shape.is_across:
            rows = np.ones(len(table), np.int64)
        self.rows: Column = rows
        self.copies: Column = -(-shape.height // rows)
        stacked = prod(shape.around[: shape.depth])
        reached = shape.images // max(1, stacked)
        per_place = self.outer * shape.pictures
        self.pictures: Column = np.where(table["stacked"] == 1, stacked * reached, per_place)
        self.copied_lines: Column = self.pictures * self.copies * shape.across.read(rows)
        self.shares = self._shares(shape, table)

    def _shares(self, shape: LineShape, table: Table[LinePoint]) -> Column:
        """Iterations of the loop that threads share."""
        ones = np.ones(len(table), np.int64)
        last = np.where(self.is_copied, self.copies, self.row_tiles)
        last = np.where(table["stacked"] == 1, 1, last)
        first = last
        fused = last
        for number, extent in reversed([*enumerate(shape.around)]):
            is_inside = (number >= shape.depth) & (table["stacked"] == 1)
            own = np.where(is_inside, 1, extent) * ones
            first = np.where(own > 1, own, first)
            fused = fused * own
        return np.where(table["parallel"] == FUSED, fused, first)


def _across_lines(machine: MachineModel, shape: LineShape, table: Table[LinePoint]) -> Costs:
    """How much longer it takes to access a vector that begins anywhere: some lie in two lines.

    A port that is narrower than a vector takes several turns, of which one crosses the border.
    """
    turns = max(1.0, machine.element_loads / machine.vector_loads)
    longest = table["lanes"] * shape.element_bytes / turns - shape.element_bytes
    return 1.0 + np.maximum(0.0, longest) / machine.levels[0].line_bytes


def _tiles(
    shape: LineShape, machine: MachineModel, table: Table[LinePoint], counts: _Counts
) -> Costs:
    """All tiles of sums, on one thread."""
    lines, vectors = counts.lines, counts.vectors
    other = shape.taps // shape.across.taps
    every = lines * shape.across.taps
    rows = np.where(shares_lines(shape, table), shape.across.touched(lines), every)
    # What moves by several places is loaded place by place, unless it was sorted.
    strided = np.where(table["phases"] == 1, 1.0, float(shape.along.step))
    sorting = np.where(strided > 1, machine.windows.sorted_cycles, 0.0) * machine.vector_loads
    each = strided * _across_lines(machine, shape, table) + sorting * strided
    loads = rows * other * vectors * each
    weights = float(shape.taps) if shape.is_weighted else 0.0
    turns = shape.taps / unrolled_taps(shape.walks, table["unrolled"])
    sums = lines * vectors
    stores = sums * _across_lines(machine, shape, table)
    tile = Tile(sums, shape.taps, loads, weights, stores, turns)
    partial = shape.width % table["lanes"] != 0
    cut = np.where(counts.is_copied, lines, rows * other + lines)
    ends = counts.row_tiles * np.where(partial, cut * machine.windows.partial_cycles, 0.0)
    per_picture = counts.row_tiles * counts.line_tiles * tile_cycles(machine, tile) + ends
    starts = counts.row_tiles * machine.windows.line_cycles
    return counts.outer * (per_picture + starts)


def _copying(
    shape: LineShape, machine: MachineModel, table: Table[LinePoint], counts: _Counts
) -> Costs:
    """Copying lines with their border, whole vectors of them, sorted or not."""
    costs = machine.windows
    vectors = np.ceil(shape.along.read(shape.width) / table["lanes"])
    each = _across_lines(machine, shape, table) / machine.vector_stores + costs.copied_cycles
    each += np.where(table["phases"] == 1, costs.sorted_cycles * shape.along.step, 0.0)
    lines = counts.copied_lines * (vectors * each + costs.line_cycles)
    return np.where(counts.is_copied, lines, 0.0)


def _streams(
    shape: LineShape, machine: MachineModel, table: Table[LinePoint], counts: _Counts
) -> tuple[Stream, Stream]:
    """What is read where data are copied, and what moves beside the sums.

    A copy that does not stay in the first cache goes to the second one, and comes back from there
    for every tile of lines.
    """
    data = float(shape.data_lines * shape.line_bytes)
    result = float(counts.outer * shape.height * shape.width * shape.element_bytes)
    copied = counts.copied_lines * shape.line_bytes
    source = np.where(counts.is_copied, np.maximum(copied, data), data * (1 + shape.has_border))
    read = Stream.of(machine, source, data + result)
    written = Stream.of(machine, np.full(len(table), result), data + result)
    held = shape.across.read(counts.rows) * shape.line_bytes * shape.pictures
    reached = shape.images // max(1, prod(shape.around[: shape.depth]))
    whole = reached * shape.across.read(shape.height) * shape.line_bytes
    held = np.where(table["stacked"] == 1, whole, held)
    is_far = counts.is_copied & (held > machine.near_share * machine.levels[0].size_bytes)
    home = machine.level(2), machine.level(3)
    beyond = held > machine.near_share * home[0].size_bytes
    rate = np.where(beyond, home[1].read, home[0].read)
    again = np.where(is_far, copied / rate, 0.0)
    share = np.where(beyond, home[1].exposed, home[0].exposed)
    reread = again * shape.across.read(counts.lines) / (counts.lines * shape.across.step)
    away = Stream(2 * again, 2 * again * share)  # lines are fetched to be written, and leave
    return read + away, written + Stream(reread, reread * share)


def _border_pass(shape: LineShape, machine: MachineModel, table: Table[LinePoint]) -> Costs:
    """A pass of its own in which data are copied into a border; threads share it if they can."""
    if not shape.has_border:
        return np.zeros(len(table))
    lines = float(shape.data_lines)
    data = lines * shape.line_bytes
    vectors = lines * np.ceil(shape.along.read(shape.width) / table["lanes"])
    each = _across_lines(machine, shape, table) / machine.vector_stores
    stream = Stream.of(machine, np.full(len(table), 2 * data), 2 * data)
    alone = together(machine, vectors * each + lines * machine.windows.line_cycles, stream)
    shared = alone / shape.threads + machine.barrier_cycles
    cycles = np.minimum(alone, shared) if shape.threads > 1 else alone
    return np.where(table["border"] == APART, cycles, 0.0)
