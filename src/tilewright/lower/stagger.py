"""Gaps in temporary buffers, so that planes which are used together do not share sets of a cache.

The address of an element tells in which set of the first cache its line may lie. With planes a
multiple of 4096 bytes apart, the same place of all planes has the same set: a transform that writes
to 36 planes in turn, in a cache of 8 ways, throws out its own lines before they are full. A gap of
one line between planes gives each of them a set of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import free_vars, walk

__all__ = ["gaps_of"]


def gaps_of(
    func: tir.Func, buffers: Iterable[tir.Buffer], target: Target
) -> dict[tir.Buffer, tuple[int, int]]:
    """For buffers with such planes the dimension that counts them, and elements between them.

    Where loops run through planes without a stop, nothing comes between these.
    """
    near = target.cache(1)
    period = near.size_bytes // near.ways
    wanted: dict[tir.Buffer, set[int]] = {}
    for buffer in buffers:
        sizes = [tir.int_value(d) for d in buffer.shape]
        found = {
            d
            for d in range(len(sizes) - 1)
            if None not in sizes
            and prod(s or 0 for s in sizes[d + 1 :]) * buffer.dtype.size_bytes % period == 0
            and prod(s or 0 for s in sizes[: d + 1]) >= near.ways
        }
        if found and 0 not in sizes:
            wanted[buffer] = found
    if not wanted:
        return {}
    for part in walk(func.body):
        if isinstance(part, tir.Load | tir.Store | tir.Prefetch) and part.buffer in wanted:
            used = [free_vars(index) for index in part.indices]
            wanted[part.buffer] -= {
                d
                for d in wanted[part.buffer]
                if set[tir.Var]().union(*used[: d + 1]) & set[tir.Var]().union(*used[d + 1 :])
            }
    line = near.line_bytes
    return {b: (max(dims), line // b.dtype.size_bytes) for b, dims in wanted.items() if dims}
