"""The space and the costs of blocks of tiles: see `tile_blocks`.

What moves between the stages does so through the nearest cache that holds a block. In blocks, the
product of each element of a tile is one of few rows, whose weights come again for every block. The
choice of algorithms prices a convolution by the same table.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from tilewright.schedule.recipes.contraction.cycles import contraction_cycles
from tilewright.schedule.recipes.contraction.space import (
    ContractionPoint,
    ContractionShape,
    contraction_space,
)
from tilewright.schedule.recipes.table import Costs, Table
from tilewright.target import MachineModel, Target

__all__ = [
    "TileBlockPoint",
    "TileBlockShape",
    "tile_block_cycles",
    "tile_block_space",
    "transform_cycles",
]


@dataclass(frozen=True)
class TileBlockShape:
    """Tiles of an image, the product between their transforms, and what is stored between them."""

    lines: int
    columns: int
    """Tiles down and across."""
    outer: int
    """Times that there are as many: places of further dimensions."""
    product: ContractionShape
    """All rows at once."""
    data_bytes: int
    """What the first transform makes."""
    shared_by: int
    """Threads that may come to share the blocks, and should then be about equally busy."""
    loops: ContractionPoint | None = None
    """A point for the product that was chosen elsewhere."""

    @property
    def product_bytes(self) -> int:
        """What the product makes."""
        shape = self.product
        return shape.batch * shape.rows * shape.columns * shape.element_bytes


@dataclass(frozen=True)
class TileBlockPoint(ContractionPoint):
    """Tiles of a block, all of them if there are no blocks; the rest is the point of the product.

    `parallel` says whether threads share the blocks, or the product if there are none.
    """

    down: int = 0
    across: int = 0

    @property
    def product(self) -> ContractionPoint:
        """The point of the product inside."""
        return ContractionPoint(**{f.name: getattr(self, f.name) for f in fields(ContractionPoint)})


def tile_block_space(shape: TileBlockShape, target: Target) -> Table[TileBlockPoint]:
    """All at once with every point of the product; and blocks of one size, with register tiles.

    Inside of a block all of the left operand is near, and the reduction is not cut. Columns that
    are not whole vectors are padded, which a product inside of other loops cannot be.
    """
    whole = contraction_space(shape.product, target)
    if shape.loops is not None:
        whole = Table.of([shape.loops])
    tables = [_with_blocks(whole, shape.lines, shape.columns)]
    is_whole = shape.product.columns % target.lanes(shape.product.element_bytes) == 0
    for across in _divisors(shape.columns) if is_whole else ():
        rows = replace(shape.product, rows=across)
        inner = contraction_space(rows, target)
        tiles = -(-across // inner["tile_rows"])
        keep = (inner["reduce_per_block"] == rows.reduce) & (inner["row_tiles_per_block"] == tiles)
        near = Table(ContractionPoint, {n: c[keep] for n, c in inner.columns.items()})
        if shape.loops is not None:
            near = Table.of([shape.loops])
        lines = [n for n in _divisors(shape.lines) if (n, across) != (shape.lines, shape.columns)]
        tables += [_with_blocks(near, down, across) for down in lines]
    names = tables[0].columns
    return Table(TileBlockPoint, {n: np.concatenate([t[n] for t in tables]) for n in names})


def _with_blocks(table: Table[ContractionPoint], down: int, across: int) -> Table[TileBlockPoint]:
    size = len(table)
    block = {"down": np.full(size, down, np.int64), "across": np.full(size, across, np.int64)}
    return Table(TileBlockPoint, {**table.columns, **block})


def _divisors(number: int) -> list[int]:
    """Blocks have one size: what is stored between their stages has then one, too."""
    return [n for n in range(1, number + 1) if number % n == 0]


def tile_block_cycles(
    shape: TileBlockShape, machine: MachineModel, table: Table[TileBlockPoint]
) -> Costs:
    """Cycles until the last thread is done, for every row."""
    down, across = table["down"], table["across"]
    is_whole = (down == shape.lines) & (across == shape.columns)
    found = np.empty(len(table))
    found[is_whole] = _all_at_once(shape, machine, _rows(table, is_whole))
    for width in np.unique(across[~is_whole]).tolist():
        rows = ~is_whole & (across == width)
        found[rows] = _in_blocks(shape, machine, _rows(table, rows), width)
    return found


def _rows(table: Table[TileBlockPoint], rows: np.ndarray) -> Table[TileBlockPoint]:
    return Table(TileBlockPoint, {name: column[rows] for name, column in table.columns.items()})


def _products(
    shape: ContractionShape, machine: MachineModel, table: Table[TileBlockPoint]
) -> Costs:
    names = [f.name for f in fields(ContractionPoint)]
    columns = {name: table[name] for name in names}
    return contraction_cycles(shape, machine, Table(ContractionPoint, columns))


def _all_at_once(
    shape: TileBlockShape, machine: MachineModel, table: Table[TileBlockPoint]
) -> Costs:
    if not len(table):
        return np.empty(0)
    threads = np.where(table["parallel"] != 0, float(shape.product.threads), 1.0)
    size = np.full(len(table), float(shape.data_bytes + shape.product_bytes))
    moved = _moved(shape, machine, size) / threads
    return _products(shape.product, machine, table) + moved


def _in_blocks(
    shape: TileBlockShape, machine: MachineModel, table: Table[TileBlockPoint], across: int
) -> Costs:
    """The first line of a block reads the weights from where they live, others find them near."""
    down = table["down"]
    blocks = shape.lines // down * (shape.columns // across)
    line = replace(shape.product, rows=across, threads=1)
    alone = Table(TileBlockPoint, {**table.columns, "parallel": np.zeros(len(table), np.int64)})
    far = _products(line, machine, alone)
    near = _products(replace(line, batch=1), machine, alone) * line.batch
    product = far + (down * shape.outer - 1) * near
    inside = (shape.data_bytes + shape.product_bytes) / blocks
    total = blocks * product + _moved(shape, machine, inside)
    parallel = table["parallel"] != 0
    many = np.where(parallel, float(shape.shared_by), 1.0)
    uneven = np.ceil(blocks / many) * many / blocks
    threads = np.where(parallel, float(shape.product.threads), 1.0)
    return np.asarray(total * uneven / threads + parallel * machine.barrier_cycles)


def _moved(shape: TileBlockShape, machine: MachineModel, inside: Costs) -> Costs:
    """Writing data and reading products; the product reads data, and hides most of its stores."""
    homes = [machine.home_of(size) for size in inside.tolist()]
    read, exposed = (np.array([getattr(h, name) for h in homes]) for name in ("read", "exposed"))
    stored = shape.data_bytes + exposed * shape.product_bytes
    return np.asarray((stored + shape.product_bytes) / read)


def transform_cycles(machine: MachineModel, passes: int, adds: float) -> float:
    """Of a vector of the elements of a tile: loaded and stored once for each dimension of tiles.

    Between two passes a tile goes through the first cache, as it exceeds the registers.
    """
    moved = passes * (1 / machine.vector_loads + 1 / machine.vector_stores)
    return machine.transforms.serial * (moved + adds / machine.fma_per_cycle)
