"""Transforms around a product, in blocks of tiles that stay in a near cache.

    for block of tiles:                                   (parallel)
        data = transform(source)                          of the tiles of this block
        products = data · weights
        result = transform(products)

Between its stages a convolution by minimal filters holds more numbers than it reads or writes. For
large images they would go through a far memory and back twice; in blocks they do not, but every
block reads all weights. The model weighs one against the other.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

from tilewright.schedule.recipes.choices import schedule_choices
from tilewright.schedule.recipes.context import Context, parallelize
from tilewright.schedule.recipes.contraction.cycles import arithmetic_cycles, draft_contraction
from tilewright.schedule.recipes.contraction.recipe import CONTRACTION
from tilewright.schedule.recipes.contraction.roles import names_of, rows_of
from tilewright.schedule.recipes.contraction.shape import shape_of
from tilewright.schedule.recipes.grouping import Group
from tilewright.schedule.recipes.recipe import follow
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import Contraction, Kind, contraction, loads_of
from tilewright.tensor.visit import free_vars

__all__ = ["TiledProduct", "schedule_tile_blocks", "tiled_products"]


@dataclass(frozen=True)
class TiledProduct:
    """A pair of transforms, a product of what they make, and a pair of transforms of that."""

    before: Group
    product: Group
    after: Group


def tiled_products(context: Context, groups: list[Group]) -> list[TiledProduct]:
    """All groups that follow each other in this way."""
    found = []
    for before, product, after in zip(groups, groups[1:], groups[2:], strict=False):
        kinds = (before.kind, product.kind, after.kind)
        if kinds != (Kind.ELEMENTWISE, Kind.CONTRACTION, Kind.ELEMENTWISE):
            continue
        pairs = len(before.blocks) == len(after.blocks) == 2 and before.epilogue is None
        if pairs and product.epilogue is None and _is_chain(context, before, product, after):
            found.append(TiledProduct(before, product, after))
    return found


def _is_chain(context: Context, before: Group, product: Group, after: Group) -> bool:
    s = context.schedule
    made, product_node = s.block(before.blocks[1]), s.block(product.blocks[0])
    roles = contraction(product_node)
    if roles is None or roles.left.buffer is not made.writes[0].buffer:
        return False
    reads = {region.buffer for region in s.block(after.blocks[0]).reads}
    return product_node.writes[0].buffer in reads


def schedule_tile_blocks(context: Context, tiled: TiledProduct) -> frozenset[str]:
    """Schedule all stages in blocks of tiles if that is expected to pay; the blocks it covers."""
    s = context.schedule
    (product,) = tiled.product.blocks
    roles = contraction(s.block(product))
    assert roles is not None
    block = _block_of(context, roles)
    if block is None:
        return frozenset()
    down, across = block
    alone = replace(context, threads=1)
    copy = str(s.cache_write(product))  # while nothing else is in its nest
    first, second = tiled.after.blocks
    schedule_choices(alone, first, second, tiled.after.epilogue)
    *outer, lines, columns = _tile_loops(context, first, second, roles)
    line_blocks, line = s.split(lines, down)
    column_blocks, column = s.split(columns, across)
    s.reorder(line_blocks, column_blocks, *outer, line, column)
    s.compute_at(copy, column_blocks)
    s.compute_at(product, column_blocks)
    s.compute_at(tiled.before.blocks[1], column_blocks)
    border = _border_of(context, tiled.before.blocks[0])
    schedule_choices(alone, *tiled.before.blocks)
    if border is not None:
        s.vectorize(names_of(s.compute_at(border, column_blocks))[-1])
    follow(CONTRACTION, alone, Group(Kind.CONTRACTION, (product,), copy))
    shared = s.fuse(line_blocks, column_blocks)
    parallelize(context, str(shared), math.inf)
    every = [*tiled.before.members, *tiled.product.members, *tiled.after.members]
    return frozenset(every if border is None else [*every, border])


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
    node, written = s.block(first), roles.block.writes[0]
    shared = [loop for loop in s.loops(first) if loop in s.loops(second)]
    read = next(load for load in loads_of(node) if load.buffer is written.buffer)
    starts = [part.start for part in written.ranges]
    tiles: list[str] = []
    for row in roles.rows[-2:]:
        index = read.indices[starts.index(roles.block.iters[row].var)]
        position = next(p for p, it in enumerate(node.iters) if it.var is index)
        used = free_vars(node.bindings[position])
        tiles += [loop for loop in shared if s.loop(loop).var in used]
    inner = shared[-1]  # over vectors: it stays where it is
    return [*(loop for loop in shared if loop not in (*tiles, inner)), *tiles]


def _block_of(context: Context, roles: Contraction) -> tuple[int, int] | None:
    """Tiles down and across of a block, if blocks are faster than all at once."""
    sizes = [tir.int_value(roles.block.iters[p].extent) for p in roles.rows]
    if len(sizes) < 3 or None in sizes or sizes[0] != 1:
        return None
    *_, lines, columns = (size or 1 for size in sizes)
    worth = context.target.machine.transforms.blocks_worth
    best, least = None, worth * _cycles(context, roles, (lines, columns), (lines, columns))
    for down, across in itertools.product(_divisors(lines), _divisors(columns)):
        if lines // down * (columns // across) < max(2, context.threads):  # one for each thread
            continue
        cycles = _cycles(context, roles, (down, across), (lines, columns))
        cycles += _wasted_cycles(context, roles, across)
        if cycles < least:
            best, least = (down, across), cycles
    return best


def _cycles(
    context: Context, roles: Contraction, block: tuple[int, int], tiles: tuple[int, int]
) -> float:
    """Time to move data, products and weights with blocks of this size."""
    machine = context.target.machine.shared_by(context.threads)
    between = sum(_bytes(b) for b in (roles.left.buffer, roles.block.writes[0].buffer))
    weights = _bytes(roles.right.buffer)
    inside = between * math.prod(block) / math.prod(tiles)
    stages = 2 * between / machine.home_of(inside).read
    passes = math.prod(math.ceil(t / b) for t, b in zip(tiles, block, strict=True))
    again = passes * weights / machine.home_of(weights).read
    return stages + machine.transforms.weights_exposed * again


def _wasted_cycles(context: Context, roles: Contraction, across: int) -> float:
    """What arithmetic takes longer if rows of micro tiles end with those of a block."""
    shape, target = shape_of(context, roles), context.target
    all_rows = rows_of(roles)
    batch = shape.batch * shape.rows // all_rows
    merged = replace(shape, rows=all_rows, batch=batch)
    cut = replace(shape, rows=across, batch=batch * all_rows // across)
    whole, parts = (
        arithmetic_cycles(s, target.machine, draft_contraction(s, target)[0]) for s in (merged, cut)
    )
    return parts - whole


def _divisors(number: int) -> list[int]:
    return [n for n in range(1, number + 1) if number % n == 0]


def _bytes(buffer: tir.Buffer) -> int:
    return math.prod(tir.int_value(d) or 1 for d in buffer.shape) * buffer.dtype.size_bytes
