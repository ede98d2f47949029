"""A contraction of many dimensions as a matrix product: iterators that walk together become one.

    for n, h, w, o, rh, rw, c:                        for nhw, o, rh, rwc:
        Y[n, h, w, o] += P[n, h+rh, w+rw, c]·…   →        Y[nhw, o] += P[…]·W[…]

Rows become one range, so that register tiles do not end where a line of an image does. Steps of the
reduction that are neighbours in the left operand become one walk, which is left less often.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import dropwhile, pairwise, takewhile
from math import prod

from tilewright.errors import UserError
from tilewright.schedule.recipes.context import Context, iter_loop
from tilewright.schedule.recipes.contraction.digits import block_width
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import Contraction, contraction, hidden_group, loads_of
from tilewright.tensor.terms import terms

__all__ = [
    "adjacent_columns",
    "merge_columns",
    "merge_reduction",
    "merge_rows",
    "separate_groups",
    "walked_dimensions",
    "weight_of",
]

# Stands for a size that is not known: large, and no product of usual sizes.
_UNKNOWN = 1_000_003


def separate_groups(context: Context, block: str, epilogue: str | None) -> str | None:
    """Bring out the group that the left operand's index hides: `o // 8` as an iterator.

    The operand of the groups and what follows are cut alike; the epilogue that there is then.
    """
    s = context.schedule
    found = hidden_group(s.block(block))
    if found is None:
        return epilogue
    var, size = found
    copy = epilogue or str(s.cache_write(block))
    (result,) = s.block(block).writes
    dimension = [part.start for part in result.ranges].index(var)
    own = [d for d in _operand_dimensions(s.block(block), var) if d[0] in context.constants]
    s.split_iter(block, var.name, size)
    s.split_iter(copy, s.block(copy).iters[dimension].var.name, size)
    s.layout_split(result.buffer.name, dim=dimension, factor=size)
    for name, dim in own:
        s.layout_split(name, dim=dim, factor=size)
    return copy


def _operand_dimensions(node: tir.Block, var: tir.Var) -> list[tuple[str, int]]:
    """(buffer, dimension) of the operands that are indexed by the iterator itself."""
    return [
        (load.buffer.name, dimension)
        for load in loads_of(node)
        for dimension, index in enumerate(load.indices)
        if index is var
    ]


def merge_rows(context: Context, block: str, epilogue: str | None) -> str | None:
    """One iterator for all rows, in the block and in what follows it; the new epilogue.

    Only the outermost may be of symbolic extent, as the others are digits of the new one; where
    the left operand has the same rows, digits come together again and any of them may.
    """
    s = context.schedule
    roles = contraction(s.block(block))
    assert roles is not None
    first, iters = _adjacent_rows(roles)
    known = all(tir.int_value(it.extent) is not None for it in iters[1:])
    if len(iters) < 2 or not (known or _is_dense(roles.left, iters)):
        return epilogue
    before = s.copy()
    try:
        copy = epilogue
        if copy is None and s.block(block).writes[0].buffer in s.func.params:
            copy = str(s.cache_write(block))
        buffer = s.block(block).writes[0].buffer
        if copy is not None:
            following = _indices_at(s.block(copy), buffer, first, len(iters))
            s.fuse_iters(copy, following)
        s.fuse_iters(block, [it.var.name for it in iters])
        s.layout_fuse(buffer.name, dim=first, count=len(iters))
    except UserError:
        s.restore(before)
        return epilogue
    if contraction(s.block(block)) is None:  # a single column has lost its iterator on the way
        s.restore(before)
        return epilogue
    return copy


def _is_dense(load: tir.Load, iters: Sequence[tir.Iter]) -> bool:
    """Whether an operand has exactly these dimensions, one behind the other."""
    wanted = [(it.var, it.extent) for it in iters]
    found = list(zip(load.indices, load.buffer.shape, strict=True))
    starts = range(len(found) - len(wanted) + 1)
    return any(found[at : at + len(wanted)] == wanted for at in starts)


def merge_columns(
    context: Context, block: str, epilogue: str | None
) -> tuple[str | None, str | None]:
    """One iterator for columns that lie one behind the other in the right operand and the result.

    An image with channels first is such an operand: its lines end where vectors do not. A block of
    its own packs it, in which the columns are one as well; the epilogue and that block, or None
    if the columns stay what they are.
    """
    s = context.schedule
    roles = contraction(s.block(block))
    assert roles is not None
    iters = adjacent_columns(context, roles)
    if len(iters) < 2:
        return epilogue, None
    before = s.copy()
    try:
        copy = epilogue or str(s.cache_write(block))
        result = s.block(block).writes[0].buffer
        first = len(result.shape) - len(iters)
        s.fuse_iters(copy, _indices_at(s.block(copy), result, first, len(iters)))
        if block_width(s.block(copy), s.block(copy).iters[-1].var):  # lines with zeros between them
            s.restore(before)
            return epilogue, None
        packed = str(s.cache_read(block, roles.right.buffer.name))
        place = roles.right.indices.index(iters[0].var)
        own = s.block(packed).iters[place : place + len(iters)]
        s.fuse_iters(block, [it.var.name for it in iters])
        s.fuse_iters(packed, [it.var.name for it in own])
        s.layout_fuse(result.name, dim=first, count=len(iters))
        s.layout_fuse(s.block(packed).writes[0].buffer.name, dim=place, count=len(iters))
    except UserError:
        s.restore(before)
        return epilogue, None
    return copy, packed


def adjacent_columns(context: Context, roles: Contraction) -> list[tir.Iter]:
    """Columns that are the last dimensions of the result and of the right operand alike.

    None if they are no whole vectors together: what is left over would be copied twice.
    """
    columns = {roles.block.iters[p].var: roles.block.iters[p] for p in roles.columns}
    (result,) = roles.block.writes
    places = [part.start for part in reversed(result.ranges)]
    last = list(takewhile(lambda place: place in columns, places))
    iters = [columns[place] for place in reversed(last) if isinstance(place, tir.Var)]
    count = prod(tir.int_value(it.extent) or 0 for it in iters)
    whole = count and count % context.target.lanes(result.buffer.dtype.size_bytes) == 0
    return iters if whole and _is_dense(roles.right, iters) else []


def _adjacent_rows(roles: Contraction) -> tuple[int, list[tir.Iter]]:
    """Rows that are neighbours among the dimensions of the result, single elements with them.

    The first of these dimensions, and their iterators; none if some row lies elsewhere.
    """
    node, found = roles.block, list[tir.Iter]()
    (result,) = node.writes
    places = {it.var: position for position, it in enumerate(node.iters)}
    starts = [part.start for part in result.ranges]
    first = 0
    for dimension, start in enumerate(starts):
        # Parts of a sum are the first dimension, whatever the order of iterators. A single element
        # may have lost its iterator, which then stands at the place of its dimension.
        position = places.get(start, dimension) if isinstance(start, tir.Var) else dimension
        it = node.iters[position]
        is_row = position in roles.rows and start is it.var
        is_single = tir.int_value(it.extent) == 1 and (start is it.var or it.var not in starts)
        if is_row or (is_single and position in (*roles.rows, *roles.batch)):
            first = first if found else dimension
            found.append(it)
        elif found:
            break
    return first, found if all(node.iters[p] in found for p in roles.rows) else []


def _indices_at(node: tir.Block, buffer: tir.Buffer, first: int, count: int) -> list[str]:
    """The names of the iterators by which a block reads some dimensions of a buffer."""
    indices = next(load.indices for load in loads_of(node) if load.buffer is buffer)
    # A single element may have lost its iterator, which is then used nowhere.
    single = iter([it.var.name for it in node.iters if it.var not in indices])
    names = [i.name if isinstance(i, tir.Var) else next(single) for i in indices]
    return names[first : first + count]


def merge_reduction(context: Context, block: str) -> None:
    """One walk for steps of the reduction that are neighbours in the left operand."""
    s = context.schedule
    roles = contraction(s.block(block))
    assert roles is not None
    iters = [roles.block.iters[p] for p in roles.reduce]
    weights = [weight_of(roles.left, it.var) for it in iters]
    if len(iters) < 2:
        return
    single = {it.var for it in iters if tir.int_value(it.extent) == 1}  # outside, whatever follows
    pairs = zip(weights, iters, strict=True)
    ordered = sorted(pairs, key=lambda pair: (pair[1].var not in single, -pair[0]))
    steps = [iter_loop(context, block, roles.block.iters.index(it)) for _, it in ordered]
    inside = dropwhile(lambda loop: loop not in steps, s.loops(block))
    between = [loop for loop in inside if loop not in steps]  # that of a part of a split sum
    s.reorder(*between, *steps)
    packed = roles.right.indices  # those that are iterators can be stored in any order
    runs: list[list[tir.Iter]] = [[ordered[0][1]]]
    for (outer, last), (inner, it) in pairwise(ordered):
        extent = tir.int_value(it.extent)
        dense = extent is not None and outer == inner * extent
        dense = dense and {it.var, last.var} <= set(packed)
        dense = dense or last.var in single
        runs = [*runs[:-1], [*runs[-1], it]] if dense else [*runs, [it]]
    for run in runs:
        if len(run) > 1:
            s.fuse_iters(block, [it.var.name for it in run])


def walked_dimensions(roles: Contraction) -> tuple[int, ...]:
    """The dimensions of the right operand that the reduction walks, the slowest first."""
    found: list[tuple[int, int]] = []
    for dimension, index in enumerate(roles.right.indices):
        mine = [p for p in roles.reduce if roles.block.iters[p].var is index]
        if mine:
            found.append((weight_of(roles.left, roles.block.iters[mine[0]].var), dimension))
    return tuple(d for _, d in sorted(found, key=lambda pair: -pair[0]))


def weight_of(load: tir.Load, var: tir.Var) -> int:
    """How far apart in memory two elements are whose iterator differs by one."""
    weight, stride = 0, 1
    for size, index in zip(reversed(load.buffer.shape), reversed(load.indices), strict=True):
        weight += sum(factor * stride for factor, part in terms(index) if part is var)
        stride *= tir.int_value(size) or _UNKNOWN
    return weight
