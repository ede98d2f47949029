"""Gaps in temporary buffers, so that planes which are used together do not share sets of a cache.

The address of an element tells in which set of the first cache its line may lie. With planes a
multiple of 4096 bytes apart, the same place of all planes has the same set: a transform that writes
to 36 planes in turn, in a cache of 8 ways, throws out its own lines before they are full. A gap
between planes, so that they are one line more apart than that, gives each of them a set of its own.
Less than a line beside such a multiple, few planes still fill a set.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from tilewright.target import Cache, Target
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
    wanted: dict[tir.Buffer, set[int]] = {}
    for buffer in buffers:
        sizes = [tir.int_value(d) for d in buffer.shape]
        found = {
            d
            for d in range(len(sizes) - 1)
            if None not in sizes
            and abs(_beside(buffer, d, near)) < near.line_bytes
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
    return {b: (max(dims), _gap(b, max(dims), near)) for b, dims in wanted.items() if dims}


def _beside(buffer: tir.Buffer, dimension: int, near: Cache) -> int:
    """Bytes by which planes are further apart than the nearest multiple; less than 0: nearer."""
    period = near.size_bytes // near.ways
    plane = prod(tir.int_value(d) or 0 for d in buffer.shape[dimension + 1 :])
    size = plane * buffer.dtype.size_bytes
    return size - max(1, round(size / period)) * period


def _gap(buffer: tir.Buffer, dimension: int, near: Cache) -> int:
    """Elements between planes."""
    return (near.line_bytes - _beside(buffer, dimension, near)) // buffer.dtype.size_bytes
