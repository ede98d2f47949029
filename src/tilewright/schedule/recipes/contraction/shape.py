"""The shape of a contraction: all that its space and its costs depend on."""

from __future__ import annotations

from math import prod

from tilewright.schedule.recipes.context import PLANNED_THREADS, Context, extent_of
from tilewright.schedule.recipes.contraction.instructions import instructions_of
from tilewright.schedule.recipes.contraction.merging import adjacent_columns, weight_of
from tilewright.schedule.recipes.contraction.roles import (
    Loops,
    bytes_of,
    column_dimension,
    density_of,
    loops_of,
    panel_density_of,
    pitch_of,
    reduce_step_of,
    vector_iterator,
)
from tilewright.schedule.recipes.contraction.space import ContractionShape
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import Contraction
from tilewright.tensor.visit import free_vars

__all__ = ["shape_of"]

_UNKNOWN = 128
"""Stands for a size that is not known: a middling number."""


def shape_of(context: Context, roles: Contraction, parts: tuple[int, ...] = ()) -> ContractionShape:
    """Extents by role, and how the operands lie; `parts` are ways to share the reduction."""
    node, column = roles.block, vector_iterator(roles)
    loops = loops_of(context, node.name)
    is_constant = roles.right.buffer.name in context.constants
    may_pack = not is_constant and column_dimension(roles) is not None
    together = [it.var for it in adjacent_columns(context, roles)] if may_pack else []
    merged = {p for p in roles.columns if node.iters[p].var in together and len(together) > 1}
    size = node.writes[0].buffer.dtype.size_bytes
    right_size = roles.right.buffer.dtype.size_bytes

    def extent(positions: tuple[int, ...]) -> int:
        sizes = [tir.int_value(node.iters[p].extent) for p in positions]
        return prod(_UNKNOWN if s is None else s for s in sizes)

    row, line = roles.rows[-1:], extent((column,))
    wide = tuple(merged) or (column,)
    outer = tuple(p for p in (*roles.rows[:-1], *roles.columns) if p not in (*wide, column))
    walk = [extent_of(context, loop) or 0 for loop in reversed(loops.reduce)]
    is_known = 0 not in walk
    last = node.iters[roles.reduce[-1]].var
    return ContractionShape(
        batch=extent((*roles.batch, *outer)),
        rows=max(1, extent(row)) if row else 1,
        columns=extent(wide),
        reduce=max(1, extent(roles.reduce)),
        element_bytes=size,
        right_is_constant=is_constant,
        threads=min(context.threads, PLANNED_THREADS),
        density=density_of(roles),
        reduce_step=reduce_step_of(context, roles),
        pitch_bytes=pitch_of(roles),
        workers=context.threads,
        rows_are_known=loops.row is None or extent_of(context, loops.row) is not None,
        reduce_is_known=is_known,
        walk=tuple(walk if is_known else walk[: walk.index(0) + 1]),
        parts=parts,
        may_keep_right=_may_keep_right(
            context, loops, is_constant=is_constant, may_pack=may_pack, is_merged=bool(merged)
        ),
        may_pack=may_pack,
        line_columns=line if merged else 0,
        right_pitch_bytes=abs(weight_of(roles.right, last)) * right_size,
        column_pitch_bytes=0 if is_constant else _column_pitch(roles, column) * right_size,
        group_bytes=_group_bytes(roles, loops),
        may_copy_left=is_known and _is_in_rows(context, roles, loops),
        panel_density=panel_density_of(roles),
        left_bytes=bytes_of(roles.left),
        right_bytes=bytes_of(roles.right),
        operand_bytes=_operand_bytes(roles, size),
        instructions=instructions_of(context, roles, loops),
    )


def _operand_bytes(roles: Contraction, size: int) -> tuple[int, int]:
    """Of elements of both operands; zeros where these are as wide as the sums."""
    found = roles.left.buffer.dtype.size_bytes, roles.right.buffer.dtype.size_bytes
    return (0, 0) if found == (size, size) else found


def _is_in_rows(context: Context, roles: Contraction, loops: Loops) -> bool:
    """Whether the left operand is a matrix (or some) whose rows go along the reduction."""
    if loops.row is None or loops.outer_rows or extent_of(context, loops.row) is None:
        return False
    row, last = (roles.block.iters[p].var for p in (roles.rows[-1], roles.reduce[-1]))
    indices = roles.left.indices
    plain = all(isinstance(index, tir.Var) for index in indices)
    return plain and len(roles.reduce) == 1 and indices[-1] == last and row in indices


def _column_pitch(roles: Contraction, column: int) -> int:
    """Elements from one column of the right operand to the next; 0 if these are neighbours."""
    apart = abs(weight_of(roles.right, roles.block.iters[column].var))
    return 0 if apart == 1 else apart


def _may_keep_right(
    context: Context, loops: Loops, *, is_constant: bool, may_pack: bool, is_merged: bool
) -> bool:
    """Whether there are steps for rows outside and panels inside.

    A right operand that comes with the call is packed once for each batch then.
    """
    extents = [extent_of(context, name) for name in (loops.column, *loops.reduce)]
    if loops.row is None or (loops.outer_columns and not is_merged) or None in extents:
        return False
    if is_constant:
        return not loops.batch and not loops.outer_rows
    return may_pack and bool(loops.batch)


def _group_bytes(roles: Contraction, loops: Loops) -> int:
    """Bytes side by side of one group where groups of channels share lines of memory; else 0."""
    groups = {roles.block.iters[p].var: roles.block.iters[p].extent for p in roles.batch}
    beside = [groups[v] for v in free_vars(roles.left.indices[-1]) if v in groups]
    sizes = [tir.int_value(d) for d in (*beside, roles.left.buffer.shape[-1])]
    if not beside or None in sizes or loops.outer_rows or loops.row is None:
        return 0
    *counts, line = (s or 1 for s in sizes)
    return max(1, line // prod(counts)) * roles.left.buffer.dtype.size_bytes
