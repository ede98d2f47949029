"""Parameters of the contraction recipe from an analytic model of registers, caches and cores.

Everything is counted in cycles of one core. A micro tile of `rows` × `vectors` keeps its sums in
registers while it walks the reduction; its cost per step is the greatest of what the multiply-add
ports, their latency and the load ports need. Around it, blocks are chosen so that what is used
again is still in the cache that can feed the tile. No measurement is needed; where the machine has
been calibrated, the measured bandwidths replace the default ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from tilewright.target import Target

__all__ = [
    "ContractionPlan",
    "ContractionShape",
    "bytes_per_cycle",
    "compute_cycles",
    "home_of",
    "plan_contraction",
    "plans",
]


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
    density: float = 1.0
    """Elements of the left operand by rows and steps: windows that overlap share them."""


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

# Numbers of blocks of a reduction that are tried; one of billions of elements has too many.
_MOST_PIECES = 1 << 14

# Cycles to start and leave the reduction loop of one tile (mispredicted exit, address set-up).
_TILE_OVERHEAD = 24.0

# The part of streaming time that prefetching does not hide behind arithmetic.
_EXPOSED = {"L1": 0.0, "L2": 0.05, "L3": 0.12, "DRAM": 0.5}

# The same for panels that are fetched while the one before is in use.
_FETCHED_EXPOSED = 0.1

# The same for what every tile reads again from the second level: long streams, soon recognised.
_REFILL_EXPOSED = 0.03

# How much of the second level operands may fill: code and results live there too, and often another
# thread of the same core does.
_SECOND_LEVEL_SHARE = 0.7

# Among plans that wait for memory alike, the one with less arithmetic is better.
_PREFER_IDLE = 0.02

# How much slower partial sums are added to memory than a stream is read: short rows, far apart.
_SCATTERED = 6.0


@lru_cache(maxsize=4096)
def plan_contraction(shape: ContractionShape, target: Target) -> ContractionPlan:
    """The plan with the fewest predicted cycles."""
    best: ContractionPlan | None = None
    for rows, vectors, compute in _priced_tiles(shape, target):
        if best is not None and compute >= best.cycles:
            continue  # no blocking makes up for slow arithmetic
        for plan in _blocked_plans(shape, target, rows, vectors, compute):
            if best is None or plan.cycles < best.cycles:
                best = plan
    assert best is not None
    return best


def plans(shape: ContractionShape, target: Target) -> Iterator[ContractionPlan]:
    """All plans that the recipe can follow, each with its predicted cycles: what is searched."""
    for rows, vectors, compute in _priced_tiles(shape, target):
        yield from _blocked_plans(shape, target, rows, vectors, compute)


def _priced_tiles(shape: ContractionShape, target: Target) -> Iterator[tuple[int, int, float]]:
    """Micro tiles with the cycles of their arithmetic."""
    lanes = max(1, target.lanes(shape.element_bytes))
    for rows, vectors in _tiles(shape, target, lanes):
        yield rows, vectors, compute_cycles(shape, target, rows, vectors, lanes)


def _blocked_plans(
    shape: ContractionShape, target: Target, rows: int, vectors: int, compute: float
) -> Iterator[ContractionPlan]:
    """The plans of one micro tile."""
    lanes = max(1, target.lanes(shape.element_bytes))
    for reduce_block in _reduce_blocks(shape.reduce):
        row_tiles, traffic = _blocking(shape, target, rows, vectors * lanes, reduce_block)
        extra = _revisit_cycles(shape, target, rows, vectors, lanes, reduce_block)
        exposed = max(traffic.total - compute, traffic.exposed)
        cycles = compute + extra + exposed + _PREFER_IDLE * compute
        yield ContractionPlan(rows, vectors, lanes, row_tiles, reduce_block, cycles)


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


def compute_cycles(
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
    pieces = range(1, min(max(1, extent // 192), _MOST_PIECES) + 1)
    return [extent // p for p in pieces if extent % p == 0]


def bytes_per_cycle(target: Target, level: str) -> float:
    """What one core draws from a level of memory."""
    if target.measured is None:
        return _DEFAULT_BYTES_PER_CYCLE[level]
    rate = target.measured.level(level).read.one
    return rate / max(target.frequency_ghz, 0.5)


def home_of(target: Target, size_bytes: float) -> str:
    """The fastest level that holds this much; of a shared one a core counts on its share."""
    for level in (1, 2, 3):
        if size_bytes <= 0.5 * target.cache(level).share_bytes:
            return f"L{level}"
    return "DRAM"


@dataclass(frozen=True)
class _Traffic:
    """Cycles of streaming, and the part of them that arithmetic does not hide."""

    total: float = 0.0
    exposed: float = 0.0

    def plus(self, cycles: float, exposed: float) -> _Traffic:
        return _Traffic(self.total + cycles, self.exposed + cycles * exposed)


def _blocking(
    shape: ContractionShape, target: Target, rows: int, columns: int, reduce_block: int
) -> tuple[int, _Traffic]:
    """Row tiles per block, and the traffic of both operands from where they live."""
    tiles = math.ceil(shape.rows / rows)
    panel = reduce_block * columns * shape.element_bytes
    row_tile = rows * reduce_block * shape.element_bytes * shape.density
    # While one panel is in use, the next one arrives.
    room = _SECOND_LEVEL_SHARE * target.cache(2).share_bytes - 2 * panel
    fitting = max(1, min(tiles, int(room / row_tile)))
    choices = []
    for largest in {fitting, tiles}:
        block = math.ceil(tiles / math.ceil(tiles / largest))
        traffic = _traffic(
            shape, target, rows, columns, reduce_block, block, left_stays=block <= fitting
        )
        choices.append((block, traffic))
    return min(choices, key=lambda choice: choice[1].exposed)


def _traffic(
    shape: ContractionShape,
    target: Target,
    rows: int,
    columns: int,
    reduce_block: int,
    block: int,
    *,
    left_stays: bool,
) -> _Traffic:
    """The streams of both operands if `block` row tiles use a panel before the next one."""
    size, threads = shape.element_bytes, shape.threads
    tiles = math.ceil(shape.rows / rows)
    panels = math.ceil(shape.columns / columns)
    right = shape.batch * shape.reduce * shape.columns * size
    left = shape.batch * shape.rows * shape.reduce * size * shape.density
    right_home, left_home = home_of(target, right), home_of(target, left)
    exposed = _EXPOSED[right_home]
    if shape.right_is_constant and block > 1:  # the recipe fetches the next panel in time
        exposed = min(exposed, _FETCHED_EXPOSED)
    passes = math.ceil(tiles / block)
    cycles = passes * right / bytes_per_cycle(target, right_home) / threads
    result = _Traffic().plus(cycles, exposed)
    cycles = (1 if left_stays else panels) * left / bytes_per_cycle(target, left_home) / threads
    result = result.plus(cycles, _EXPOSED[left_home])
    # What every tile draws from the second level: its rows, and the panel if the first is small.
    refill = panels * left
    if tiles > 1 and reduce_block * columns * size > 0.75 * target.cache(1).share_bytes:
        refill += tiles * right
    return result.plus(refill / bytes_per_cycle(target, "L2") / threads, _REFILL_EXPOSED)


def _revisit_cycles(
    shape: ContractionShape, target: Target, rows: int, vectors: int, lanes: int, reduce_block: int
) -> float:
    """What it costs to add partial sums to memory once for each further block of the reduction."""
    visits = math.ceil(shape.reduce / reduce_block) - 1
    if not visits:
        return 0.0
    result = shape.rows * shape.columns * shape.element_bytes
    per_visit = 2 * result * _SCATTERED / bytes_per_cycle(target, home_of(target, result))
    tiles = math.ceil(shape.rows / rows) * math.ceil(shape.columns / (vectors * lanes))
    per_tile = _TILE_OVERHEAD + 2 * rows * vectors
    return shape.batch * visits * (per_visit + tiles * per_tile) / shape.threads
