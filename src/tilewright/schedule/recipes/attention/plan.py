"""Parameters of the attention recipe from a model of registers, the first cache and cores.

Everything is counted in cycles of one core. A tile of queries costs, for each key, what its two
products and the power between them need; and once, what it takes to copy the queries, to store the
result and to start. Register tiles compete as in any product. A block of keys is as long as its
logits and powers fit into the first cache beside the keys and values that stream by.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from tilewright.schedule.recipes.attention.roles import Attention
from tilewright.schedule.recipes.context import PLANNED_THREADS, Context
from tilewright.target import Target
from tilewright.target.costs import AttentionCosts
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import walk

__all__ = ["AttentionPlan", "AttentionShape", "plan_attention", "plan_for"]


@dataclass(frozen=True)
class AttentionShape:
    """What the model needs to know; a symbolic number is None."""

    batch: int | None
    queries: int | None
    keys: int | None
    features: int
    value_features: int
    element_bytes: int
    causal: bool
    """Whether a condition on the indices of keys and queries hides logits."""
    threads: int
    group: int = 1
    """Heads of queries that share a head of keys."""
    scattered: bool = False
    """Whether the keys and values of a head do not lie one behind the other."""


@dataclass(frozen=True)
class AttentionPlan:
    """`queries` make a tile; register tiles are `keys` × `lanes` and `rows` × `columns`."""

    queries: int
    keys: int
    lanes: int
    rows: int
    columns: int
    block: int
    """Keys of a block; 0 if they are worked on as a whole."""
    skips: bool
    """Whether some tiles of keys need not be looked at."""
    heads: int = 0
    """Heads whose few queries are worked on together, without lanes along them; 0: many queries."""
    packs: bool = False
    """Whether keys and values of a head are copied first, for all its queries."""


# What a symbolic number of queries is taken to be: each of these counts alike.
_TYPICAL_QUERIES = (64, 100, 128, 197, 256, 384, 512)
_TYPICAL_KEYS = 384
_TYPICAL_BATCH = 12

# So many queries are worked on one by one.
_FEW_QUERIES = 3

# Vectors of queries in a tile.
_MOST_VECTORS = 5

# With so many tiles of queries it pays to copy scattered keys and values together first: rows that
# are a large power of two apart would share a few sets of the first cache.
_PACKED_TILES = 16

# Longer blocks of keys gain nothing.
_LONGEST_BLOCK = 384
_MOST_COUNTS = 4096
"""Numbers of blocks that are tried; longer rows of keys leave little over with any of them."""


def plan_attention(context: Context, attention: Attention) -> AttentionPlan:
    """The plan for one attention."""
    return plan_for(_shape_of(context, attention), context.target)


def _shape_of(context: Context, attention: Attention) -> AttentionShape:
    second, first = attention.second.block, attention.first
    extents = [tir.int_value(it.extent) for it in second.iters]
    batch: int | None = 1
    for extent in extents[: attention.batch]:
        batch = None if batch is None or extent is None else batch * extent
    logits = context.schedule.block(attention.logits)
    variables = {it.var for it in logits.iters[attention.batch :]}
    causal = any(
        isinstance(part, tir.Compare) and part.a in variables and not _has_load(part)
        for part in walk(logits.body)
    )
    return AttentionShape(
        batch=batch,
        queries=extents[attention.batch],
        keys=extents[-1],
        features=tir.int_value(first.block.iters[first.reduce[0]].extent) or 64,
        value_features=extents[-2] or 64,
        element_bytes=second.writes[0].buffer.dtype.size_bytes,
        causal=causal,
        threads=min(context.threads, PLANNED_THREADS),
        group=_group(attention),
        scattered=_are_scattered(attention),
    )


def _group(attention: Attention) -> int:
    """How many heads share a head of keys, which are indexed by `head // group`."""
    first = attention.first
    head = first.block.iters[attention.batch - 1] if attention.batch else None
    for index in first.right.indices:
        if isinstance(index, tir.FloorDiv) and head is not None and index.a is head.var:
            return tir.int_value(index.b) or 1
    return 1


def _are_scattered(attention: Attention) -> bool:
    """Do dimensions that count lie between the position of keys or values and their features?"""
    first, second = attention.first, attention.second
    pairs = (
        (first, attention.batch + 1, first.reduce[0]),
        (second, second.reduce[0], second.columns[-1]),
    )
    for product, position, feature in pairs:
        load, iters = product.right, product.block.iters
        dims = zip(load.indices, load.buffer.shape, strict=True)
        varying = [index for index, dim in dims if tir.int_value(dim) != 1]
        if varying[-2:] != [iters[position].var, iters[feature].var]:
            return True
    return False


def _has_load(expr: tir.Expr) -> bool:
    return any(isinstance(part, tir.Load) for part in walk(expr))


@lru_cache(maxsize=512)
def plan_for(shape: AttentionShape, target: Target) -> AttentionPlan:
    """The plan with the fewest predicted cycles."""
    vector = max(1, target.lanes(shape.element_bytes))
    if shape.queries is not None and shape.queries <= _FEW_QUERIES:
        return _few_queries(shape, target, vector)
    costs = target.machine.attention
    best: tuple[float, AttentionPlan] | None = None
    for count in range(1, _MOST_VECTORS + 1):
        queries = count * vector
        for keys, lanes, first in _key_tiles(target, count, shape.features):
            block, skips = _block(shape, target, queries, keys)
            features = math.ceil(shape.value_features / vector)
            rows, columns, second = _row_tile(target, queries, features)
            per_key = first + second + count * costs.power_cycles + _stream(shape, target)
            cycles = _total(shape, costs, queries, per_key, block, vector)
            if best is None or cycles < best[0]:
                plan = AttentionPlan(
                    *(queries, keys, lanes * vector, rows, columns * vector, block, skips),
                    packs=_packs(shape, queries, columns * vector),
                )
                best = cycles, plan
    assert best is not None
    return best[1]


def _few_queries(shape: AttentionShape, target: Target, vector: int) -> AttentionPlan:
    """Sums of all heads that share a key stay in registers together, if these are enough."""
    room = target.vector_registers - 4
    queries = shape.queries or 1
    heads = shape.group if shape.group * queries <= room else 1
    features = math.ceil(shape.value_features / vector)
    columns = max(1, min(features, room // (heads * queries)))
    return AttentionPlan(
        queries, 1, vector, heads * queries, columns * vector, 0, skips=False, heads=heads
    )


def _key_tiles(target: Target, count: int, features: int) -> Iterator[tuple[int, int, float]]:
    """(keys, vectors of queries) of register tiles, and cycles of one key with all queries."""
    registers, costs = target.vector_registers, target.machine.attention
    for keys in range(2, registers - 1):
        for vectors in range(1, count + 1):
            if keys * vectors + vectors + 1 <= registers:
                whole, rest = divmod(count, vectors)
                cycles = whole * (features * _step(target, keys, vectors) + costs.loop_cycles)
                if rest:
                    cycles += features * _step(target, keys, rest) + costs.loop_cycles
                yield keys, vectors, cycles / keys


def _row_tile(target: Target, queries: int, features: int) -> tuple[int, int, float]:
    """(rows, vectors of features) of the best register tile, and cycles of one key."""
    registers, costs = target.vector_registers, target.machine.attention
    found: list[tuple[float, int, int]] = []
    for columns in range(1, min(features, registers - 2) + 1):
        for rows in range(1, min(queries, registers) + 1):
            if rows * columns + columns + 1 > registers:
                break
            tiles = math.ceil(queries / rows)
            small, larger = divmod(queries, tiles)
            whole, rest = divmod(features, columns)
            cycles = 0.0
            for size, number in ((small + 1, larger), (small, tiles - larger)):
                for width, times in ((columns, whole), (rest, 1 if rest else 0)):
                    step = _step(target, size, width) + width * costs.far_cycles
                    cycles += number * times * step
            # Tiles of two sizes are two copies of the code.
            found.append((cycles * (costs.two_sizes if larger else 1.0), rows, columns))
    cycles, rows, columns = min(found)
    return rows, columns, cycles


def _step(target: Target, rows: int, vectors: int) -> float:
    """Cycles of one step of a product in a register tile."""
    machine, costs = target.machine, target.machine.attention
    arithmetic = rows * vectors / machine.fma_per_cycle
    loads = rows / machine.element_loads + vectors / machine.vector_loads
    hidden = costs.latency_factor * machine.fma_latency
    return max(arithmetic, hidden, loads) + costs.load_share * loads


def _block(shape: AttentionShape, target: Target, queries: int, keys: int) -> tuple[int, bool]:
    """Keys of a block, and whether tiles of them are skipped."""
    both = 2 * queries * shape.element_bytes
    room, costs = target.cache(1).share_bytes, target.machine.attention
    whole = costs.whole_share * room
    if shape.keys is not None and not shape.causal and both * shape.keys <= whole:
        return 0, False
    longest = max(keys, min(_LONGEST_BLOCK, int(costs.block_share * room / both)) // keys * keys)
    known = shape.keys
    if known is None:
        return longest, True
    tiles, most = math.ceil(known / keys), longest // keys
    fewest = math.ceil(tiles / most)
    # Of about as many blocks, those that leave no key over (then no index needs a limit), or else
    # as few as possible.
    counts = range(fewest, min(2 * fewest, fewest + _MOST_COUNTS) + 1)
    blocks = min(counts, key=lambda n: (math.ceil(tiles / n) * n * keys - known, n))
    return math.ceil(tiles / blocks) * keys, shape.causal


def _packs(shape: AttentionShape, queries: int, columns: int) -> bool:
    """Whether copies of keys and values pay; they need a known size and whole panels."""
    if not shape.scattered or shape.group > 1 or shape.keys is None or shape.queries is None:
        return False
    whole = shape.value_features % columns == 0 and shape.features % columns == 0
    return whole and shape.queries >= _PACKED_TILES * queries


def _stream(shape: AttentionShape, target: Target) -> float:
    """Cycles that a tile of queries waits for one key and its value."""
    size = (shape.features + shape.value_features) * shape.element_bytes
    costs = target.machine.attention
    far = (shape.keys or _TYPICAL_KEYS) * size > costs.near_share * target.cache(2).share_bytes
    return size / (costs.far_bytes if far else costs.near_bytes)


def _total(
    shape: AttentionShape,
    costs: AttentionCosts,
    queries: int,
    per_key: float,
    block: int,
    vector: int,
) -> float:
    """Cycles of the whole attention; those of several lengths where the length is not known."""
    lengths = _TYPICAL_QUERIES if shape.queries is None else (shape.queries,)
    keys = shape.keys or _TYPICAL_KEYS
    batch = shape.batch or _TYPICAL_BATCH
    total = 0.0
    for length in lengths:
        seen = keys / 2 + queries / 2 if shape.causal and length > 1 else keys
        cycles = seen * per_key + costs.tile_cycles + queries * shape.features * costs.copy_cycles
        if block:
            each = (
                costs.block_cycles + costs.store_vectors * queries * shape.value_features / vector
            )
            cycles += math.ceil(seen / block) * each
        tiles = batch * math.ceil(length / queries)
        shared = math.ceil(tiles / shape.threads)
        total += shared * cycles * shape.threads / (batch * length)
    return total
