"""A long reduction shared by threads, where there are too few register tiles for them (split-K).

    for part:                                   (parallel)
        partial[part, …] = Σ left · right       of this part of the reduction
    out = epilogue(Σ partial)                   over the parts

A deep layer on a small map, or a classifier with few results, has one or two tiles and a reduction
of thousands of steps: without this, one thread would do all of it.

Partial sums are an array with a dimension for the parts, so that all parts are equally long. A
length that the threads do not divide is cut into a few more parts than there are threads: 1000
steps for three threads are 8 parts of 125, of which no thread takes more than three.
"""

from __future__ import annotations

from tilewright.schedule.recipes.context import Context, extent_of
from tilewright.schedule.recipes.contraction.roles import loops_of

__all__ = ["lengths_of", "parts_of", "split_reduction"]

_TURNS = 4
"""Parts for each thread, at most: every one of them is an array of partial sums."""


def lengths_of(context: Context, block: str) -> dict[str, int]:
    """Loops of the reduction of known length."""
    extents = {loop: extent_of(context, loop) for loop in loops_of(context, block).reduce}
    return {loop: extent for loop, extent in extents.items() if extent is not None}


def parts_of(context: Context, block: str) -> tuple[int, ...]:
    """Numbers of equal parts, of one loop of the reduction, that threads could share."""
    threads = context.threads
    if threads == 1:
        return ()
    lengths = lengths_of(context, block).values()
    counts = range(threads, _TURNS * threads + 1)
    return tuple(n for n in counts if any(length % n == 0 for length in lengths))


def split_reduction(context: Context, block: str, parts: int) -> str:
    """The block of partial sums over so many parts, of the longest loop that has them."""
    s, lengths = context.schedule, lengths_of(context, block)
    whole = {loop: length for loop, length in lengths.items() if length % parts == 0}
    loop = max(whole, key=whole.__getitem__)
    outer, _ = s.split(loop, whole[loop] // parts)
    return str(s.rfactor(outer))
