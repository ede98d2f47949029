"""Parameters of the contraction recipe from an analytic model of registers, caches and cores.

Everything is counted in cycles of one core. A micro tile of `rows` × `vectors` keeps its sums in
registers while it walks the reduction; its cost per step is the greatest of what the multiply-add
ports, their latency and the load ports need. Around it, blocks are chosen so that what is used
again is still in the cache that can feed the tile. No measurement is needed; where the machine has
been calibrated, the measured bandwidths replace the default ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from tilewright.target import Target

__all__ = ["ContractionPlan", "ContractionShape", "plan_contraction"]


@dataclass(frozen=True)
class ContractionShape:
    """What the model needs to know: extents, element size, and which operands may be packed."""

    batch: int
    rows: int
    columns: int
    reduce: int
    element_bytes: int
    right_is_constant: bool
    threads: int


@dataclass(frozen=True)
class ContractionPlan:
    """The recipe's parameters: micro tile, and how many of its kind make a cache block."""

    tile_rows: int
    tile_vectors: int
    lanes: int
    row_tiles_per_block: int
    reduce_per_block: int
    cycles: float

    @property
    def tile_columns(self) -> int:
        """Width of the micro tile in elements."""
        return self.tile_vectors * self.lanes


# Bytes per cycle that one core draws from each level when it has not been measured.
_DEFAULT_BYTES_PER_CYCLE = {"L1": 64.0, "L2": 24.0, "L3": 12.0, "DRAM": 6.0}

# Cycles to start and leave the reduction loop of one tile (mispredicted exit, address set-up).
_TILE_OVERHEAD = 24.0

# The part of streaming time that prefetching does not hide behind arithmetic.
_EXPOSED = {"L1": 0.0, "L2": 0.1, "L3": 0.2, "DRAM": 0.5}

# Among plans that wait for memory alike, the one with less arithmetic is better.
_PREFER_IDLE = 0.02

# How much slower partial sums are added to memory than a stream is read: short rows, far apart.
_SCATTERED = 3.0


@lru_cache(maxsize=4096)
def plan_contraction(shape: ContractionShape, target: Target) -> ContractionPlan:
    """The plan with the fewest predicted cycles."""
    lanes = max(1, target.lanes(shape.element_bytes))
    best: ContractionPlan | None = None
    for rows, vectors in _tiles(shape, target, lanes):
        compute = _compute_cycles(shape, target, rows, vectors, lanes)
        if best is not None and compute >= best.cycles:
            continue  # no blocking makes up for slow arithmetic
        for reduce_block in _reduce_blocks(shape.reduce):
            row_tiles, traffic = _blocking(shape, target, rows, vectors * lanes, reduce_block)
            extra = _revisit_cycles(shape, target, rows, vectors, lanes, reduce_block)
            exposed = max(traffic.total - compute, traffic.exposed)
            cycles = compute + extra + exposed + _PREFER_IDLE * compute
            if best is None or cycles < best.cycles:
                best = ContractionPlan(rows, vectors, lanes, row_tiles, reduce_block, cycles)
    assert best is not None
    return best


def _tiles(shape: ContractionShape, target: Target, lanes: int) -> list[tuple[int, int]]:
    """Micro tiles that fit the register file, with at least one register to feed them."""
    registers = target.vector_registers
    widest = math.ceil(shape.columns / lanes)
    found = []
    for vectors in range(1, min(widest, registers - 2) + 1):
        for rows in range(1, min(shape.rows, registers) + 1):
            # With one row each vector of the right operand is used once, straight from memory.
            feeding = 2 if rows == 1 else vectors + 1
            if rows * vectors + feeding <= registers:
                found.append((rows, vectors))
    return found or [(1, 1)]


def _step_cycles(target: Target, rows: int, vectors: int) -> float:
    """Cycles of one step of the reduction in a micro tile."""
    arithmetic = rows * vectors / target.fma_per_cycle
    loads = (rows + vectors) / target.core.load_ports
    return max(arithmetic, float(target.core.fma_latency), loads)


def _even(extent: int, largest: int) -> list[tuple[int, int]]:
    """(size, count) of the fewest tiles, as equal as possible."""
    tiles = math.ceil(extent / largest)
    small, larger = divmod(extent, tiles)
    return [(s, n) for s, n in ((small + 1, larger), (small, tiles - larger)) if n and s]


def _compute_cycles(
    shape: ContractionShape, target: Target, rows: int, vectors: int, lanes: int
) -> float:
    """Arithmetic of the whole contraction on the busiest thread."""
    total_vectors = math.ceil(shape.columns / lanes)
    panels = [(vectors, total_vectors // vectors), (total_vectors % vectors, 1)]
    total, tiles = 0.0, 0
    for size, count in _even(shape.rows, rows):
        for width, many in panels:
            if width and many:
                per_tile = shape.reduce * _step_cycles(target, size, width)
                store = size * width / target.core.store_ports
                total += count * many * (per_tile + store + _TILE_OVERHEAD)
                tiles += count * many
    shares = shape.batch * tiles
    busiest = math.ceil(shares / shape.threads) / shares
    return shape.batch * total * busiest


def _reduce_blocks(extent: int) -> list[int]:
    """Lengths to try for a block of the reduction, all of it first; each divides the whole."""
    pieces = range(1, max(1, extent // 192) + 1)
    return [extent // p for p in pieces if extent % p == 0]


def _bytes_per_cycle(target: Target, level: str) -> float:
    if target.measured is None:
        return _DEFAULT_BYTES_PER_CYCLE[level]
    rate = target.measured.level(level).read.one
    return rate / max(target.frequency_ghz, 0.5)


def _home(target: Target, size_bytes: float) -> str:
    """The fastest level that holds this much; of a shared one a core counts on its share."""
    for level in (1, 2, 3):
        if size_bytes <= 0.5 * target.cache(level).share_bytes:
            return f"L{level}"
    return "DRAM"


@dataclass(frozen=True)
class _Traffic:
    """Cycles of streaming, and the part of them that arithmetic does not hide."""

    total: float
    exposed: float


def _blocking(
    shape: ContractionShape, target: Target, rows: int, columns: int, reduce_block: int
) -> tuple[int, _Traffic]:
    """Row tiles per block, and the traffic of both operands from where they live."""
    size = shape.element_bytes
    panel = reduce_block * columns * size
    cache = target.cache(2).share_bytes
    tiles = math.ceil(shape.rows / rows)
    block = max(1, min(tiles, int((cache / 2 - panel) / (rows * reduce_block * size))))
    if shape.rows * reduce_block * size + panel <= 0.9 * cache:
        block = tiles  # one pass over the right operand is worth a tight fit
    blocks = math.ceil(tiles / block)
    block = math.ceil(tiles / blocks)
    right = shape.reduce * shape.columns * size
    left = shape.rows * shape.reduce * size
    total = exposed = 0.0
    for amount, passes in ((right, blocks), (left, 1)):
        home = _home(target, amount * shape.batch)
        cycles = passes * shape.batch * amount / _bytes_per_cycle(target, home) / shape.threads
        total, exposed = total + cycles, exposed + cycles * _EXPOSED[home]
    return block, _Traffic(total, exposed)


def _revisit_cycles(
    shape: ContractionShape, target: Target, rows: int, vectors: int, lanes: int, reduce_block: int
) -> float:
    """What it costs to add partial sums to memory once for each further block of the reduction."""
    visits = math.ceil(shape.reduce / reduce_block) - 1
    if not visits:
        return 0.0
    result = shape.rows * shape.columns * shape.element_bytes
    per_visit = 2 * result * _SCATTERED / _bytes_per_cycle(target, _home(target, result))
    tiles = math.ceil(shape.rows / rows) * math.ceil(shape.columns / (vectors * lanes))
    return shape.batch * visits * (per_visit + tiles * _TILE_OVERHEAD) / shape.threads
