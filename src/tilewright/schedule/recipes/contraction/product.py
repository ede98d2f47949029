"""A contraction as a plain product: its iterators are merged, whatever will be decided for it."""

from __future__ import annotations

from tilewright.schedule.recipes.context import Context
from tilewright.schedule.recipes.contraction.digits import join_digits, split_constants
from tilewright.schedule.recipes.contraction.merging import (
    merge_reduction,
    merge_rows,
    separate_groups,
    walked_dimensions,
)
from tilewright.schedule.recipes.contraction.phases import align_phases
from tilewright.schedule.recipes.contraction.roles import column_dimension
from tilewright.tensor.analysis.structure import contraction

__all__ = ["as_product"]


def as_product(
    context: Context, block: str, epilogue: str | None
) -> tuple[str | None, tuple[int, ...]]:
    """Merge iterators; the epilogue, and the order in which a constant right operand is walked."""
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
    is_constant = roles.right.buffer.name in context.constants
    if is_constant and column_dimension(roles) is not None:
        walked = walked_dimensions(roles)
    epilogue = merge_rows(context, block, epilogue)
    if walked:
        merge_reduction(context, block)
    return epilogue, walked
