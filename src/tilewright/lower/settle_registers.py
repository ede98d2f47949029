"""Register buffers get what they need to become registers, or become memory.

A register buffer has a constant size and, once everything is unrolled, constant indices. Serial
loops whose variable indexes one are therefore unrolled; a buffer for which that is not enough (its
size is symbolic or large, an index comes from memory or from a loop outside) is moved to memory,
with a remark.
"""

from __future__ import annotations

from tilewright.lower import fold
from tilewright.lower.context import Context
from tilewright.lower.rewrite_accesses import AccessRewriter
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import free_vars, holds, walk, walk_stmts

__all__ = ["MAX_ELEMENTS", "in_memory", "settle_registers"]

MAX_ELEMENTS = 4096


def settle_registers(func: tir.Func, context: Context) -> tir.Func:
    """Unroll the loops that index register buffers; move the others to memory."""
    allocs = [s for s in walk_stmts(func) if type(s) is tir.Alloc]
    registers = [a for a in allocs if a.buffer.scope is tir.Scope.REGISTER]
    unrolled: set[tir.Var] = set()
    moved: list[tir.Buffer] = []
    for alloc in registers:
        loops = {s.var: s for s in walk_stmts(alloc.body) if type(s) is tir.For}
        reason = _obstacle(alloc, loops)
        if reason:
            moved.append(alloc.buffer)
            context.remark(f"`{alloc.buffer.name}` is kept in memory: {reason}")
        else:
            wanted = _index_vars(alloc)
            unrolled |= {v for v in wanted if loops[v].kind is tir.LoopKind.SERIAL}
    body = _unrolled(func.body, unrolled) if unrolled else func.body
    return in_memory(func.with_fields(body=body), moved)


def in_memory(func: tir.Func, buffers: list[tir.Buffer]) -> tir.Func:
    """The program with these buffers in scope `memory`."""
    if not buffers:
        return func
    moved = {b: b.with_fields(scope=tir.Scope.MEMORY) for b in buffers}
    return func.with_fields(body=AccessRewriter(moved).statement(func.body))


def _obstacle(alloc: tir.Alloc, loops: dict[tir.Var, tir.For]) -> str:
    """Why the buffer cannot be in registers; empty if it can."""
    elements = 1
    for size in alloc.buffer.shape:
        elements *= tir.int_value(size) or MAX_ELEMENTS + 1
    if elements > MAX_ELEMENTS:
        return f"its size must be a number and at most {MAX_ELEMENTS} elements"
    if any(loop.kind is tir.LoopKind.PARALLEL for loop in loops.values()):
        return "several threads use it"
    for index in _indices(alloc):
        if holds(index, tir.Load):
            return "an index is read from memory"
    for var in _index_vars(alloc):
        if var not in loops:
            return f"its indices depend on `{var.name}` outside of it"
        extent = loops[var].extent
        if tir.int_value(extent) is None and type(extent) is not tir.TileSize:
            return f"the loop `{var.name}` over it has no constant extent"
    return ""


def _indices(alloc: tir.Alloc) -> list[tir.Expr]:
    return [
        index
        for node in walk(alloc.body)
        if isinstance(node, (tir.Load, tir.Store)) and node.buffer is alloc.buffer
        for index in node.indices
    ]


def _index_vars(alloc: tir.Alloc) -> list[tir.Var]:
    """The variables in the indices of a buffer, in order of appearance."""
    found: dict[tir.Var, None] = {}
    for index in _indices(alloc):
        found.update(dict.fromkeys(sorted(free_vars(index), key=lambda v: v.name)))
    return list(found)


def _unrolled(stmt: tir.Stmt, variables: set[tir.Var]) -> tir.Stmt:
    new = fold.map_parts(stmt, lambda part: _unrolled(part, variables))
    if type(new) is tir.For and new.var in variables:
        return new.with_fields(kind=tir.LoopKind.UNROLLED)
    return new
