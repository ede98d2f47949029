"""The bias with the weights: constants along the columns as further steps of the panels.

    for p, k, j:   Z[i, p * 16 + j] += X[i, k] * W[p, k, j]
    for p, j:      Y[i, p * 16 + j] = relu(Z[i, p * 16 + j] + b[p * 16 + j])    →    … + W[p, K, j]

What the epilogue of a panel adds then lies right behind the panel's last step, and one stream of
memory brings both (`store_at` of ALT, arXiv 2210.12415). Alone it is a stream of its own, from
which every panel wants one piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilewright.schedule.recipes.context import Context
from tilewright.schedule.recipes.contraction.digits import digits_of, offset_of
from tilewright.schedule.recipes.contraction.roles import column_dimension, vector_iterator
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import Contraction, loads_of
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.visit import free_vars

__all__ = ["biases_of", "store_biases"]


def biases_of(context: Context, roles: Contraction, epilogue: str | None) -> tuple[str, ...]:
    """Constants that an epilogue reads once for each column, and that could lie with the panels.

    They have the elements of the weights' columns, group by group, and nobody else reads them.
    """
    columns = _columns_of(context, roles)
    if epilogue is None or columns is None:
        return ()
    node, right = context.schedule.block(epilogue), roles.right.buffer
    wanted = _read_by(node, roles.block, columns)
    if wanted is None:
        return ()
    count = prod(_size(it.extent) for it in columns)
    return tuple(
        buffer.name
        for buffer in dict.fromkeys(load.buffer for load in loads_of(node))
        if buffer.name in context.constants
        and _is_alike(buffer, right, count)
        and _order_of(node, buffer) == wanted
        and _has_one_reader(context, buffer)
    )


def store_biases(context: Context, names: Sequence[str], roles: Contraction, width: int) -> None:
    """Let constants along the columns follow the last step of each panel, which is so wide."""
    s, right = context.schedule, roles.right.buffer.name
    batch = [_size(size) for size in s.buffer(right).shape[: len(roles.batch)]]
    panel = len(batch)
    steps = len(s.buffer(right).shape) - panel - 2
    if names and steps > 1:
        s.layout_fuse(right, dim=panel + 1, count=steps)
    columns = _size(roles.block.iters[vector_iterator(roles)].extent)
    for name in names:
        rank = len(s.buffer(name).shape)
        if rank > 1:
            s.layout_fuse(name, dim=0, count=rank)
        for place in range(panel):
            s.layout_split(name, dim=place, factor=prod(batch[place + 1 :]) * columns)
        if columns % width:
            s.layout_pad(name, dim=panel, before=0, after=-columns % width)
        s.layout_split(name, dim=panel, factor=width)
        s.layout_store_at(right, name, dim=panel + 1)


def _columns_of(context: Context, roles: Contraction) -> list[tir.Iter] | None:
    """The groups in the order of the right operand, and the column; None if it has no such panels.

    A panel is some columns of one group by all steps: only the reduction moves inside of it.
    """
    node, right = roles.block, roles.right
    if right.buffer.name not in context.constants or column_dimension(roles) is None:
        return None
    column = node.iters[vector_iterator(roles)]
    outer = {node.iters[p].var: node.iters[p] for p in (*roles.batch, *roles.columns)}
    steps = {node.iters[p].var for p in roles.reduce}
    found, inside = list[tir.Iter](), 0
    for size, index in zip(right.buffer.shape, right.indices, strict=True):
        it = outer.get(index) if isinstance(index, tir.Var) else None
        if it is None and steps.issuperset(free_vars(index)) and _size(size):
            inside += 1
        elif it is not None and _size(size) == _size(it.extent) > 0:
            found.append(it)
        else:
            return None
    if len(found) != len(outer) or len(roles.columns) > 1 or not inside:
        return None
    return [*(it for it in found if it is not column), column]


def _read_by(
    reader: tir.Block, block: tir.Block, columns: Sequence[tir.Iter]
) -> tuple[tir.Var, ...] | None:
    """The iterators by which the reader of a result walks some of its iterators.

    None if it does not read it at one place; those of single elements are left out.
    """
    (result,) = block.writes
    places = {load.indices for load in loads_of(reader) if load.buffer is result.buffer}
    if len(places) != 1:
        return None
    (indices,) = places
    starts = [part.start for part in result.ranges]
    walked = [it.var for it in columns if _size(it.extent) != 1]
    if any(var not in starts for var in walked):
        return None  # it is stored by other indices than plain iterators
    found = [indices[starts.index(var)] for var in walked]
    own = {it.var for it in reader.iters}
    variables = tuple(index for index in found if isinstance(index, tir.Var) and index in own)
    return variables if len(variables) == len(found) else None


def _order_of(reader: tir.Block, buffer: tir.Buffer) -> tuple[tir.Var, ...] | None:
    """The iterators by which a block walks all of a buffer, the slowest first."""
    extents = {it.var: it.extent for it in reader.iters}
    simplify = Analyzer(extents).simplify
    places = {simplify(offset_of(load)) for load in loads_of(reader) if load.buffer is buffer}
    if len(places) != 1:
        return None
    (place,) = places
    return () if tir.int_value(place) == 0 else digits_of(place, extents)


def _has_one_reader(context: Context, buffer: tir.Buffer) -> bool:
    s = context.schedule
    return sum(any(r.buffer is buffer for r in s.block(name).reads) for name in s.blocks()) == 1


def _is_alike(buffer: tir.Buffer, right: tir.Buffer, count: int) -> bool:
    """Whether a buffer has so many elements, of the kind of the right operand's."""
    is_other = buffer is not right and buffer.dtype == right.dtype
    return is_other and bool(buffer.shape) and prod(map(_size, buffer.shape)) == count


def _size(extent: tir.Expr) -> int:
    """A known size; 0 for others."""
    return tir.int_value(extent) or 0
