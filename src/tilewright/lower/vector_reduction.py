"""Vector loops whose iterations all store to one element: reductions, or the last store wins.

A short reduction folds its vectors as a tree and then the lanes. A long one keeps a few vectors of
partial results in registers while the loop runs, enough to hide the latency of one operation:

    for k in vectorized(n):         part = identity × 4 vectors
        s = s + A[k]           →    for k in range(n // 32): part += A[4 vectors]
                                    s = s + Reduce(add, part)
                                    … the rest of the iterations
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from tilewright.lower import fold
from tilewright.lower.masked_values import MaskedValues
from tilewright.lower.vector_values import CannotVectorize, VectorValues
from tilewright.tensor import ir as tir
from tilewright.tensor.build import fold_identity
from tilewright.tensor.visit import find, free_vars

__all__ = ["PARTS", "Reduction", "in_registers", "reduction_in", "shared_store"]

PARTS: Final = 4
"""Vectors of partial results of a long reduction."""

FOLDS: Final = {
    tir.Add: tir.Fold.ADD,
    tir.Mul: tir.Fold.MUL,
    tir.Min: tir.Fold.MIN,
    tir.Max: tir.Fold.MAX,
}

MakeChunk = Callable[[tir.Expr], VectorValues]


class Reduction(NamedTuple):
    """`element = kind(element, step)`, the same element in all iterations."""

    element: tir.Load
    kind: type[tir.Binary]
    step: tir.Expr

    def stored(self, value: tir.Expr) -> tir.Store:
        """The element gets a new value."""
        return tir.Store(self.element.buffer, self.element.indices, value)


def reduction_in(stmt: tir.Stmt, var: tir.Var) -> Reduction | None:
    """The reduction over `var` that the statement is; None if it is none."""
    if type(stmt) is not tir.Store or any(var in free_vars(i) for i in stmt.indices):
        return None
    element, value = tir.Load(stmt.buffer, stmt.indices), stmt.value
    if type(value) not in FOLDS or not isinstance(value, tir.Binary):
        return None
    for this, step in ((value.a, value.b), (value.b, value.a)):
        if this == element and not _reads(step, stmt.buffer):
            return Reduction(element, type(value), step)
    return None


def _reads(expr: tir.Expr, buffer: tir.Buffer) -> bool:
    return any(load.buffer is buffer for load in find(expr, tir.Load))


def shared_store(store: tir.Store, chunks: list[VectorValues]) -> tir.Stmt:
    """All iterations store to one element: a reduction, or the last one wins."""
    found = reduction_in(store, chunks[0].var)
    if found is not None:
        return found.stored(_folded(found, chunks))
    if _reads(store.value, store.buffer):
        raise CannotVectorize(
            f"an iteration reads what another one writes to `{store.buffer.name}`"
        )
    last = chunks[-1]
    if isinstance(last, MaskedValues):
        raise CannotVectorize("a condition says which iteration is the last to store")
    at = fold.fold_binary(tir.Add, last.base, tir.Const(last.lanes - 1))
    return fold.substitute(store, {last.var: at})


def _folded(reduction: Reduction, chunks: list[VectorValues]) -> tir.Expr:
    """The element and all lanes of the step folded into one value; equal chunks are joined first,
    as a tree, so that no long chain of dependent operations arises.
    """
    equal: dict[int, list[tir.Expr]] = {}
    identity = fold_identity(FOLDS[reduction.kind], reduction.element.dtype)
    for chunk in chunks:
        if chunk.lanes == 1:
            value = fold.substitute(reduction.step, {chunk.var: chunk.base})
        else:
            value = chunk.folded(reduction.step, identity)
        equal.setdefault(chunk.lanes, []).append(value)
    result: tir.Expr = reduction.element
    for lanes, values in equal.items():
        joined = _tree(reduction.kind, values)
        result = reduction.kind(result, _across(reduction, joined) if lanes > 1 else joined)
    return result


def _tree(kind: type[tir.Binary], values: list[tir.Expr]) -> tir.Expr:
    if len(values) == 1:
        return values[0]
    half = (len(values) + 1) // 2
    return kind(_tree(kind, values[:half]), _tree(kind, values[half:]))


def _across(reduction: Reduction, value: tir.Expr) -> tir.Expr:
    return tir.Reduce(FOLDS[reduction.kind], value)


def in_registers(
    reduction: Reduction, var: tir.Var, groups: tir.Expr, lanes: int, chunk: MakeChunk
) -> tir.Stmt:
    """A loop over `groups` of `PARTS` vectors; `chunk(base)` begins at iteration `base`."""
    dtype = reduction.element.dtype
    name = f"{reduction.element.buffer.name}_parts"
    size = (tir.Const(PARTS * lanes),)
    parts = tir.Buffer(name, size, dtype, tir.Scope.REGISTER)
    identity = tir.Broadcast(fold_identity(FOLDS[reduction.kind], dtype), lanes)
    starts: list[tir.Stmt] = []
    steps: list[tir.Stmt] = []
    loads: list[tir.Expr] = []
    for n in range(PARTS):
        place = (tir.Ramp(tir.Const(n * lanes), tir.Const(1), lanes),)
        loads.append(tir.Load(parts, place))
        base = fold.fold_binary(tir.Add, var * (PARTS * lanes), tir.Const(n * lanes))
        step = chunk(base).vector(reduction.step)
        starts.append(tir.Store(parts, place, identity))
        steps.append(tir.Store(parts, place, reduction.kind(loads[-1], step)))
    loop = tir.For(var, groups, fold.seq(*steps))
    total = _across(reduction, _tree(reduction.kind, loads))
    end = reduction.stored(reduction.kind(reduction.element, total))
    return tir.Alloc(parts, fold.seq(*starts, loop, end))
