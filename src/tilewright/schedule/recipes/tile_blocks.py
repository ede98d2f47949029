"""Transforms around a product, in blocks of tiles that stay in a near cache.

    for block of tiles:                                   (parallel)
        data = transform(source)                          of the tiles of this block
        products = data · weights
        result = transform(products)

Between its stages a convolution by minimal filters holds more numbers than it reads or writes. For
large images they would go through a far memory and back twice; in blocks they do not, but every
block reads all weights, and rows of register tiles end with those of a block.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from tilewright.schedule.recipes.choices import schedule_choices
from tilewright.schedule.recipes.context import Context, share_loop
from tilewright.schedule.recipes.contraction.recipe import CONTRACTION
from tilewright.schedule.recipes.contraction.roles import names_of, rows_of
from tilewright.schedule.recipes.contraction.shape import shape_of
from tilewright.schedule.recipes.contraction.space import ContractionPoint
from tilewright.schedule.recipes.grouping import Group
from tilewright.schedule.recipes.recipe import follow
from tilewright.schedule.recipes.table import Costs, Table
from tilewright.schedule.recipes.tile_costs import (
    TileBlockPoint,
    TileBlockShape,
    tile_block_cycles,
    tile_block_space,
)
from tilewright.target import MachineModel, Target
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import Contraction, Kind, contraction, loads_of
from tilewright.tensor.visit import free_vars

__all__ = ["TILE_BLOCKS", "TileBlocksRecipe", "schedule_tiles", "tiled_products"]


def tiled_products(context: Context, groups: list[Group]) -> list[Group]:
    """Groups that follow each other in this way, as one: two transforms, a product, two more."""
    found = []
    for before, product, after in zip(groups, groups[1:], groups[2:], strict=False):
        kinds = (before.kind, product.kind, after.kind)
        if kinds != (Kind.ELEMENTWISE, Kind.CONTRACTION, Kind.ELEMENTWISE):
            continue
        pairs = len(before.blocks) == len(after.blocks) == 2 and before.epilogue is None
        if pairs and product.epilogue is None and _is_chain(context, before, product, after):
            blocks = (*before.blocks, *product.blocks, *after.blocks)
            found.append(Group(Kind.OPAQUE, blocks, after.epilogue))
    return found


def _is_chain(context: Context, before: Group, product: Group, after: Group) -> bool:
    s = context.schedule
    made, product_node = s.block(before.blocks[1]), s.block(product.blocks[0])
    roles = contraction(product_node)
    if roles is None or roles.left.buffer is not made.writes[0].buffer:
        return False
    first, second = (s.block(name) for name in after.blocks)
    tiles = _tile_iters(first, roles)
    return tiles is not None and _walks(second, first, tiles)


class TileBlocksRecipe:
    """A product between two pairs of transforms, all at once or in blocks of tiles."""

    name = "tile blocks"
    point = TileBlockPoint

    def match(self, context: Context, group: Group) -> TileBlockShape | None:
        """The shape of five blocks, of which the third is a product of what two others make."""
        if len(group.blocks) != 5:
            return None
        s, product = context.schedule, group.blocks[2]
        roles = contraction(s.block(product))
        if roles is None:
            return None
        sizes = [tir.int_value(roles.block.iters[p].extent) for p in roles.rows]
        if len(sizes) < 3 or None in sizes or sizes[0] != 1:
            return None
        *_, lines, columns = (size or 1 for size in sizes)
        shape, rows = shape_of(context, roles), rows_of(roles)
        return TileBlockShape(
            lines=lines,
            columns=columns,
            outer=rows // (lines * columns),
            product=replace(shape, rows=rows, batch=shape.batch * shape.rows // rows),
            data_bytes=_bytes(roles.left.buffer),
            shared_by=context.threads,
            loops=context.point_of(product, ContractionPoint),
        )

    def space(self, shape: TileBlockShape, target: Target) -> Table[TileBlockPoint]:
        """Every block that divides lines and columns of tiles, with register tiles inside."""
        return tile_block_space(shape, target)

    def cycles(
        self, shape: TileBlockShape, machine: MachineModel, table: Table[TileBlockPoint]
    ) -> Costs:
        """Products, and what moves between the stages; transforms cost the same in all rows."""
        return tile_block_cycles(shape, machine, table)

    def apply(
        self, context: Context, group: Group, shape: TileBlockShape, point: TileBlockPoint
    ) -> None:
        """Schedule all stages, one after the other or in blocks of tiles."""
        context = replace(context, loops=point.product)
        if (point.down, point.across) == (shape.lines, shape.columns):
            *before, product, first, second = group.blocks
            schedule_choices(context, *before)
            follow(CONTRACTION, context, Group(Kind.CONTRACTION, (product,)))
            schedule_choices(context, first, second, group.epilogue)
        else:
            _schedule_blocks(context, group, point)


TILE_BLOCKS = TileBlocksRecipe()


def schedule_tiles(context: Context, group: Group) -> frozenset[str]:
    """Schedule a product with its transforms; the blocks that this settles, with their border."""
    s = context.schedule
    border = _border_of(context, group.blocks[0])
    if not follow(TILE_BLOCKS, context, group):
        return frozenset()
    around = s.loops(group.blocks[-1])[0]
    is_inside = border is not None and around in s.loops(border)
    return frozenset([*group.members, border] if border and is_inside else group.members)


def _schedule_blocks(context: Context, group: Group, point: TileBlockPoint) -> None:
    s = context.schedule
    *before, product, first, second = group.blocks
    roles = contraction(s.block(product))
    assert roles is not None
    alone = replace(context, threads=1)
    copy = str(s.cache_write(product))  # while nothing else is in its nest
    schedule_choices(alone, first, second, group.epilogue)
    *outer, lines, columns = _tile_loops(context, first, second, roles)
    line_blocks, line = s.split(lines, point.down)
    column_blocks, column = s.split(columns, point.across)
    s.reorder(line_blocks, column_blocks, *outer, line, column)
    s.compute_at(copy, column_blocks)
    s.compute_at(product, column_blocks)
    s.compute_at(before[1], column_blocks)
    border = _border_of(context, before[0])
    schedule_choices(alone, *before)
    if border is not None:
        s.vectorize(names_of(s.compute_at(border, column_blocks))[-1])
    follow(CONTRACTION, alone, Group(Kind.CONTRACTION, (product,), copy))
    shared = s.fuse(line_blocks, column_blocks)
    share_loop(context, str(shared), parallel=bool(point.parallel))


def _border_of(context: Context, block: str) -> str | None:
    """The block that makes what alone another one reads: data with their border."""
    s = context.schedule
    read = {region.buffer for region in s.block(block).reads}
    makers = [
        name
        for name in s.blocks()
        if any(region.buffer in read for region in s.block(name).writes) and name != block
    ]
    return makers[0] if len(makers) == 1 else None


def _tile_loops(context: Context, first: str, second: str, roles: Contraction) -> list[str]:
    """The loops that two blocks share, those over lines and columns of tiles last.

    The first block reads products: by which of its iterators tells which loops these are.
    """
    s = context.schedule
    node = s.block(first)
    shared = [loop for loop in s.loops(first) if loop in s.loops(second)]
    tiles: list[str] = []
    for position in _tile_iters(node, roles) or ():
        used = free_vars(node.bindings[position])
        tiles += [loop for loop in shared if s.loop(loop).var in used]
    inner = shared[-1]  # over vectors: it stays where it is
    return [*(loop for loop in shared if loop not in (*tiles, inner)), *tiles]


def _tile_iters(node: tir.Block, roles: Contraction) -> list[int] | None:
    """Which iterators of a block are the lines and columns of the tiles whose products it reads.

    None if it reads no products, or finds them otherwise: a result that is stored in tiles of
    another size may ask for a part of a tile of products.
    """
    rows = [roles.block.iters[row].var for row in roles.rows[-2:]]
    indices = _read_at(node, roles.block, rows)
    if indices is None:
        return None
    own = {it.var: position for position, it in enumerate(node.iters)}
    found = [own[index] for index in indices if isinstance(index, tir.Var) and index in own]
    return found if len(found) == len(indices) else None


def _walks(reader: tir.Block, block: tir.Block, positions: Sequence[int]) -> bool:
    """Whether a block goes through some iterators of another one by one of its own for each.

    A result that is stored in tiles of places has two for each line of tiles of products.
    """
    indices = _read_at(reader, block, [block.iters[position].var for position in positions])
    return indices is not None and all(len(free_vars(index)) == 1 for index in indices)


def _read_at(
    reader: tir.Block, block: tir.Block, variables: Sequence[tir.Var]
) -> list[tir.Expr] | None:
    """The indices by which a block reads what another one has written at some of its iterators.

    None if it does not read that, or if those are no indices of their own.
    """
    written = block.writes[0]
    starts = [part.start for part in written.ranges]
    read = next((load for load in loads_of(reader) if load.buffer is written.buffer), None)
    if read is None or any(variable not in starts for variable in variables):
        return None
    return [read.indices[starts.index(variable)] for variable in variables]


def _bytes(buffer: tir.Buffer) -> int:
    return math.prod(tir.int_value(d) or 1 for d in buffer.shape) * buffer.dtype.size_bytes
