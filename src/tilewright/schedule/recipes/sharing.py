"""How threads share a nest of loops: the leading ones of it become one, whose iterations are dealt.

Few iterations leave threads idle, many loops fused cost each iteration a division to tell its place
in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.schedule.recipes.context import SHARES, Context, extent_of, share_loop
from tilewright.schedule.recipes.table import Column, Costs
from tilewright.schedule.recipes.work import ASSUMED_EXTENT
from tilewright.target import MachineModel

__all__ = [
    "Nest",
    "leading_iterations",
    "nest_of",
    "share_nest",
    "share_several",
    "shared_cycles",
    "ways_to_share",
]


@dataclass(frozen=True)
class Nest:
    """Extents of loops that may be shared, and whether each is a number."""

    extents: tuple[int, ...]
    known: tuple[bool, ...]

    @property
    def iterations(self) -> int:
        """Of all of them."""
        return int(np.prod(self.extents, dtype=np.float64)) if self.extents else 1


def nest_of(context: Context, loops: Sequence[str]) -> Nest:
    """Loops as they are now."""
    found = [extent_of(context, loop) for loop in loops]
    extents = tuple(ASSUMED_EXTENT if e is None else e for e in found)
    return Nest(extents, tuple(e is not None for e in found))


def ways_to_share(loops: int, threads: int) -> dict[str, list[int]]:
    """Columns `shared` and `parallel`: no threads, or so many of the leading loops for them."""
    counts = range(1, loops + 1) if threads > 1 else ()
    return {"shared": [0, *counts], "parallel": [0, *(1 for _ in counts)]}


def leading_iterations(extents: Sequence[Costs | Column | float], shared: Column) -> Costs:
    """Iterations of the first `shared` of those loops that run more than once."""
    left, total = shared.astype(np.float64), np.ones(len(shared))
    for extent in extents:
        counts = (np.asarray(extent) > 1) & (left > 0)
        total = np.where(counts, total * extent, total)
        left = left - counts
    return np.asarray(total)


def shared_cycles(
    machine: MachineModel,
    cycles: Costs,
    iterations: Costs,
    fused: Column,
    threads: int,
    parallel: Column,
) -> Costs:
    """Cycles until the last thread is done, of `cycles` for one thread and so many iterations.

    The nominal threads are to be busy, and `SHARES` times as many, which are rarer, are to find
    work.
    """
    count = np.maximum(1.0, np.asarray(iterations, np.float64))
    many = SHARES * threads
    share = (3 * np.ceil(count / threads) + SHARES * np.ceil(count / many)) / (4 * count)
    digits = count * np.maximum(0, fused - 1) * machine.loops.digit_cycles
    return np.asarray(
        np.where(parallel != 0, (cycles + digits) * share + machine.barrier_cycles, cycles)
    )


def share_nest(context: Context, loops: Sequence[str], shared: int, *, parallel: bool) -> None:
    """Let threads share the first of some loops as one."""
    if not parallel or not shared:
        return
    first = list(loops[:shared])
    one = str(context.schedule.fuse(*first)) if len(first) > 1 else first[0]
    share_loop(context, one, parallel=True)


def share_several(context: Context, around: list[str], shared: int, *, parallel: bool) -> None:
    """Let threads share the first loops that run more than once, and those between them."""
    several = [loop for loop in around if extent_of(context, loop) != 1]
    if not parallel or not shared:
        return
    first, last = around.index(several[0]), around.index(several[shared - 1])
    share_nest(context, around[first : last + 1], last + 1 - first, parallel=True)
