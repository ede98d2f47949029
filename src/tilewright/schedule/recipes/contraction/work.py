"""What the points of a table make of a contraction: tiles, panels, shares, and their arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tilewright.schedule.recipes.context import tile_sizes
from tilewright.schedule.recipes.contraction.space import (
    BLOCKS_FIRST,
    RIGHT_STAYS,
    ContractionPoint,
    ContractionShape,
)
from tilewright.schedule.recipes.table import Column, Costs, Table
from tilewright.target import MachineModel

__all__ = ["Work", "balance"]


def balance(iterations: Costs, threads: Costs | float) -> Costs:
    """How much longer than an even share the busiest thread takes."""
    return np.asarray(np.ceil(iterations / threads) * threads / iterations)


@dataclass(frozen=True)
class Work:
    """A shape, a machine, and a table of points with the counts that follow from them."""

    shape: ContractionShape
    machine: MachineModel
    table: Table[ContractionPoint]
    threads: Costs
    columns: Column
    batch: Column
    """Products, with parts of the reduction and columns that are not in one piece."""
    reduce: Column
    """Steps of one part of the reduction."""
    tiles: Column
    panels: Column
    blocks: Column
    iterations: Costs
    """Of the loop that threads share."""

    @classmethod
    def of(
        cls, shape: ContractionShape, machine: MachineModel, table: Table[ContractionPoint]
    ) -> Work:
        """Count."""
        parts = table["parts"]
        batch, columns = shape.batch * parts, np.full(len(table), shape.columns)
        if shape.line_columns:
            columns = np.where(table["packs"] != 0, shape.columns, shape.line_columns)
            batch = batch * -(-shape.columns // columns)
        tiles = -(-shape.rows // table["tile_rows"])
        panels = -(-columns // (table["tile_vectors"] * table["lanes"]))
        blocks = -(-tiles // table["row_tiles_per_block"])
        reduce = shape.reduce // parts
        threads = np.where(table["parallel"] != 0, float(shape.threads), 1.0)
        shared = np.ones(len(table))
        if shape.sharers > 1:
            shared = _iterations(shape, table, batch, reduce, tiles, panels, blocks)
        return cls(
            shape, machine, table, threads, columns, batch, reduce, tiles, panels, blocks, shared
        )

    def unevenness(self) -> Costs:
        """How much longer than a mean iteration those of the busiest thread take.

        The last panel may be narrower than others, the last span has fewer panels, and the last
        blocks have fewer tiles: threads take iterations in order, so the first one has the larger
        ones.
        """
        table, panels = self.table, self.panels
        if self.shape.threads == 1:
            return np.ones(len(table))
        each = -(-self.iterations // self.threads)
        # Panels without their last one's missing part; how many the first iterations do.
        rest = -(-self.columns // table["lanes"]) % table["tile_vectors"] / table["tile_vectors"]
        whole = panels - np.where(rest > 0, 1 - rest, 0.0)
        around, spans, width = self._spans()
        inside = np.maximum(1.0, self.iterations / (around * spans))  # of one span
        rounds, left = np.divmod(each / inside, spans)
        done = rounds * whole + np.minimum(left * width, whole)
        columns = done / (around * whole) / (each / self.iterations)
        is_cut = (table["spans"] != 0) | (table["reduce_per_block"] < self.reduce)
        columns = np.where(is_cut | (self.iterations > self.batch * self.blocks), columns, 1.0)
        rows = np.where(is_cut, 1.0, table["row_tiles_per_block"] * self.blocks / self.tiles)
        return np.where(self.threads > 1, np.maximum(1.0, columns) * rows, 1.0)

    def _spans(self) -> tuple[Costs, Costs, Costs]:
        """Of the shared loop: iterations around spans of panels, spans, and panels of each.

        Column blocks are outermost; of a cut reduction, spans are innermost, as panels are of
        whatever else there is.
        """
        table, panels, one = self.table, self.panels, np.ones(len(self.table))
        blocks = self.batch * self.blocks
        wide = -(-panels // np.maximum(1, table["spans"]))
        cut = -(-panels // np.maximum(1, table["shares"]))
        is_wide, is_cut = table["spans"] != 0, table["reduce_per_block"] < self.reduce
        width = np.where(is_wide, wide, np.where(is_cut, cut, one))
        around = np.where(is_wide, one, blocks)
        return around, np.ceil(panels / width), width

    def arithmetic(self) -> Costs:
        """Steps and stores of all tiles, of two heights and two widths, and copies of panels."""
        shape, machine, table = self.shape, self.machine, self.table
        rows, vectors, tiles = table["tile_rows"], table["tile_vectors"], self.tiles
        small = shape.rows // tiles
        larger = shape.rows - small * tiles
        whole, rest = np.divmod(-(-self.columns // table["lanes"]), vectors)
        visits = -(-self.reduce // table["reduce_per_block"])
        each = machine.contractions.iteration_cycles / table["unroll"] + self._unpacked()
        starts = visits * table["streams"]
        if shape.walks:  # what an iteration of several steps leaves over is a loop of its own
            length = shape.walks[0] if len(shape.walks) > 1 else table["reduce_per_block"]
            starts = starts + visits * (length % (table["unroll"] * self._steps()) != 0)
        start = starts * machine.tile_cycles
        total = np.zeros(len(table))
        for height, many in ((small + 1, larger), (small, tiles - larger)):
            conflicts = machine.conflicts(shape.pitch_bytes, np.minimum(height, rows))
            beside = np.where(table["copies_left"] != 0, 0.0, conflicts) + each
            for width, times in ((vectors, whole), (rest, rest > 0)):
                step = (self._step(height, width) + beside) / self._steps()
                walk = self.reduce * step + height * width / machine.vector_stores + start
                total += many * times * walk
        total *= self.batch
        total += self._ragged()
        if not shape.rows_are_known:
            total += self._tails()
        if shape.may_copy_left:
            total += self._left_copies()
        return total + self._packing() if shape.may_pack else total

    def _step(self, rows: Column, vectors: Column) -> Costs:
        """Cycles of one step of the reduction in a micro tile, or of those of one instruction."""
        machine = self.machine
        per_cycle, latency = self._rates()
        loads = rows / machine.element_loads + vectors / machine.vector_loads
        if self.shape.right_pitch_bytes % machine.level(1).line_bytes:
            loads = loads + self._split_lines() * vectors / machine.vector_loads
        if self.shape.column_pitch_bytes:
            filled = self.columns / (self.panels * self.table["tile_vectors"])
            singly = vectors * filled / machine.element_loads
            loads = loads + np.where(self.table["packs"] != 0, 0.0, singly)
        sums = rows * vectors
        latency = latency / self._walks_at_once(sums + vectors)
        arithmetic = np.maximum(sums / per_cycle, latency)
        hidden = machine.contractions.load_share
        return np.asarray(np.maximum(arithmetic, loads) + hidden * loads)

    def _steps(self) -> Column | int:
        """Steps of the reduction that one instruction takes."""
        found = [1, *(own.steps for own in self.shape.instructions)]
        return np.array(found)[self.table["instruction"]] if len(found) > 1 else 1

    def _rates(self) -> tuple[Costs | float, Costs | float]:
        """Instructions on sums per cycle, and cycles until one of them can be used again."""
        machine, found = self.machine, []
        for own in self.shape.instructions:
            rate = machine.instruction(own.name)
            assert rate is not None, "shapes have instructions of their machine only"
            found.append((rate.per_cycle, rate.latency))
        if not found:
            return machine.fma_per_cycle, machine.fma_latency
        every = np.array([(machine.fma_per_cycle, machine.fma_latency), *found])
        per_cycle, latency = every[self.table["instruction"]].T
        return per_cycle, latency

    def _walks_at_once(self, instructions: Column) -> Costs:
        """Tiles in flight: a core begins with the next walk while a short one waits for its sums.

        So the latency of a sum, which bounds a step of few of them, is shared by several tiles.
        """
        steps = np.minimum(self.table["reduce_per_block"], self.reduce) / self._steps()
        entries = self.machine.arithmetic.window
        return np.asarray(1 + entries / (steps * np.maximum(1, instructions)))

    def _split_lines(self) -> Costs | float:
        """The part of the vectors of a right operand that is not packed that lie in two lines."""
        if self.shape.right_is_constant:
            return 0.0
        size = self.table["lanes"] * self.shape.right_element_bytes
        part = np.minimum(1.0, size / self.machine.level(1).line_bytes)
        return np.where(self.table["packs"] == 0, part, 0.0)

    def _ragged(self) -> Costs | float:
        """Columns that do not fill a vector, where none are padded: pieces of 8, 4, 2 and 1."""
        shape, table = self.shape, self.table
        if shape.right_is_constant:
            return 0.0
        left = self.columns % table["lanes"]
        pieces = sum(left >> digit & 1 for digit in range(6)) - 1
        each = self.machine.half_width / self.machine.fma_per_cycle
        more = np.maximum(pieces, 0) * self.batch * self.reduce * shape.rows * each
        return np.where(table["packs"] == 0, more, 0.0)

    def _unpacked(self) -> Costs | float:
        """What a step into another page of the right operand costs where it is not packed.

        The pages of a panel are used again by every tile; more than there are addresses at hand
        take turns.
        """
        shape, costs = self.shape, self.machine.contractions
        if shape.right_is_constant:
            return 0.0
        pages = min(1.0, shape.right_pitch_bytes / self.machine.page_bytes)
        far = self.table["reduce_per_block"] * pages > costs.near_pages
        each = np.where(far, costs.page_cycles * pages, 0.0) + self._lines_apart()
        return np.where(self.table["packs"] == 0, each, 0.0)

    def _lines_apart(self) -> Costs | float:
        """What a row of a panel costs beside its loads if its elements do not lie side by side.

        Each has a line of its own, which the next steps use as long as its set has room.
        """
        apart = self.shape.column_pitch_bytes
        if not apart:
            return 0.0
        width = self.table["tile_vectors"] * self.table["lanes"]
        return self.machine.conflicts(apart, width)

    def _packing(self) -> Costs:
        """Copying every panel once for each block of rows, or once."""
        shape, machine, table = self.shape, self.machine, self.table
        elements = shape.batch * shape.reduce * shape.columns
        times = np.where(table["order"] == RIGHT_STAYS, 1, self.blocks)
        each = (1 / machine.vector_loads + 1 / machine.vector_stores) / table["lanes"]
        pages = min(1.0, shape.right_pitch_bytes / machine.page_bytes)
        width = table["tile_vectors"] * table["lanes"]
        each = each + (machine.contractions.page_cycles * pages + self._lines_apart()) / width
        if shape.column_pitch_bytes:
            each = each + 1 / machine.element_loads
        # The copy is a loop of its own, and what it stores last is waited for.
        start = 2 * times * shape.batch * self.panels * machine.tile_cycles
        return np.where(table["packs"] != 0, times * elements * each + start, 0.0)

    def _left_copies(self) -> Costs:
        """Copying blocks of rows: once, or for every panel where threads share these as well."""
        shape, machine, table = self.shape, self.machine, self.table
        again = (table["parallel"] != 0) & (self.batch * self.blocks < table["shares"])
        times = np.where(again, self.panels, np.maximum(1, table["spans"]))
        each = (1 / machine.vector_loads + 1 / machine.vector_stores) / table["lanes"]
        elements = self.batch * shape.rows * self.reduce
        start = self.batch * shape.rows * machine.loops.entering_cycles
        return np.where(table["copies_left"] != 0, times * (elements * each + start), 0.0)

    def _tails(self) -> Costs:
        """What rows of unknown number leave over: a few smaller tiles, each bound by latency."""
        few = _mean_tiles(self.table["tile_rows"], self.table["all_tails"])
        walk = self.reduce * self.machine.fma_latency + self.machine.tile_cycles
        return np.asarray(self.batch * self.panels * few * walk)

    def cold_code(self) -> Costs:
        """Instructions of all kinds of tiles, which a call runs for the first time."""
        table, shape = self.table, self.shape
        rows, vectors = table["tile_rows"], table["tile_vectors"]
        heights = np.asarray(rows * np.where(shape.rows % self.tiles == 0, 1.0, 2.0), np.float64)
        if not shape.rows_are_known:
            heights = _all_heights(rows, table["all_tails"])
        widths = vectors + -(-self.columns // table["lanes"]) % vectors
        tiles = heights * widths + heights + widths
        steps = table["unroll"] * table["streams"] + 1  # start values and results are as many
        return np.asarray(tiles * steps * self.machine.contractions.cold_cycles)

    def partial_sums(self) -> Costs:
        """What it costs to add partial sums to memory once for each further cut."""
        shape, machine, table = self.shape, self.machine, self.table
        rows, vectors = table["tile_rows"], table["tile_vectors"]
        visits = -(-self.reduce // table["reduce_per_block"]) - 1
        result = shape.rows * shape.columns * shape.element_bytes
        per_visit = 2 * result * machine.scattered / machine.home_of(result).read
        tiles = self.tiles * self.panels * 2 * rows * vectors
        return np.asarray(self.batch * visits * (per_visit + tiles))

    def summing_up(self) -> Costs:
        """What it costs to write parts of the sums, wait for all of them, and add them up."""
        shape, machine, parts = self.shape, self.machine, self.table["parts"]
        if not shape.parts:
            return np.zeros(1)
        result = shape.batch * shape.rows * shape.columns * shape.element_bytes
        read = machine.home_of(result * max(shape.parts)).read
        each = 2 * result / read / self.threads
        return np.where(parts > 1, parts * each + 2 * machine.barrier_cycles, 0.0)


def _iterations(
    shape: ContractionShape,
    table: Table[ContractionPoint],
    batch: Column,
    reduce: Column,
    tiles: Column,
    panels: Column,
    blocks: Column,
) -> Costs:
    """Iterations of the shared loop: of as many loops as it takes to have enough of them."""
    order, shares = table["order"], table["shares"]
    cut_spans = -(-panels // -(-panels // shares))
    last = np.where(table["share_tiles"] != 0, table["row_tiles_per_block"], 1)
    loops = [batch, blocks, panels, last]
    if shape.may_keep_right:
        stays = order == RIGHT_STAYS
        loops[1] = np.where(stays, tiles if shape.right_is_constant else 1, blocks)
        loops[2] = np.where(stays, 1, panels)
    if shape.group_bytes:
        first = order == BLOCKS_FIRST
        loops[:2] = np.where(first, blocks, batch), np.where(first, batch, blocks)
    found = loops[0]
    for loop in loops[1:]:
        found = np.where(found < shares, found * loop, found)
    found = np.where(table["spans"] != 0, _of_spans(table, panels, blocks), found)
    is_cut = table["reduce_per_block"] < reduce
    return np.where(is_cut, batch * blocks * cut_spans, found).astype(np.float64)


def _of_spans(table: Table[ContractionPoint], panels: Column, blocks: Column) -> Column:
    """Iterations of the shared loop where it begins with spans of panels."""
    shares, each = table["shares"], -(-panels // np.maximum(1, table["spans"]))
    found = -(-panels // each)
    for loop in (blocks, each):
        found = np.where(found < shares, found * loop, found)
    return found


def _mean_tiles(rows: Column, every: Column) -> Costs:
    """Tiles that an unknown remainder takes, on average."""
    return np.array(
        [_tails_of(*pair)[0] for pair in zip(rows.tolist(), every.tolist(), strict=True)]
    )


def _all_heights(rows: Column, every: Column) -> Costs:
    """Rows of all kinds of tiles together."""
    return np.array(
        [_tails_of(*pair)[1] for pair in zip(rows.tolist(), every.tolist(), strict=True)]
    )


@lru_cache(maxsize=256)
def _tails_of(largest: int, every: int) -> tuple[float, float]:
    sizes = tile_sizes(largest, largest if every else 0)
    total = 0
    for left in range(largest):
        for size in sizes:
            total += left // size
            left %= size
    return total / largest, float(sum(sizes))
