"""Contractions: a register tile of sums, walked over the reduction, inside blocks for the caches.

    for block of rows, panel of columns:                  (fused, parallel)
        for tile of rows:
            sums = 0                                      (registers: tile_rows × tile_columns)
            for k: sums += left[rows, k] · right[k, columns]
            out = epilogue(sums)

A long reduction is cut: partial sums of each cut stay in registers and are added to memory once.
A constant right operand is packed ahead of time so that a panel is one stream; one that comes with
the call is packed panel by panel where enough rows use it.
"""

from __future__ import annotations

from tilewright.schedule.recipes.context import Context
from tilewright.schedule.recipes.contraction.cuts import steps_per_cut, tile_with_cuts
from tilewright.schedule.recipes.contraction.cycles import draft_contraction
from tilewright.schedule.recipes.contraction.digits import join_digits, split_constants
from tilewright.schedule.recipes.contraction.merging import (
    merge_columns,
    merge_reduction,
    merge_rows,
    separate_groups,
    walked_dimensions,
)
from tilewright.schedule.recipes.contraction.packing import (
    pack_constant,
    packing_block,
    pad_columns,
)
from tilewright.schedule.recipes.contraction.phases import align_phases
from tilewright.schedule.recipes.contraction.roles import (
    Operands,
    column_dimension,
    loops_of,
    rows_of,
    shape_of,
)
from tilewright.schedule.recipes.contraction.space import ContractionPoint
from tilewright.schedule.recipes.contraction.tiling import tile
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import contraction, loads_of

__all__ = ["schedule_contraction"]

# Rows that must use a panel before packing it inside the kernel pays.
_ROWS_TO_PACK = 24


def schedule_contraction(context: Context, block: str, epilogue: str | None = None) -> None:
    """Schedule a contraction, and the elementwise block behind it if there is one."""
    epilogue, walked, packed = _as_product(context, block, epilogue)
    roles = contraction(context.schedule.block(block))
    assert roles is not None
    point = context.loops
    if not isinstance(point, ContractionPoint):
        point, _ = draft_contraction(shape_of(context, roles), context.target)
    panels = column_dimension(roles)
    is_constant = roles.right.buffer.name in context.constants
    packs = panels is not None and not is_constant and rows_of(roles) >= _ROWS_TO_PACK
    if panels is not None and (is_constant or packs):
        epilogue = pad_columns(
            context, block, roles, point, panels, epilogue, is_constant=is_constant
        )
    if packs and packed is None:
        packed = packing_block(context, block, roles)
    ahead = is_constant and panels is not None
    source = roles.right if packed is None else loads_of(context.schedule.block(packed))[0]
    is_sized = all(tir.int_value(size) is not None for size in source.buffer.shape)
    operands = Operands(roles.left.buffer.name, source.buffer.name, packed, ahead, is_sized)
    loops = loops_of(context, block)
    is_cut = packed is None and steps_per_cut(context, loops, point) is not None
    arrange = tile_with_cuts if is_cut else tile
    arrange(context, block, loops, point, epilogue, operands)
    if is_constant and panels is not None:
        pack_constant(context, roles, point, panels, walked)


def _as_product(
    context: Context, block: str, epilogue: str | None
) -> tuple[str | None, tuple[int, ...], str | None]:
    """Merge iterators.

    The epilogue, the order in which the right operand is walked, and the block that packs it, if
    there is one already.
    """
    if epilogue is not None:
        align_phases(context, block, epilogue)
        join_digits(context, block, epilogue)
    epilogue = separate_groups(context, block, epilogue)
    roles = contraction(context.schedule.block(block))
    assert roles is not None
    if split_constants(context, roles.block):
        roles = contraction(context.schedule.block(block))
        assert roles is not None
    walked: tuple[int, ...] = ()
    packed: str | None = None
    if roles.right.buffer.name not in context.constants:
        if rows_of(roles) >= _ROWS_TO_PACK:
            epilogue, packed = merge_columns(context, block, epilogue)
    elif column_dimension(roles) is not None:
        walked = walked_dimensions(roles)
    epilogue = merge_rows(context, block, epilogue)
    if walked:
        merge_reduction(context, block)
    return epilogue, walked, packed
