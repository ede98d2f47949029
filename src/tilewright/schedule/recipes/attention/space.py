"""The space of the attention recipe.

There are three forms. With `heads`, a few queries are worked on one by one, lanes along keys and
features. Else a tile of queries has lanes along them, and keys are worked on as a whole (`block` is
0) or in blocks. Register tiles of the two products are `keys` × `key_vectors` (along the queries)
and `rows` × `row_vectors` (along the features).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tilewright.schedule.recipes.attention.shape import AttentionShape
from tilewright.schedule.recipes.table import Column, Table, combinations
from tilewright.target import Target

__all__ = ["BATCH", "TILES", "AttentionPoint", "attention_space"]

BATCH, TILES = 0, 1
"""What threads share: heads of all batches, or also the tiles of queries in each of them."""

# Vectors of queries in a tile: every stage takes all of them in one statement, and more of them are
# more code than any register file gains from.
_MOST_VECTORS = 6

# Keys of a block, about: between these, costs hardly differ.
_BLOCKS = (64, 96, 128, 192, 256, 384, 512, 1024)

# Of about as many blocks that one is taken which leaves fewest keys over.
_ABOUT = 1.3
_MOST_COUNTS = 64

# Keys side by side, and vectors in a statement, where queries are worked on one by one.
_SIDE_BY_SIDE = (1, 2, 4, 8)
_VECTORS = (1, 2, 4)
_FOLDED = (4, 8, 16)


@dataclass(frozen=True)
class AttentionPoint:
    """Decisions of the recipe; see the module."""

    queries: int
    """Of a tile; without lanes along them, all there are."""
    keys: int
    key_vectors: int
    rows: int
    row_vectors: int
    lanes: int
    """Of a vector."""
    block: int
    """Keys of a block; 0 if they are worked on as a whole."""
    skips: int
    """Whether tiles of keys that are masked are left out, and those that fill up the last block."""
    packs: int
    """Whether keys and values of a head are copied first, for all its queries."""
    heads: int
    """Heads whose few queries are worked on together, without lanes along them; 0: many queries."""
    vectors: int
    """Of keys in a statement of the softmax of a few queries; 0 else."""
    folded: int
    """The same where they are folded: lanes are combined once for all of them."""
    axis: int
    """`BATCH` or `TILES`."""
    parallel: int

    @property
    def panel(self) -> int:
        """Queries of a register tile."""
        return self.key_vectors * self.lanes

    @property
    def columns(self) -> int:
        """Features of a register tile."""
        return self.row_vectors * self.lanes


def attention_space(shape: AttentionShape, target: Target) -> Table[AttentionPoint]:
    """All points for a shape."""
    tables = [_few_queries(shape, target), _tiles_of_queries(shape, target)]
    names = list(AttentionPoint.__dataclass_fields__)
    joined = {name: np.concatenate([t[name] for t in tables if t]) for name in names}
    return Table(AttentionPoint, joined)


Columns = dict[str, Column]


def _few_queries(shape: AttentionShape, target: Target) -> Columns:
    """Sums of all heads that share a key stay in registers together, if these are enough."""
    registers, vector = target.vector_registers, max(1, target.lanes(shape.element_bytes))
    queries, features = shape.queries, math.ceil(shape.value_features / vector)
    if queries is None or shape.batch == 0:
        return {}
    found = [
        (heads, columns, keys)
        for heads in range(1, shape.group + 1)
        if shape.group % heads == 0
        for columns in _widths(features, registers)
        if heads * queries * columns + columns + 1 <= registers
        for keys in _SIDE_BY_SIDE
        if keys * heads * queries <= registers
    ]
    if not found:
        return {}
    heads, columns, keys = np.array(found, np.int64).T
    shares = np.array([0, 1] if shape.threads > 1 else [0], np.int64)
    vectors, folded = np.array(_VECTORS), np.array(_FOLDED)
    at, vec, fold, share = combinations(heads, vectors, folded, shares)
    return _with_zeros(
        len(at),
        queries=np.full(len(at), queries, np.int64),
        keys=keys[at],
        key_vectors=np.ones(len(at), np.int64),
        rows=heads[at] * queries,
        row_vectors=columns[at],
        lanes=np.full(len(at), vector, np.int64),
        heads=heads[at],
        vectors=vectors[vec],
        folded=folded[fold],
        parallel=shares[share],
    )


def _tiles_of_queries(shape: AttentionShape, target: Target) -> Columns:
    """Every pair of register tiles, with every block of keys and every way to share the work."""
    registers, vector = target.vector_registers, max(1, target.lanes(shape.element_bytes))
    most = _MOST_VECTORS
    if shape.queries is not None:
        most = max(1, min(most, math.ceil(shape.queries / vector)))
    features = math.ceil(shape.value_features / vector)
    pairs = [
        (count * vector, *keys, *rows)
        for count in range(1, most + 1)
        for keys in _key_tiles(registers, count)
        for rows in _row_tiles(registers, count * vector, features)
    ]
    tiles = np.array(pairs, np.int64)
    keys_of, which = np.unique(tiles[:, 1], return_inverse=True)
    blocks = np.array([_blocks(shape.keys, int(keys)) for keys in keys_of], np.int64)
    ways = np.array(_ways(shape), np.int64)
    places = np.arange(blocks.shape[1])
    tile, place, skip, way = combinations(tiles, places, np.arange(2), ways)
    block = blocks[which[tile], place]
    axis, parallel, packs = ways[way].T
    columns = tiles[tile, 4] * vector
    is_whole = (shape.features % columns == 0) & (shape.value_features % columns == 0)
    # A block that is not there is -1; what is worked on as a whole has nothing to skip.
    keep = (block >= 0) & ((skip == 0) | (block > 0)) & ((packs == 0) | is_whole)
    if shape.keys is None:
        keep &= block > 0
    tile, block = tile[keep], block[keep]
    return _with_zeros(
        len(tile),
        lanes=np.full(len(tile), vector, np.int64),
        **{name: tiles[tile, k] for k, name in enumerate(_TILE)},
        block=block,
        skips=skip[keep],
        packs=packs[keep],
        axis=axis[keep],
        parallel=parallel[keep],
    )


_TILE = ("queries", "keys", "key_vectors", "rows", "row_vectors")


def _ways(shape: AttentionShape) -> list[tuple[int, int, int]]:
    """(axis, parallel, packs): copies for all queries of a head need a loop over heads alone."""
    heads = [BATCH] if shape.batch != 0 else []
    is_known = shape.keys is not None and shape.queries is not None
    copies = [0, 1] if shape.pitch_bytes and is_known else [0]
    shares = [0, 1] if shape.threads > 1 else [0]
    found = [(axis, share, pack) for axis in heads for share in shares for pack in copies]
    tiles = shares if not heads else shares[1:]
    return [*found, *((TILES, share, 0) for share in tiles)]


@lru_cache(maxsize=1024)
def _key_tiles(registers: int, count: int) -> tuple[tuple[int, int], ...]:
    """(keys, vectors of queries) of register tiles that fill the register file by half at least.

    Smaller ones read more for each multiplication, and leave no fewer keys over.
    """
    found = []
    for vectors in _widths(count, registers):
        most = (registers - vectors - 1) // vectors
        found += [(keys, vectors) for keys in range(max(1, most // 2), most + 1)]
    return tuple(found)


@lru_cache(maxsize=1024)
def _row_tiles(registers: int, queries: int, features: int) -> tuple[tuple[int, int], ...]:
    """(rows, vectors of features) of register tiles, the smallest of each number of tiles."""
    return tuple(
        (rows, columns)
        for columns in _widths(features, registers)
        for rows in _widths(queries, registers)
        if rows * columns + columns + 1 <= registers
    )


def _widths(extent: int, most: int) -> list[int]:
    """Sizes of parts as equal as possible, one for each number of parts."""
    sizes = {math.ceil(extent / parts) for parts in range(1, extent + 1)}
    return sorted((size for size in sizes if size <= most), reverse=True)


@lru_cache(maxsize=4096)
def _blocks(extent: int | None, keys: int) -> tuple[int, ...]:
    """Lengths of blocks of whole tiles of keys, 0 first; -1 takes the place of one more."""
    if extent is None:
        found = [max(1, block // keys) * keys for block in _BLOCKS]
    else:
        found = [_block_of(extent, keys, block) for block in _BLOCKS]
    unique = [0, *dict.fromkeys(found)]
    return (*unique, *[-1] * (len(_BLOCKS) + 1 - len(unique)))


def _block_of(extent: int, keys: int, about: int) -> int:
    """The length of blocks of at most about so many keys, such that few are left over."""
    tiles, most = math.ceil(extent / keys), max(1, about // keys)
    fewest = math.ceil(tiles / most)
    counts = range(fewest, min(int(_ABOUT * fewest), fewest + _MOST_COUNTS) + 1)
    blocks = min(counts, key=lambda n: (math.ceil(tiles / n) * n * keys - extent, n))
    return math.ceil(tiles / blocks) * keys


def _with_zeros(size: int, **columns: Column) -> Columns:
    zeros = np.zeros(size, np.int64)
    return {name: columns.get(name, zeros) for name in AttentionPoint.__dataclass_fields__}
