"""Predicted cycles of transposing copies, for a whole table of points at once.

A tile of registers costs its loads, stores and shuffles. Around it, a line that is used in part is
used again by the next tile; if too many other lines lie between the two, or more than its set of
the first cache holds, it comes again from the second one. Lines that are whole pages apart share
few sets of the first cache, and every page has an address to be translated.
"""

from __future__ import annotations

import numpy as np

from tilewright.schedule.recipes.sharing import leading_iterations, shared_cycles
from tilewright.schedule.recipes.streams import moved
from tilewright.schedule.recipes.table import Costs, Table
from tilewright.schedule.recipes.transpose_shape import TransposePoint, TransposeShape
from tilewright.target import MachineModel

__all__ = ["transpose_cycles"]


def transpose_cycles(
    shape: TransposeShape, machine: MachineModel, table: Table[TransposePoint]
) -> Costs:
    """Cycles until the last thread is done, for every row of a table."""
    parallel = table["parallel"]
    images = float(shape.around.iterations)
    cycles = images * (_registers(shape, machine, table) + _lines(shape, machine, table))
    cycles = moved(machine, cycles, 2 * shape.size_bytes, parallel)
    row_tiles, column_tiles = shape.tiles(table)
    outer, inner = np.where(
        table["along_source"] != 0, (column_tiles, row_tiles), (row_tiles, column_tiles)
    )
    return shared_cycles(
        machine,
        cycles,
        leading_iterations((*shape.around.extents, outer, inner), table["shared"]),
        table["shared"],
        shape.threads,
        parallel,
    )


def _registers(shape: TransposeShape, machine: MachineModel, table: Table[TransposePoint]) -> Costs:
    """Turning all square tiles of one image; what they leave over goes by narrower ones."""
    side = table["side"]
    shuffle = np.where(side < shape.lanes, machine.half_width, 1.0) / machine.shuffles
    shuffles = side * np.log2(np.maximum(side, 1)) * shuffle
    arithmetic = side * shape.operations / machine.fma_per_cycle
    loads, stores = side / machine.vector_loads, side / machine.vector_stores
    tile = np.maximum(np.maximum(shuffles + arithmetic, loads), stores)
    # Of a symbolic size half a tile is left over.
    left = [n % side if shape.is_known else side // 2 for n in (shape.rows, shape.columns)]
    whole = (shape.rows // side) * (shape.columns // side)
    edge = left[0] * shape.columns + left[1] * (shape.rows - left[0])
    beside = table["rows_beside"] * table["columns_beside"]
    loops = whole / beside * machine.loops.iteration_cycles
    elements = 2 * machine.loops.element_cycles * edge
    code = 2 * side * (2 + np.log2(np.maximum(side, 1))) * machine.arithmetic.code_bytes
    return np.asarray(whole * tile + loops + elements + code / machine.level(2).read)


def _lines(shape: TransposeShape, machine: MachineModel, table: Table[TransposePoint]) -> Costs:
    """Sets that lines share, lines that come again, and pages, for one image."""
    side, first = table["side"], machine.levels[0]
    rows_beside, columns_beside = table["rows_beside"], table["columns_beside"]
    row_tiles, column_tiles = shape.tiles(table)
    blocks = row_tiles * column_tiles
    source_first, along_source = table["source_first"] != 0, table["along_source"] != 0
    # Lines that are in use at a time, inside of tiles side by side.
    read = np.where(source_first, side, side * columns_beside)
    written = np.where(source_first, side * rows_beside, side)
    most = np.max(read + written, keepdims=True)
    if all(machine.conflicts(step, most)[0] for step in (shape.source_step, shape.result_step)):
        read = written = read + written  # the lines of both share the same few sets
    reading = machine.conflicts(shape.source_step, read)
    writing = machine.conflicts(shape.result_step, written)
    beside = rows_beside * columns_beside
    passes_read = np.where(source_first, beside, rows_beside)
    passes_written = np.where(source_first, columns_beside, beside)
    # A line that one tile uses up is not missed.
    kept = np.maximum(0.0, 1 - side * shape.element_bytes / first.line_bytes)
    conflicts = blocks * kept * (passes_read * reading + passes_written * writing)
    # Lines that a tile uses in part come again if what lies between does not stay.
    line, size = first.line_bytes, shape.element_bytes
    parts_read = np.maximum(1.0, line / (rows_beside * side * size))
    parts_written = np.maximum(1.0, line / (columns_beside * side * size))
    room = first.size_bytes / 2
    near_read, near_written = (
        room * machine.usable(1, step, line) for step in (shape.source_step, shape.result_step)
    )
    far_read = ~along_source & (shape.columns * line > near_read)
    far_written = along_source & (shape.rows * line > near_written)
    image = float(shape.rows * shape.columns * size)
    again = image * np.where(far_read, parts_read - 1, 0.0)
    again = again + 2 * image * np.where(far_written, parts_written - 1, 0.0)
    again = again / machine.level(2).read
    pages = _pages(shape, machine, table, blocks)
    if 2 * shape.size_bytes > machine.level(2).size_bytes:
        again = again + image * _runs(shape, machine, table)
    return np.asarray(conflicts + again + pages)


def _runs(shape: TransposeShape, machine: MachineModel, table: Table[TransposePoint]) -> Costs:
    """What prefetching by hardware misses, by byte: short runs of one side, streams of the other.

    Tiles that follow each other along lines of one side continue its streams.
    """
    along_source, costs = table["along_source"] != 0, machine.loops
    rows, columns = (table["side"] * table[name] for name in ("rows_beside", "columns_beside"))
    streams = np.where(along_source, columns, rows)
    runs = np.where(along_source, costs.store_share, 1.0) / (streams * shape.element_bytes)
    missed = np.maximum(0.0, 1 - costs.streams / streams) / machine.levels[0].line_bytes
    return np.asarray(costs.run_cycles * (runs + missed))


def _pages(
    shape: TransposeShape, machine: MachineModel, table: Table[TransposePoint], blocks: Costs
) -> Costs:
    """Translating addresses."""
    costs, page = machine.loops, float(machine.page_bytes)
    along_source = table["along_source"] != 0
    read = min(1.0, shape.source_step / page)
    written = min(1.0, shape.result_step / page)
    far_read = ~along_source & (shape.columns * read > costs.near_pages)
    far_written = along_source & (shape.rows * written > costs.near_pages)
    misses = np.where(far_read, table["side"] * table["columns_beside"] * read, 0.0)
    late = np.where(far_written, table["side"] * table["rows_beside"] * written, 0.0)
    return np.asarray(blocks * costs.page_cycles * (misses + late * costs.store_share))
