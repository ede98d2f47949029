"""Predicted cycles of the attention recipe, for a whole table of points at once.

Everything is counted in cycles of one core. A tile of queries costs, for each tile of keys, what
its two products and the power between them need; and once, what it takes to copy the queries, to
store the result and to start. Register tiles compete as in any product. What a tile keeps between
its stages is in the first cache, or is read again from the second; keys and values stream by.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

from tilewright.schedule.recipes.attention.shape import AttentionShape
from tilewright.schedule.recipes.attention.space import BATCH, AttentionPoint
from tilewright.schedule.recipes.table import Column, Costs, Table
from tilewright.target import MachineModel

__all__ = ["attention_cycles"]

# What a symbolic number is taken for; of queries and keys, each of these counts alike.
_TYPICAL_LENGTHS = (64, 100, 128, 197, 256, 384, 512)
_TYPICAL_BATCH = 12

Number = Column | Costs | int | float
Priced = Callable[["_Known"], Costs]


def attention_cycles(
    shape: AttentionShape, machine: MachineModel, table: Table[AttentionPoint]
) -> Costs:
    """Cycles until the last thread is done, for every row; the mean of several lengths."""
    few = table["heads"] > 0
    found = np.zeros(len(table))
    lengths = _lengths(shape)
    for rows, kind in ((few, _few_queries), (~few, _tiles_of_queries)):
        columns = {name: column[rows] for name, column in table.columns.items()}
        if rows.any():
            cycles = kind(shape, machine, Table(AttentionPoint, columns))
            found[rows] = sum(cycles(length) / length.work for length in lengths)
    return found * (sum(length.work for length in lengths) / len(lengths))


@dataclass(frozen=True)
class _Known(AttentionShape):
    """A shape whose numbers are all known."""

    batch: int
    queries: int
    keys: int

    @property
    def heads(self) -> int:
        """Of all batches."""
        return max(1, self.batch)

    @property
    def work(self) -> int:
        """Logits of all heads: lengths count alike by what each of these costs."""
        return self.heads * self.queries * self.keys


def _lengths(shape: AttentionShape) -> list[_Known]:
    """The shape with typical numbers for symbolic ones; queries and keys are then alike."""
    is_known = shape.queries is not None and shape.keys is not None
    sizes = [0] if is_known else _TYPICAL_LENGTHS
    batch = _TYPICAL_BATCH if shape.batch is None else shape.batch
    given = {f.name: getattr(shape, f.name) for f in fields(shape)}
    return [
        _Known(**given | {"batch": batch, "queries": shape.queries or n, "keys": shape.keys or n})
        for n in sizes
    ]


def _few_queries(
    shape: AttentionShape, machine: MachineModel, table: Table[AttentionPoint]
) -> Priced:
    """Queries one by one: all heads that share keys at once."""
    costs, lanes, rows = machine.attention, table["lanes"], table["rows"]
    features = np.ceil(shape.features / lanes)
    # A score is a vector for each part of the features, added up and folded by halves of its lanes.
    halves = np.log2(lanes)
    reads = (features + rows * features) / machine.vector_loads
    work = rows * ((2 * features - 1) / machine.fma_per_cycle + halves * costs.fold_cycles)
    waits = (features + halves) * machine.fma_latency / table["keys"]
    score = np.maximum(np.maximum(work, reads), waits) + costs.loop_cycles / table["keys"]
    columns = table["row_vectors"]
    whole, rest = np.divmod(-(-shape.value_features // lanes), columns)
    sums = whole * _step(machine, rows, columns) + (rest > 0) * _step(machine, rows, rest)

    def cycles(length: _Known) -> Costs:
        keys, heads, batch = length.keys, table["heads"], length.heads
        compute = keys * (score + sums) + rows * _row_of_logits(machine, keys, table)
        compute += costs.block_cycles + (whole + (rest > 0)) * costs.loop_cycles
        size = keys * (shape.features + shape.value_features) * shape.element_bytes
        home = machine.home_of(size * batch / shape.group)
        # The first of the heads that share keys brings them near, the others find them there.
        again = 1 - heads / shape.group
        stream = size * ((1 - again) / home.read + again / machine.home_of(size).read)
        each = compute + np.maximum(stream - compute, home.exposed * stream)
        return _shared(length, machine, table, batch / heads, batch / heads * each)

    return cycles


def _row_of_logits(machine: MachineModel, keys: int, table: Table[AttentionPoint]) -> Costs:
    """Greatest logit, powers and their sum of one query."""
    costs, lanes = machine.attention, table["lanes"]
    vectors, folded = table["vectors"], table["folded"]
    powers = np.ceil(keys / (lanes * vectors)) * (vectors * costs.power_cycles + 1)
    turns = np.maximum(folded / machine.vector_loads, machine.fma_latency)
    ends = folded / machine.fma_per_cycle + np.log2(lanes) * machine.fma_latency
    return np.asarray(powers + 2 * (np.ceil(keys / (lanes * folded)) * turns + ends))


def _tiles_of_queries(
    shape: AttentionShape, machine: MachineModel, table: Table[AttentionPoint]
) -> Priced:
    """Tiles of queries with lanes along them, by blocks of keys or with all of them."""
    per_key_tile = _per_key_tile(shape, machine, table)

    def cycles(length: _Known) -> Costs:
        tiles = -(-length.queries // table["queries"])
        blocks = _blocks(length, table)
        visited = _key_tiles(length, table, blocks)
        each = _once(length, machine, table) + blocks * _per_block(length, machine, table)
        each += visited * (per_key_tile + table["keys"] * _stream(length, machine))
        copies = np.where(table["packs"] != 0, _copy_cycles(length, machine), 0.0)
        shares = length.heads * np.where(table["axis"] == BATCH, 1, tiles)
        every = length.heads * (tiles * each + copies)
        return _shared(length, machine, table, shares, every)

    return cycles


def _seen(shape: _Known, table: Table[AttentionPoint]) -> Costs:
    """Keys that a tile of queries must look at, on average."""
    if not shape.causal or shape.queries == 1:
        return np.full(len(table), float(shape.keys))
    return np.minimum(shape.keys, (shape.keys + table["queries"]) / 2)


def _blocks(shape: _Known, table: Table[AttentionPoint]) -> Costs:
    """Blocks of keys that a tile of queries works on."""
    seen = np.where(table["skips"] != 0, _seen(shape, table), shape.keys)
    return np.where(table["block"] > 0, np.ceil(seen / np.maximum(1, table["block"])), 0.0)


def _key_tiles(shape: _Known, table: Table[AttentionPoint], blocks: Costs) -> Costs:
    """Tiles of keys that a tile of queries works on: all of its blocks, or but those it needs."""
    keys = table["keys"]
    seen = np.where(table["block"] > 0, _seen(shape, table), shape.keys)
    is_all = (table["block"] > 0) & (table["skips"] == 0)
    return np.where(is_all, blocks * table["block"] / keys, np.ceil(seen / keys))


def _stream(shape: _Known, machine: MachineModel) -> float:
    """Cycles that a tile of queries waits for one key and its value."""
    size = (shape.features + shape.value_features) * shape.element_bytes
    home = machine.home_of(shape.keys * size)
    return size * max(home.exposed, machine.level(2).exposed) / home.read


def _per_key_tile(
    shape: AttentionShape, machine: MachineModel, table: Table[AttentionPoint]
) -> Costs:
    """Cycles of all queries of a tile with one tile of keys."""
    costs, keys = machine.attention, table["keys"]
    count, width = table["queries"] // table["lanes"], table["key_vectors"]
    whole, rest = np.divmod(count, width)
    packed = table["packs"] != 0
    conflicts = machine.conflicts(shape.pitch_bytes, keys)
    apart = np.where(packed, 0.0, conflicts)
    first = whole * (shape.features * (_step(machine, keys, width) + apart) + costs.loop_cycles)
    last = shape.features * (_step(machine, keys, rest) + apart) + costs.loop_cycles
    first = first + np.where(rest > 0, last, 0.0)
    powers = keys * count * costs.power_cycles
    size = (shape.features + shape.value_features) * shape.element_bytes
    lines = size / machine.levels[0].line_bytes
    scattered = keys * lines * costs.scattered_cycles * bool(shape.pitch_bytes)
    second = _second_product(shape, machine, table)
    return np.asarray(first + powers + second + np.where(packed, 0.0, scattered))


def _second_product(
    shape: AttentionShape, machine: MachineModel, table: Table[AttentionPoint]
) -> Costs:
    """Powers times values: register tiles of one or two heights, and one or two widths."""
    costs, queries = machine.attention, table["queries"]
    columns = table["row_vectors"]
    tiles = -(-queries // table["rows"])
    small, larger = np.divmod(queries, tiles)
    whole, rest = np.divmod(-(-shape.value_features // table["lanes"]), columns)
    total = np.zeros(len(table))
    for size, number in ((small + 1, larger), (small, tiles - larger)):
        for width, times in ((columns, whole), (rest, rest > 0)):
            step = _step(machine, size, width) + width * costs.far_cycles
            total += number * times * step
    return np.asarray(table["keys"] * total * np.where(larger > 0, costs.two_sizes, 1.0))


def _step(machine: MachineModel, rows: Column, vectors: Column) -> Costs:
    """Cycles of one step of a product in a register tile."""
    costs = machine.attention
    arithmetic = rows * vectors / machine.fma_per_cycle
    loads = rows / machine.element_loads + vectors / machine.vector_loads
    hidden = costs.latency_factor * machine.fma_latency
    busiest = np.maximum(np.maximum(arithmetic, hidden), loads)
    return np.asarray(busiest + costs.load_share * loads, np.float64)


def _once(shape: _Known, machine: MachineModel, table: Table[AttentionPoint]) -> Costs:
    """Starting a tile of queries; and what it keeps of all keys, if there are no blocks."""
    costs = machine.attention
    copies = table["queries"] * shape.features * costs.copy_cycles
    whole = _spilled(shape, machine, table, np.full(len(table), shape.keys))
    return np.asarray(costs.tile_cycles + copies + np.where(table["block"] == 0, whole, 0.0))


def _per_block(shape: _Known, machine: MachineModel, table: Table[AttentionPoint]) -> Costs:
    """Starting a block of keys, its sums on their way, and what it does not keep near.

    Sums of all blocks are kept until their weights are known, and read then.
    """
    block = np.maximum(1, table["block"])
    size = table["queries"] * shape.value_features * shape.element_bytes
    kept = size * np.ceil(shape.keys / block)
    home = np.array([level.read for level in map(machine.home_of, kept.tolist())])
    sums = 2 * size / home
    # Loops that end where a mask begins come in three parts each, and are longer and shorter.
    starts = machine.attention.block_cycles * (1 + table["skips"])
    return np.asarray(starts + sums + _spilled(shape, machine, table, block))


def _spilled(
    shape: AttentionShape, machine: MachineModel, table: Table[AttentionPoint], keys: Column
) -> Costs:
    """What it costs that logits, or these and their powers, do not fit into the first cache.

    They are folded twice, which hides nothing. Powers are made with arithmetic enough to hide most
    of it, and so is the second product.
    """
    near, room = machine.level(2), machine.level(1).size_bytes
    each = table["queries"] * keys * shape.element_bytes
    folds = np.where(each > room, 2 * each / near.read, 0.0)
    return folds + np.where(2 * each > room, 4 * each / near.read * near.exposed, 0.0)


def _copy_cycles(shape: _Known, machine: MachineModel) -> float:
    """Copying keys and values of a head, read and written."""
    size = shape.keys * (shape.features + shape.value_features) * shape.element_bytes
    return 2 * size / machine.home_of(2 * size).read


def _shared(
    shape: _Known,
    machine: MachineModel,
    table: Table[AttentionPoint],
    shares: Number,
    cycles: Costs,
) -> Costs:
    """Cycles of the busiest thread. Where heads alone are shared, many threads must find some."""
    parallel = table["parallel"] != 0
    threads = np.where(parallel, shape.threads, 1)
    busiest = np.ceil(shares / threads) / shares
    many, batch = shape.shared_by, shape.heads
    idle = math.ceil(batch / many) * many / batch
    uneven = np.where(parallel & (table["axis"] == BATCH), idle, 1.0)
    return np.asarray(cycles * busiest * uneven + parallel * machine.barrier_cycles)
