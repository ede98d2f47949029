"""In which order a block without reductions walks its buffers: what decides about its recipe."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import loads_of
from tilewright.tensor.visit import free_vars, walk

__all__ = [
    "across_lines",
    "dense_loops",
    "has_border",
    "is_scattered",
    "joined_loops",
    "reads_data",
]

Access = tuple[tir.Buffer, tuple[tir.Expr, ...]]


def across_lines(block: tir.Block) -> int | None:
    """The iterator along which a source is contiguous, if the result is so along another one."""
    position = {it.var: n for n, it in enumerate(block.iters)}
    inner = block.iters[-1].var
    for load in loads_of(block):
        if not load.indices or inner in free_vars(load.indices[-1]):
            continue
        moving = any(inner in free_vars(index) for index in load.indices[:-1])
        found = [position[v] for v in free_vars(load.indices[-1]) if v in position]
        if moving and len(found) == 1 and not any(reads_data(index) for index in load.indices):
            return found[0]
    return None


def is_scattered(block: tir.Block) -> bool:
    """Whether data decides what is written."""
    store = block.body
    return isinstance(store, tir.Store) and any(reads_data(index) for index in store.indices)


def has_border(block: tir.Block) -> bool:
    """Whether some value is chosen by a comparison of iterators."""
    iters = {it.var for it in block.iters}
    return any(
        isinstance(part, tir.Select)
        and bool(free_vars(part.cond) & iters)
        and not reads_data(part.cond)
        for part in walk(block.body)
    )


def reads_data(expr: tir.Expr) -> bool:
    """Whether the value of an expression depends on the contents of a buffer."""
    return any(isinstance(part, tir.Load) for part in walk(expr))


def dense_loops(block: tir.Block) -> int:
    """How many of the innermost loops may be one: every access walks them as one run of memory.

    All of them if every access walks its buffer in the order of the iterators, or does not move.
    """
    store = block.body
    if not isinstance(store, tir.Store) or block.predicate != tir.TRUE:
        return 1
    accesses = _accesses(block, store)
    count = 1
    while count < len(block.iters) and all(_is_run(block, count + 1, *a) for a in accesses):
        count += 1
    return count


def joined_loops(block: tir.Block, last: int) -> int:
    """How many loops, up to that of the iterator `last`, may be one: every access steps evenly.

    Their dimensions lie beside each other in every buffer, or it has none of them.
    """
    store = block.body
    if not isinstance(store, tir.Store) or block.predicate != tir.TRUE:
        return 1
    accesses = _accesses(block, store)
    count = 1
    while count <= last and all(
        _is_even(block.iters[last - count : last + 1], *a) for a in accesses
    ):
        count += 1
    return count


def _accesses(block: tir.Block, store: tir.Store) -> list[Access]:
    loads = [(load.buffer, load.indices) for load in loads_of(block)]
    return [(store.buffer, store.indices), *loads]


def _is_even(own: Sequence[tir.Iter], buffer: tir.Buffer, indices: tuple[tir.Expr, ...]) -> bool:
    """Whether iterators are neighbouring dimensions of a buffer, all but the first in full."""
    order = tuple(it.var for it in own)
    used = [d for d, index in enumerate(indices) if free_vars(index) & set(order)]
    if not used:
        return True
    if used != list(range(used[0], used[0] + len(own))):
        return False
    sizes = buffer.shape[used[1] : used[-1] + 1]
    whole = all(size == it.extent for size, it in zip(sizes, own[1:], strict=True))
    return whole and tuple(indices[d] for d in used) == order


def _is_run(
    block: tir.Block, count: int, buffer: tir.Buffer, indices: tuple[tir.Expr, ...]
) -> bool:
    """Whether a buffer's last dimensions are the last `count` iterators, or none uses them."""
    own = block.iters[-count:]
    order = tuple(it.var for it in own)
    used = [bool(free_vars(index) & set(order)) for index in indices]
    if not any(used):
        return True
    if len(indices) < count or any(used[:-count]) or tuple(indices[-count:]) != order:
        return False
    return all(d == it.extent for d, it in zip(buffer.shape[-count:], own, strict=True))
