"""Streams of a contraction: what moves between levels of memory, for every row of a table."""

from __future__ import annotations

import numpy as np

from tilewright.schedule.recipes.contraction.space import BLOCKS_FIRST, RIGHT_STAYS
from tilewright.schedule.recipes.contraction.work import Work
from tilewright.schedule.recipes.table import Costs
from tilewright.target import Level, MachineModel

__all__ = ["traffic"]


def traffic(work: Work) -> tuple[Costs, Costs]:
    """Cycles of both operands' streams, and the part of them that arithmetic does not hide.

    Operands come from where they live, and again from the second cache. What several products
    share lives there once; windows that overlap find most of a panel where they have just read it.
    """
    shape, machine, table = work.shape, work.machine, work.table
    rows, order = table["tile_rows"], table["order"]
    cut, block = table["reduce_per_block"], table["row_tiles_per_block"]
    right_size, left_size = shape.right_element_bytes, shape.left_element_bytes
    right = float(shape.batch * shape.reduce * shape.columns * right_size)
    left = shape.batch * shape.rows * shape.reduce * left_size * shape.density
    beside = _streamed_beside(work, left, right)
    right_home = machine.home_of(min(right, shape.right_bytes or right) + beside[1])
    left_home = machine.home_of(min(left, shape.left_bytes or left) + beside[0])
    panel = cut * table["tile_vectors"] * table["lanes"] * right_size * shape.panel_density
    row_tile = np.asarray(rows * cut * left_size * shape.density, np.float64)
    first = machine.contractions.first_share * machine.level(1).size_bytes
    near = machine.near_share * machine.level(2).size_bytes
    first_room = first * _held(work, 1)
    near_room = machine.level(2).size_bytes * _held(work, 2)
    # While one panel is in use, the next one arrives.
    ahead = 1 + np.maximum(1, table["prefetch"])
    left_stays = block * row_tile <= np.maximum(near - ahead * panel, row_tile)
    spans = np.maximum(1, table["spans"])
    right_times = np.where(panel > near_room, work.tiles, work.blocks)
    left_times = np.where(left_stays, spans, work.panels)
    # What every tile draws from the second level: its rows, and the panel if the first is small.
    refill_left = np.where(block * row_tile + panel <= first, 0, work.panels)
    refill_right = np.where((work.tiles > 1) & (panel > first_room), work.tiles, 0)
    fetched = np.where(table["prefetch"] != 0, _hidden(machine), 1.0)
    right_exposed = right_home.exposed * fetched
    left_exposed = np.asarray(left_home.exposed)
    if shape.may_keep_right:
        stays = order == RIGHT_STAYS
        whole = right / shape.batch
        right_times = np.where(
            stays, np.where(whole + 2 * row_tile <= near, 1, work.tiles), right_times
        )
        left_times = np.where(stays, 1.0, left_times)
        refill_left = np.where(stays, np.where(row_tile <= first, 0, work.panels), refill_left)
        refill_right = np.where(
            stays, np.where(whole + row_tile <= first, 0, work.tiles), refill_right
        )
        left_exposed = np.where(stays, left_home.exposed * fetched, left_exposed)
        if shape.right_is_constant:  # it is not what is fetched then
            right_exposed = np.where(stays, right_home.exposed, right_exposed)
    if shape.group_bytes:
        apart = _groups_apart(work, left_home.line_bytes, near, row_tile)
        left_times = left_times * apart
        left_exposed = np.where(apart > 1, machine.memory.exposed, left_exposed)
    overlap = 1 - shape.panel_density
    refill_right = refill_right + np.where(panel > first_room, overlap, 0.0)
    read = _whole_reads(work, right_times) * right * shape.panel_density
    from_right = read / right_home.read / _rate(work)
    from_left = left_times * left / left_home.read
    refill = (refill_left * left + refill_right * right) / machine.level(2).read
    asked = np.where(table["prefetch"] != 0, work.blocks * right, 0.0)
    asked = asked / right_home.line_bytes / machine.element_loads
    exposed = from_right * right_exposed + from_left * left_exposed
    exposed = exposed + refill * machine.refill_exposed + asked
    if shape.biases:
        exposed = exposed - _bias_arrives(work, right_home, right_exposed)
    return from_right + from_left + refill, exposed


def _bias_arrives(work: Work, home: Level, exposed: Costs | float) -> Costs:
    """Cycles that need not be waited for since what the epilogue reads comes with its panel.

    Alone it is a piece of another stream for each panel, which nobody fetches ahead: all weights
    have passed through the caches since it was used. Costs do not count that stream otherwise.
    """
    shape, table = work.shape, work.table
    size = shape.biases * shape.element_bytes * table["tile_vectors"] * table["lanes"]
    lines = np.ceil(size / home.line_bytes) * home.line_bytes
    moved = shape.batch * work.blocks * work.panels * lines / home.read
    return np.where(table["bias_in_panels"] != 0, moved * (home.exposed - exposed), 0.0)


def _streamed_beside(work: Work, left: float, right: float) -> tuple[float, float]:
    """Bytes that pass through the last cache beside each operand of many products.

    Nothing of one product is used by the next: both operands and the result are one stream, which a
    cache holds as a whole or not at all.
    """
    shape = work.shape
    if shape.batch == 1 or shape.right_is_constant:
        return 0.0, 0.0
    result = float(shape.batch * shape.rows * shape.columns * shape.element_bytes)
    return right + result, left + result


def _whole_reads(work: Work, times: Costs) -> Costs:
    """How often the right operand comes from where it lives, counted in whole reads from there.

    A span of panels that a nearer level holds comes from there for all blocks of rows but one.
    """
    machine, spans = work.machine, work.table["spans"]
    if not spans.any():
        return times
    shape = work.shape
    right = shape.batch * shape.reduce * shape.columns * shape.right_element_bytes
    far, found = machine.home_of(right).read, times.astype(np.float64)
    for count in np.unique(spans[spans > 0]):
        near = machine.home_of(right / count).read
        again = 1 + np.maximum(0, times - 1) * far / near
        found = np.where(spans == count, again, found)
    return found


def _hidden(machine: MachineModel) -> float:
    """The part of what is not hidden that remains so if the program asks for it in time.

    Known of main memory; other levels are taken to gain as much.
    """
    return min(1.0, machine.fetched_exposed / max(machine.memory.exposed, 1e-9))


def _held(work: Work, number: int) -> Costs | float:
    """The part of a cache that a panel can use which is not packed: its rows lie far apart."""
    shape, table = work.shape, work.table
    if shape.right_is_constant or not shape.right_pitch_bytes:
        return 1.0
    size = shape.right_element_bytes * int(table["lanes"][0])
    most = int(table["tile_vectors"].max())
    runs = [work.machine.usable(number, shape.right_pitch_bytes, n * size) for n in range(most + 1)]
    return np.where(table["packs"] != 0, 1.0, np.array(runs)[table["tile_vectors"]])


def _rate(work: Work) -> Costs | float:
    """The part of its rate at which a far level delivers the right operand to single rows.

    They use each element once and wait for memory, which delivers several streams faster than one.
    A wide tile has more lines side by side than hardware follows; and of the last one, those come
    along that no column needs.
    """
    table, costs = work.table, work.machine.contractions
    single = table["tile_rows"] == 1
    if not single.any():
        return 1.0
    width = table["tile_vectors"] * table["lanes"]
    lines = width * work.shape.right_element_bytes / work.machine.level(1).line_bytes
    rate = 1 - (1 - costs.one_stream) / table["streams"]
    rate = rate * np.minimum(1.0, costs.followed_lines / lines)
    return np.where(single, rate * work.columns / (work.panels * width), 1.0)


def _groups_apart(work: Work, line: int, near: float, row_tile: Costs) -> Costs:
    """How often the lines come that groups of channels share, if one group follows the other.

    Data that stay in the second cache come once; so do the rows of a block with all groups in turn.
    """
    shape, table = work.shape, work.table
    often = 1 + line / shape.group_bytes  # hardware brings the line beside, too
    rows = np.where(table["order"] == BLOCKS_FIRST, table["row_tiles_per_block"], work.tiles)
    return np.where(shape.batch * rows * row_tile <= near, 1.0, often)
