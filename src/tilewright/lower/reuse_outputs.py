"""An intermediate that is turned into an output, element by element, lives in that output.

    E = alloc(f32[128, 768])
    for j: E[i, j] = exp(X[i, j] - m)         for j: Y[i, j] = exp(X[i, j] - m)
    for j: s = s + E[i, j]                →   for j: s = s + Y[i, j]
    for j: Y[i, j] = E[i, j] * r              for j: Y[i, j] = Y[i, j] * r

The first pass then brings the output's lines into the cache while it has arithmetic to do, and the
last one finds them there. It is done only where every use of the intermediate comes before the
output is written, in other loops, and touches exactly the part that the output gets there.
"""

from __future__ import annotations

from tilewright.lower.accesses import Access, accesses_of
from tilewright.lower.context import Context
from tilewright.lower.extremes import extremes
from tilewright.tensor import ir as tir
from tilewright.tensor.node import Node
from tilewright.tensor.visit import find, map_children, rewrite, walk_stmts

__all__ = ["reuse_outputs"]


def reuse_outputs(func: tir.Func, context: Context) -> tir.Func:
    """Replace intermediates by outputs where nothing else changes."""
    del context
    if not any(_is_candidate(s) for s in walk_stmts(func)):
        return func
    writes = [s.buffer for s in walk_stmts(func) if type(s) is tir.Store]
    outputs = [p for p in func.params if writes.count(p) == 1 and not p.layout]
    loaded = {load.buffer for load in find(func.body, tir.Load)}
    free = [p for p in outputs if p not in loaded]

    def visit(stmt: Node) -> Node:
        if isinstance(stmt, tir.Expr):
            return stmt
        if _is_candidate(stmt):
            assert isinstance(stmt, tir.Alloc)
            for output in free:
                if _can_live_in(stmt, output):
                    free.remove(output)
                    return visit(_moved(stmt, output))
        return map_children(stmt, visit)

    return func.with_fields(body=visit(func.body))


def _is_candidate(stmt: Node) -> bool:
    return type(stmt) is tir.Alloc and stmt.buffer.scope is tir.Scope.MEMORY


def _moved(alloc: tir.Alloc, output: tir.Buffer) -> tir.Stmt:
    def change(part: Node) -> Node | None:
        if isinstance(part, (tir.Load, tir.Store)) and part.buffer is alloc.buffer:
            return part.with_fields(buffer=output)
        return None

    return rewrite(alloc.body, change)


def _can_live_in(alloc: tir.Alloc, output: tir.Buffer) -> bool:
    buffer = alloc.buffer
    if buffer.shape != output.shape or buffer.dtype != output.dtype:
        return False
    last = next(
        (s for s in walk_stmts(alloc.body) if type(s) is tir.Store and s.buffer is output), None
    )
    if last is None or not _turns_into(last, buffer):
        return False
    found = accesses_of(alloc.body, (buffer, output))  # with the loops inside of the allocation
    (written,) = found[output]
    others = [a for a in found[buffer] if not _is_with(a, written)]
    return all(_comes_before(a, written) for a in others) and all(
        _same_part(a, written) for a in found[buffer]
    )


def _turns_into(store: tir.Store, buffer: tir.Buffer) -> bool:
    """Whether the element of the output is made from the same element of the intermediate."""
    loads = [load for load in find(store.value, tir.Load) if load.buffer is buffer]
    return bool(loads) and all(load.indices == store.indices for load in loads)


def _is_with(access: Access, written: Access) -> bool:
    """Whether an access is a load of the statement that writes the output."""
    return not access.writes and access.number == written.number - 1  # it reads, then it writes


def _comes_before(access: Access, written: Access) -> bool:
    """Whether an access is done, in all iterations, when the output is first written."""
    ours = {var for var, _ in written.loops}
    return access.number < written.number and not any(var in ours for var, _ in access.loops)


def _same_part(access: Access, written: Access) -> bool:
    """Whether an access touches exactly what is written of the output."""
    if access.conditions or written.conditions:
        return False
    for mine, its in zip(access.indices, written.indices, strict=True):
        here, there = extremes(mine, access.loops), extremes(its, written.loops)
        if here is None or there is None or here != there:
            return False
    return True
