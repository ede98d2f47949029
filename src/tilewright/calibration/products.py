"""Products of matrices that differ in one thing: what that costs is the difference of their times.

* the steps of a register tile: what is left without them is overhead;
* rows that share sets of the first cache, or do not;
* an operand that streams from a level of memory, or stays in the first cache: what arithmetic does
  not hide of the stream;
* partial sums that go to memory and come back, or stay in registers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from itertools import cycle, islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tilewright.build import build
from tilewright.calibration.measure import TURNS, Probe
from tilewright.calibration.streams import Memory, rotating
from tilewright.runtime import Kernel
from tilewright.runtime.arrays import PackedArray
from tilewright.schedule.draft import draft
from tilewright.schedule.recipes.contraction.space import ContractionPoint
from tilewright.target import Target
from tilewright.tensor.library.contraction import matmul

__all__ = ["CONFLICT_FREE", "LONG", "SHORT", "TILE", "conflict_rows", "products"]
__all__ += ["fetched_bytes", "panel_tile", "refilled", "streamed", "updated"]

TILE: Final = (4, 2)
SHORT, LONG = 16, 64
"""Steps of the reduction of two products, which differ in nothing else: the rest is overhead."""

CONFLICT_FREE: Final = 64
"""Bytes that put the rows of a product into other sets of the first cache."""

_FEW, _MANY = 8, 512
"""Register tiles of a product: as few as stay near, and as many as make a call cheap."""

_REFILLED: Final = 6
"""Register tiles, one below another."""
_FETCHED_STEPS: Final = 512
_PANELS: Final = 8
"""That follow each other in a stream."""

Array = NDArray[Any]


def products(target: Target, memory: Memory) -> Iterator[tuple[str, Probe]]:
    """All probes that are products; a unit is a register tile, or a call."""
    first = target.cache(1)
    way = first.size_bytes // first.ways
    rows = conflict_rows(target)
    for name, pitch in (("shared sets", way), ("own sets", way + CONFLICT_FREE)):
        yield name, _tiles(target, (rows, 1), pitch // 4, _FEW)
    for name, steps in (("short tiles", SHORT), ("long tiles", LONG)):
        yield name, _tiles(target, TILE, steps, _MANY)
    yield from _streams(target, memory)
    yield from _refills(target)
    yield from _fetches(target)
    yield from _updates(target)


def conflict_rows(target: Target) -> int:
    """Rows of the product whose rows share a set: well beyond the ways, as registers allow."""
    return min(target.vector_registers - 2, 2 * target.cache(1).ways + 4)


def panel_tile(target: Target) -> tuple[int, int]:
    """Rows and vectors of a register tile that does much with what it reads."""
    vectors = 2
    return min(12, (target.vector_registers - vectors - 1) // vectors), vectors


def _kernel(
    target: Target,
    shape: tuple[int, int, int],
    tile: tuple[int, int],
    block: int = 1,
    cut: int = 0,
    right: Array | None = None,
    *,
    packed: bool = False,
) -> Kernel:
    """A product by given tiles, blocks of so many of them, and cuts of the reduction.

    Its right operand is as it is, or constant, or packed by whoever calls.
    """
    program = matmul(*shape)
    point = ContractionPoint(
        tile_rows=tile[0],
        tile_vectors=tile[1],
        lanes=target.lanes(4),
        row_tiles_per_block=block,
        reduce_per_block=cut or shape[2],
        parallel=0,
    )
    constants = {} if right is None else {"B": right}
    trace = draft(program, target, 1, ["B"] if packed else [*constants], point).trace
    return build(program, target, 1, trace, constants)


def _called(kernel: Kernel, *arrays: Array, units: float = 1) -> Probe:
    """A kernel with the same arrays again and again."""

    def run(times: int) -> None:
        for _ in range(times):
            kernel(*arrays)

    return Probe(run, units)


def _tiles(target: Target, tile: tuple[int, int], reduce: int, tiles: int) -> Probe:
    """A product of some register tiles, in two panels; a unit is one of them."""
    rows, columns = tiles * tile[0], 2 * tile[1] * target.lanes(4)
    right = np.zeros((reduce, columns), np.float32)
    kernel = _kernel(target, (rows, columns, reduce), tile, tiles, right=right)
    left, result = np.ones((rows, reduce), np.float32), np.empty((rows, columns), np.float32)
    return _called(kernel, left, result, units=2 * tiles)


def streamed(target: Target) -> tuple[int, int, int]:
    """Rows, columns and steps of a product of one tile that the first cache holds."""
    rows, vectors = panel_tile(target)
    columns = vectors * target.lanes(4)
    steps = 3 * target.cache(1).size_bytes // 4 // (4 * (columns + rows))
    return rows, columns, max(16, steps // 16 * 16)


def _streams(target: Target, memory: Memory) -> Iterator[tuple[str, Probe]]:
    """Tiles whose right operand comes from each level of memory; a unit is a panel of it.

    One panel at a time from the two nearest levels, and several that follow each other from those
    beyond: where a stream begins, nothing is ahead of it yet.
    """
    rows, columns, steps = streamed(target)
    left = np.ones((rows, steps), np.float32)
    size, second = 4 * columns * steps, target.cache(2).share_bytes
    kernel = _kernel(target, (rows, columns, steps), panel_tile(target))
    result = np.empty((rows, columns), np.float32)
    near = _cut(memory.near(max(size, second // 2)), (steps, columns))
    for level, panels in (("L1", near[:1]), ("L2", near)):
        own = Memory(0).pieces(size, panels)
        yield f"panel from {level}", _between(kernel, left, own, result, 1)
    wide = _PANELS * columns
    kernel = _kernel(target, (rows, wide, steps), panel_tile(target), packed=True)
    result = np.empty((rows, wide), np.float32)
    stored = kernel.pack("B", np.zeros((steps, wide), np.float32))
    packs, far = (
        [PackedArray(block, stored.packing) for block in _cut(room, stored.array.shape)]
        for room in (memory.near(4 * second), memory.bytes)
    )
    size *= _PANELS
    sources = {"L2": Memory(0).pieces(size, packs[:1])}
    if len(target.caches) > 2:
        sources["L3"] = Memory(0).pieces(size, packs)
    sources["DRAM"] = memory.pieces(size, far)
    for level, source in sources.items():
        yield f"panels from {level}", _between(kernel, left, source, result, _PANELS)


def _cut(memory: NDArray[np.uint8], shape: tuple[int, ...]) -> list[Array]:
    """Arrays of f32 of this shape, one after another in some memory."""
    size = 4 * math.prod(shape)
    whole = memory[: len(memory) // size * size]
    return list(whole.view(np.float32).reshape(-1, *shape))


def _between(
    kernel: Kernel, left: Array, panels: Iterator[Any], result: Array, count: int
) -> Probe:
    """A kernel with so many of the next panels at a time."""

    def run(times: int) -> None:
        for panel in islice(panels, times):
            kernel(left, panel, result)

    return Probe(run, count, turns=2 * TURNS)  # what must come back into a cache takes a few turns


def refilled(target: Target) -> tuple[int, int, int]:
    """Rows, columns and steps of a product of some narrow tiles that the first cache holds."""
    rows, columns = _REFILLED * panel_tile(target)[0], target.lanes(4)
    steps = 5 * target.cache(1).size_bytes // 8 // (4 * (columns + rows))
    return rows, columns, max(16, steps // 16 * 16)


def _refills(target: Target) -> Iterator[tuple[str, Probe]]:
    """Tiles whose rows come from the second cache, or from the first; a unit is a call.

    They are narrow, so that what their rows take is a good part of the time.
    """
    shape = rows, columns, steps = refilled(target)
    kernel = _kernel(target, shape, (panel_tile(target)[0], 1), _REFILLED)
    right, result = np.ones((steps, columns), np.float32), np.empty((rows, columns), np.float32)
    many = max(2, target.cache(2).share_bytes // 4 // (4 * rows * steps))
    blocks = list(np.ones((many, rows, steps), np.float32))
    for level, used in (("L1", blocks[:1]), ("L2", blocks)):
        run = partial(rotating, kernel, cycle(used), (right, result))
        yield f"rows from {level}", Probe(run, 1, turns=2 * TURNS)


def fetched_bytes(target: Target) -> dict[str, int]:
    """Sizes of two packed operands: one that the second cache holds, and one that it does not."""
    second = target.cache(2).share_bytes
    return {"near": second // 4, "far": 4 * second}


def _fetches(target: Target) -> Iterator[tuple[str, Probe]]:
    """Blocks of tiles that ask for the next panel in time; a unit is a byte of the panels."""
    (rows, vectors), steps = panel_tile(target), _FETCHED_STEPS
    for where, size in fetched_bytes(target).items():
        width = vectors * target.lanes(4)
        columns = max(1, size // (4 * steps * width)) * width
        right = np.zeros((steps, columns), np.float32)
        kernel = _kernel(target, (2 * rows, columns, steps), (rows, vectors), 2, right=right)
        left = np.ones((2 * rows, steps), np.float32)
        result = np.empty((2 * rows, columns), np.float32)
        yield f"fetched {where}", _called(kernel, left, result, units=right.nbytes)


def updated(target: Target) -> tuple[int, int, int]:
    """Rows and columns of a result that the second cache does not hold, and its register tiles."""
    (rows, vectors), columns = panel_tile(target), 1024
    many = -(-2 * target.cache(2).share_bytes // (4 * columns * rows))
    width = vectors * target.lanes(4)
    return many * rows, columns, many * -(-columns // width)


def _updates(target: Target) -> Iterator[tuple[str, Probe]]:
    """Sums that go to memory once, or once more after half of the steps; a unit is a call."""
    rows, columns, _ = updated(target)
    steps, tile = 16, panel_tile(target)
    left, result = np.ones((rows, steps), np.float32), np.empty((rows, columns), np.float32)
    right = np.zeros((steps, columns), np.float32)
    for name, cut in (("sums once", steps), ("sums twice", steps // 2)):
        block = rows // tile[0]
        kernel = _kernel(target, (rows, columns, steps), tile, block, cut, right)
        yield name, _called(kernel, left, result)
