"""Lanes that a loop folds into one element stay apart until the loop is done.

    for k:                                    lanes = identity
        s[0] = s[0] + Reduce(add, v(k))   →   for k: lanes = lanes + v(k)
                                              s[0] = s[0] + Reduce(add, lanes)

Folding the lanes of a vector costs several dependent instructions; a row of a softmax would pay for
them once per tile instead of once per row. The order of the fold is unspecified either way.
"""

from __future__ import annotations

from tilewright.lower import fold
from tilewright.lower.context import Context
from tilewright.lower.join_folds import LaneFold, joined, lane_fold
from tilewright.tensor import ir as tir
from tilewright.tensor.build import fold_identity
from tilewright.tensor.visit import find, free_vars, holds, replace_node, walk_stmts

__all__ = ["delay_folds"]


def delay_folds(func: tir.Func, context: Context) -> tir.Func:
    """Move the folding of lanes behind serial loops."""
    del context
    if not holds(func.body, tir.Reduce):
        return func
    return func.with_fields(body=_visit(func.body))


def _visit(stmt: tir.Stmt) -> tir.Stmt:
    if not holds(stmt, tir.Reduce):
        return stmt
    stmt = fold.map_parts(stmt, _visit)
    if type(stmt) is tir.Seq:
        return joined(stmt)
    if type(stmt) is not tir.For or stmt.kind is not tir.LoopKind.SERIAL:
        return stmt
    found = next((f for s in walk_stmts(stmt.body) if (f := _delayed(s, stmt))), None)
    if found is None:
        return stmt
    dtype = found.vector.dtype
    name = f"{found.store.buffer.name}_lanes"
    lanes = tir.Buffer(name, (tir.Const(dtype.lanes),), dtype.scalar, tir.Scope.REGISTER)
    here = (tir.Ramp(tir.Const(0), tir.Const(1), dtype.lanes),)
    identity = tir.Broadcast(fold_identity(found.fold, dtype.scalar), dtype.lanes)
    operation = found.kind
    step = tir.Store(lanes, here, operation(tir.Load(lanes, here), found.vector))
    element = tir.Load(found.store.buffer, found.store.indices)
    last = operation(element, tir.Reduce(found.fold, tir.Load(lanes, here)))
    return tir.Alloc(
        lanes,
        fold.seq(
            tir.Store(lanes, here, identity),
            _visit(replace_node(stmt, found.store, step)),
            found.store.with_fields(value=last),
        ),
    )


def _delayed(stmt: tir.Stmt, loop: tir.For) -> LaneFold | None:
    """What `stmt` folds, if it is alone in the loop with an element that the loop does not move."""
    found = lane_fold(stmt)
    if found is None or not _stays(found.store, loop):
        return None
    buffer = found.store.buffer
    uses = sum(load.buffer is buffer for load in find(loop.body, tir.Load))
    uses += sum(store.buffer is buffer for store in find(loop.body, tir.Store))
    return found if uses == 2 else None


def _stays(store: tir.Store, loop: tir.For) -> bool:
    """Whether the element is the same in every iteration, of inner loops too."""
    inner = {s.var for s in walk_stmts(loop) if type(s) is tir.For}
    return all(inner.isdisjoint(free_vars(index)) for index in store.indices)
