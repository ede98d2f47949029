"""Split a reduction into partial results over one of its loops, and their combination."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.checks import require_sole_block
from tilewright.schedule.handles import fresh, names_of
from tilewright.schedule.nests import (
    blocks_under,
    copy_loops,
    expand,
    loops_around,
    vars_by_kind,
    wrap,
)
from tilewright.schedule.primitive import Edit, primitive
from tilewright.schedule.reductions import S253, Update, update_of
from tilewright.tensor import ir as tir
from tilewright.tensor.build import combine, fold_identity, make_block
from tilewright.tensor.regions import sizes
from tilewright.tensor.visit import free_vars, replace_node, substitute

__all__ = ["rfactor"]

S261 = Code("S261", "block `{block}` is not a sum, product, minimum or maximum with a start value")
S262 = Code("S262", "block `{block}` does not reduce over loop `{loop}`")
S263 = Code("S263", "the extent of loop `{loop}` of the reduction is not the same everywhere")
S264 = Code("S264", "the partial results of `{block}` have no dimension {axis}")
S266 = Code("S266", "block `{block}` runs only where its predicate holds")
S265 = Code("S265", "block `{block}` reduces over loop `{loop}`, which has other blocks inside")


@primitive
def rfactor(func: tir.Func, loop: tir.For, axis: int = 0) -> Edit:
    """Keep one partial result for each iteration of a reduction loop, and fold them afterwards.

    The partial results go to a buffer `C_rf` with the loop as dimension `axis`; the block `C_rf`
    stays in the loops, of which `loop` is then spatial, and `C` folds the results after them.

    Before:  for k_0 in range(8): for k_1 in range(4): C[] += A[k_0 * 4 + k_1]
    After:   for k_0 in range(8): for k_1 in range(4): C_rf[k_1] += A[k_0 * 4 + k_1]
             for k_1_fold in range(4): C[] += C_rf[k_1_fold]
    Requires: S260 one block is in the loop; S261 it folds with +, ×, min or max and has its start
        value; S262 it reduces over the loop; S253 its loops are spatial or reduce, not both; S263
        the loops of the reduction have fixed extents; S264 the dimension exists; S265 no other
        block is inside the loops of the reduction; S266 the block has no predicate
    Example: s.rfactor("k_1", axis=-1)
    """
    block = require_sole_block(func, loop)
    update = _update(func, block, loop)
    rank = len(update.buffer.shape)
    place = axis + rank + 1 if axis < 0 else axis
    if not 0 <= place <= rank:
        facts = {"axis": axis, "expected": f"a number from {-rank - 1} to {rank}"}
        hint = "leave `axis` out to put the new dimension first"
        raise ScheduleError(S264, facts, program=func, marks={"block": block}, hint=hint)
    loops = loops_around(func, block)
    _require_rectangular(func, block, loops)
    names = names_of(func)
    name = fresh(names, f"{block.name}_rf")
    shape = _inserted(update.buffer.shape, place, loop.extent)
    partial = tir.Buffer(fresh(names, f"{update.buffer.name}_rf"), shape, update.buffer.dtype)
    top = _top(func, block, loops)
    first = replace_node(
        top, block, _partial_block(block, update, loops, loop, name, partial, place)
    )
    second = _fold_nest(func, block, update, loops[_position(loops, top) :], loop, partial, place)
    return Edit(expand(func, top, (first, second), (partial,)), (name,))


def _update(func: tir.Func, block: tir.Block, loop: tir.For) -> Update:
    update = update_of(block)
    marks = {"block": block, "loop": loop}
    if update is None or block.init is None or type(block.init) is not tir.Store:
        hint = "use `rfactor` before `decompose_reduction`"
        raise ScheduleError(S261, program=func, marks=marks, hint=hint)
    if block.predicate != tir.TRUE:
        hint = "use `rfactor` earlier, or `split`, which fills every extent without a predicate"
        raise ScheduleError(S266, program=func, marks=marks, hint=hint)
    spatial, reduce = vars_by_kind(block)
    if loop.var not in reduce:
        hint = "name a loop that the reduction runs over"
        raise ScheduleError(S262, program=func, marks=marks, hint=hint)
    both = next((part for part in loops_around(func, block) if part.var in spatial & reduce), None)
    if both is not None:
        hint = "use `rfactor` before the loops are fused"
        raise ScheduleError(S253, program=func, marks={**marks, "loop": both}, hint=hint)
    return update


def _require_rectangular(func: tir.Func, block: tir.Block, loops: Sequence[tir.For]) -> None:
    known = set(sizes(func))
    _, reduce = vars_by_kind(block)
    for part in loops:
        if part.var in reduce and not free_vars(part.extent) <= known:
            hint = "use `rfactor` before the loop is split into tiles of several sizes"
            raise ScheduleError(S263, program=func, marks={"block": block, "loop": part}, hint=hint)


def _top(func: tir.Func, block: tir.Block, loops: Sequence[tir.For]) -> tir.For:
    """The outermost loop that has no other block inside; the whole reduction must be within."""
    alone = len(loops)
    while alone and sum(1 for _ in blocks_under(loops[alone - 1])) == 1:
        alone -= 1
    _, reduce = vars_by_kind(block)
    for part in loops[:alone]:
        if part.var in reduce:
            hint = "use `rfactor` before other blocks are moved into the loop"
            raise ScheduleError(S265, program=func, marks={"block": block, "loop": part}, hint=hint)
    return loops[alone]


def _position(loops: Sequence[tir.For], loop: tir.For) -> int:
    return next(n for n, part in enumerate(loops) if part is loop)


def _inserted(parts: tuple[tir.Expr, ...], place: int, extra: tir.Expr) -> tuple[tir.Expr, ...]:
    return (*parts[:place], extra, *parts[place:])


def _partial_block(
    block: tir.Block,
    update: Update,
    loops: Sequence[tir.For],
    loop: tir.For,
    name: str,
    partial: tir.Buffer,
    place: int,
) -> tir.Block:
    """The reduction without `loop`: each reduce iterator becomes the loops that it is made of."""
    _, reduce = vars_by_kind(block)
    iters: list[tir.Iter] = []
    bindings: list[tir.Expr] = []
    as_iter: dict[tir.Var, tir.Expr] = {}
    for it, binding in zip(block.iters, block.bindings, strict=True):
        if it.kind is tir.IterKind.SPATIAL:
            iters.append(tir.Iter(tir.Var(it.var.name), it.extent))
            bindings.append(binding)
    spatial = [i.var for i in iters]
    old_spatial = [i.var for i in block.iters if i.kind is tir.IterKind.SPATIAL]
    for part in loops:
        if part.var in reduce:
            kind = tir.IterKind.SPATIAL if part is loop else tir.IterKind.REDUCE
            own = as_iter[part.var] = tir.Var(f"v{part.var.name}")
            iters.append(tir.Iter(own, part.extent, kind))
            bindings.append(part.var)
    values: dict[tir.Var, tir.Expr] = dict(zip(old_spatial, spatial, strict=True))
    for it, binding in zip(block.iters, block.bindings, strict=True):
        if it.kind is tir.IterKind.REDUCE:
            values[it.var] = substitute(binding, as_iter)
    where = _inserted(substitute_all(update.indices, values), place, as_iter[loop.var])
    value = substitute(update.value, values)
    body = tir.Store(partial, where, combine(update.fold, tir.Load(partial, where), value))
    init = None
    start = tir.Store(partial, where, fold_identity(update.fold, partial.dtype))
    if any(i.kind is tir.IterKind.REDUCE for i in iters):
        init = start
    else:
        body = tir.Store(partial, where, value)
    return make_block(name, tuple(iters), tuple(bindings), body, init)


def substitute_all(
    parts: tuple[tir.Expr, ...], values: dict[tir.Var, tir.Expr]
) -> tuple[tir.Expr, ...]:
    """Each expression with its variables replaced."""
    return tuple(substitute(part, values) for part in parts)


def _fold_nest(
    func: tir.Func,
    block: tir.Block,
    update: Update,
    loops: Sequence[tir.For],
    loop: tir.For,
    partial: tir.Buffer,
    place: int,
) -> tir.Stmt:
    """The original block, now over the partial results, in copies of its spatial loops."""
    assert type(block.init) is tir.Store
    spatial, _ = vars_by_kind(block)
    kept = [part for part in loops if part.var in spatial]
    names = names_of(func)
    wanted = [fresh(names, f"{part.var.name}_fold") for part in (*kept, loop)]
    serial = loop.with_fields(kind=tir.LoopKind.SERIAL)
    copies, moved = copy_loops((*kept, serial), wanted)
    values: dict[tir.Var, tir.Expr] = {}
    iters: list[tir.Iter] = []
    bindings: list[tir.Expr] = []
    for it, binding in zip(block.iters, block.bindings, strict=True):
        if it.kind is tir.IterKind.SPATIAL:
            var = tir.Var(it.var.name)
            values[it.var] = var
            iters.append(tir.Iter(var, it.extent))
            bindings.append(substitute(binding, moved))
    axis = tir.Var(f"v{loop.var.name}")
    iters.append(tir.Iter(axis, loop.extent, tir.IterKind.REDUCE))
    bindings.append(moved[loop.var])
    where = substitute_all(update.indices, values)
    part_value = tir.Load(partial, _inserted(where, place, axis))
    body = tir.Store(
        update.buffer, where, combine(update.fold, tir.Load(update.buffer, where), part_value)
    )
    init = substitute(block.init, values)
    folded = make_block(block.name, tuple(iters), tuple(bindings), body, init)
    return wrap(copies, folded.with_fields(notes=block.notes))
