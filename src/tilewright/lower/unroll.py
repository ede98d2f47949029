"""Unrolled loops become their iterations, one after another, with the numbers put in.

Behind it register buffers have constant indices; one that has not (its loop was too long to unroll)
is moved to memory. A loop with an extent that is not a number stays a loop, with a remark.
"""

from __future__ import annotations

from tilewright.lower import fold
from tilewright.lower.context import Context
from tilewright.lower.settle_registers import in_memory
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import find, holds, walk_stmts

__all__ = ["MAX_STATEMENTS", "unroll"]

MAX_STATEMENTS = 16384
"""A loop is not unrolled into more statements than this."""


def unroll(func: tir.Func, context: Context) -> tir.Func:
    """Replace every unrolled loop."""
    if any(type(s) is tir.For and s.kind is tir.LoopKind.UNROLLED for s in walk_stmts(func)):
        func = func.with_fields(body=_unrolled(func.body, context))
    loose = _loose_registers(func)
    for buffer in loose:
        context.remark(f"`{buffer.name}` is kept in memory: not all loops over it are unrolled")
    return in_memory(func, loose)


def _unrolled(stmt: tir.Stmt, context: Context) -> tir.Stmt:
    new = fold.map_parts(stmt, lambda part: _unrolled(part, context))
    if type(new) is not tir.For or new.kind is not tir.LoopKind.UNROLLED:
        return new
    times = tir.int_value(new.extent)
    reason = ""
    if times is None:
        reason = "its extent is not constant"
    elif times * sum(type(s) is tir.Store for s in walk_stmts(new)) > MAX_STATEMENTS:
        reason = f"it would have more than {MAX_STATEMENTS} statements"
    if reason or times is None:
        context.remark(f"loop `{new.var.name}` is not unrolled: {reason}")
        return new.with_fields(kind=tir.LoopKind.SERIAL)
    return fold.seq(*(fold.copied(new.body, {new.var: tir.Const(i)}) for i in range(times)))


def _loose_registers(func: tir.Func) -> list[tir.Buffer]:
    """Register buffers with an index that is not a number."""
    found: dict[tir.Buffer, None] = {}
    for store in find(func.body, tir.Store):
        accesses: list[tir.Store | tir.Load] = [store, *find(store, tir.Load)]
        for access in accesses:
            buffer = access.buffer
            if buffer.scope is not tir.Scope.REGISTER or buffer in found:
                continue
            if any(holds(index, tir.Var, tir.Load) for index in access.indices):
                found[buffer] = None
    return list(found)
