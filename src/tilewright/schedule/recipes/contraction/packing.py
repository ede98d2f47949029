"""Panels: a right operand in the order in which the tiles walk it, packed ahead or in the kernel.

A constant is packed once by layout steps, which cost a call nothing; an operand that comes with the
call is copied by a block of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.schedule.nests import is_bounded
from tilewright.schedule.recipes.context import Context, extent_of, lanes_of, vector_tail
from tilewright.schedule.recipes.contraction.instructions import pack_steps
from tilewright.schedule.recipes.contraction.roles import names_of, vector_iterator
from tilewright.schedule.recipes.contraction.space import ContractionPoint
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import Contraction, contraction
from tilewright.tensor.visit import free_vars

__all__ = ["finish_packing", "pack_constant", "pack_rows", "packing_block", "pad_columns"]


def packing_block(context: Context, block: str, roles: Contraction) -> str:
    """The block that copies a panel of the right operand: the one that pads it, or a new one."""
    s = context.schedule
    right = contraction(s.block(block))
    assert right is not None
    buffer = right.right.buffer
    writers = [n for n in s.blocks() if any(w.buffer is buffer for w in s.block(n).writes)]
    if buffer.name != roles.right.buffer.name and writers:
        return writers[0]
    return str(s.cache_read(block, buffer.name))


def pad_columns(
    context: Context,
    block: str,
    roles: Contraction,
    point: ContractionPoint,
    dimension: int,
    epilogue: str | None,
    *,
    is_constant: bool,
) -> str | None:
    """Let zeros stand behind the last column, so that every vector is full.

    Columns that no vector fills would go one by one, each with the walk of a whole panel.
    """
    s = context.schedule
    right = roles.right.buffer
    columns = tir.int_value(right.shape[dimension])
    if columns is not None:
        missing = -columns % point.tile_columns
        if missing and is_constant:
            s.layout_pad(right.name, dim=dimension, before=0, after=missing)
        if columns % point.lanes == 0:
            return epilogue
    column = vector_iterator(roles)
    multiples = [point.lanes if p == column else 1 for p in range(len(roles.block.iters))]
    crop = names_of(s.pad_einsum(block, padding=multiples))[-1]
    if epilogue is None:
        return crop
    s.compute_inline(crop)
    return epilogue


def pack_constant(
    context: Context,
    roles: Contraction,
    point: ContractionPoint,
    dimension: int,
    walked: Sequence[int] = (),
    steps: int = 1,
) -> None:
    """Panels of columns, each one stream in the order in which the tile walks the reduction.

    `walked` names dimensions that the reduction moves along, the slowest first; `steps` of it are
    taken at once.
    """
    s = context.schedule
    name = roles.right.buffer.name
    rank = len(s.buffer(name).shape)
    if (tir.int_value(s.buffer(name).shape[dimension]) or 1) % point.tile_columns:
        return
    s.layout_split(name, dim=dimension, factor=point.tile_columns)
    batch = [
        d
        for d, index in enumerate(roles.right.indices)
        if index in [roles.block.iters[p].var for p in roles.batch]
    ]
    moved = [d if d < dimension else d + 1 for d in batch]
    inside = [d if d < dimension else d + 1 for d in walked]
    placed = (*moved, dimension, dimension + 1, *inside)
    rest = [*(d for d in range(rank + 1) if d not in placed), *inside]
    s.layout_reorder(name, order=[*moved, dimension, *rest, dimension + 1])
    if steps > 1:
        pack_steps(context, name, steps)


def pack_rows(
    context: Context, roles: Contraction, point: ContractionPoint, walk: Sequence[tir.Var]
) -> None:
    """A constant left operand as one stream of the rows of a tile, step by step.

    `walk` are the iterators of the reduction, the slowest first. Weights as models store them have
    a line for each row in every step, and windows of a few channels walk over all lines again and
    again.
    """
    s, name = context.schedule, roles.left.buffer.name
    row = roles.block.iters[roles.rows[-1]].var
    own = [d for d, index in enumerate(roles.left.indices) if row in free_vars(index)]
    if len(own) != 1 or roles.left.indices[own[0]] != row:
        return
    count = tir.int_value(roles.left.buffer.shape[own[0]])
    if count is None or count % point.tile_rows:
        return
    depth = {var: k for k, var in enumerate(walk)}
    moves = [max((depth.get(v, -1) for v in free_vars(i)), default=-1) for i in roles.left.indices]
    outer = sorted((d for d in range(len(moves)) if d not in own), key=moves.__getitem__)
    if count == point.tile_rows:
        s.layout_reorder(name, order=[*outer, *own])
        return
    s.layout_split(name, dim=own[0], factor=point.tile_rows)
    behind = [d if d < own[0] else d + 1 for d in outer]
    s.layout_reorder(name, order=[own[0], *behind, own[0] + 1])


def finish_packing(context: Context, packed: str, made: object, width: int | None) -> None:
    """Copy with whole vectors; `width`: into panels of so many columns, each one stream.

    (Without it the copy is dense because the buffer shrinks to one panel.)
    """
    s = context.schedule
    column = names_of(made)[-1]
    if width is not None and (extent_of(context, column) or 1) % width == 0:
        buffer = s.block(packed).writes[0].buffer.name
        rank = len(s.buffer(buffer).shape)
        _, column = s.split(column, width)
        s.layout_split(buffer, dim=rank - 1, factor=width)
        s.layout_reorder(buffer, order=[*range(rank - 2), rank - 1, rank - 2, rank])
    if is_bounded(s.loop(column).extent):
        s.vectorize(column)
    else:  # a transposed operand, along a symbolic reduction
        vector_tail(context, column, lanes_of(context, packed), 1)
