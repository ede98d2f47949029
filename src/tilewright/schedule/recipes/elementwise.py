"""Elementwise blocks: one pass over memory, full vectors, threads over what lies outside."""

from __future__ import annotations

from tilewright.schedule.recipes.context import (
    Context,
    extent_of,
    lanes_of,
    parallelize,
    vector_tail,
    work_of,
)
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import loads_of
from tilewright.tensor.visit import free_vars

__all__ = ["schedule_elementwise"]

# Vectors per statement: enough independent work to hide the latency of a polynomial.
_VECTORS = 4


def schedule_elementwise(context: Context, block: str) -> None:
    """Vectorise along the innermost dimension of the result; fuse dimensions that are dense."""
    s = context.schedule
    loops = s.loops(block)
    if not loops:
        return
    cycles = work_of(context, block)
    if len(loops) > 1 and is_dense(s.block(block)):
        loops = (s.fuse(*loops),)
    inner = loops[-1]
    outer, _ = vector_tail(context, inner, lanes_of(context, block), _VECTORS)
    around = [*loops[:-1], *([outer] if outer else [])]
    if not around:
        return
    threads_over = around[0]
    if len(around) > 1 and (extent_of(context, around[0]) or 0) < 4 * context.threads:
        threads_over = s.fuse(*around)
    parallelize(context, threads_over, cycles)


def is_dense(block: tir.Block) -> bool:
    """Whether every access walks its buffer in the order of the iterators, or does not move."""
    order = tuple(it.var for it in block.iters)
    store = block.body
    if not isinstance(store, tir.Store) or block.predicate != tir.TRUE:
        return False
    accesses = [(store.buffer, store.indices)]
    accesses += [(load.buffer, load.indices) for load in loads_of(block)]
    for buffer, indices in accesses:
        if not any(free_vars(index) for index in indices):
            continue
        if tuple(indices) != order:
            return False
        if any(d != it.extent for d, it in zip(buffer.shape, block.iters, strict=True)):
            return False
    return True
