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

import math
from collections.abc import Mapping

from tilewright.schedule.recipes.context import Context, extent_of
from tilewright.schedule.recipes.contraction.cycles import draft_contraction
from tilewright.schedule.recipes.contraction.roles import loops_of, shape_of
from tilewright.tensor.analysis.structure import contraction

__all__ = ["split_reduction"]

# How much more work there must be than is worth a second thread: the parts are summed up, too.
_WORTH = 3

# Parts for each thread, at most: every one of them is an array of partial sums.
_TURNS = 4


def split_reduction(context: Context, block: str) -> str | None:
    """The block of partial sums over parts of the reduction; None where tiles keep threads busy.

    A reduction whose known lengths have no such parts stays whole, which a remark tells.
    """
    s, threads = context.schedule, context.threads
    roles = contraction(s.block(block))
    if threads == 1 or roles is None or context.loops is not None:
        return None
    shape = shape_of(context, roles)
    point, cycles = draft_contraction(shape, context.target)
    rows = math.ceil(shape.rows / point.tile_rows)
    panels = math.ceil(shape.columns / point.tile_columns)
    shares = shape.batch * panels
    busy = shares >= threads or shares * rows >= 2 * threads
    if busy or cycles <= _WORTH * context.target.machine.barrier_cycles:
        return None
    extents = {loop: extent_of(context, loop) for loop in loops_of(context, block).reduce}
    known = {loop: extent for loop, extent in extents.items() if extent is not None}
    found = _parts(known, threads)
    if found is None:
        if len(known) == len(extents):
            lengths = " × ".join(map(str, known.values()))
            s.remarks.append(f"{block}: {threads} threads do not share a sum of {lengths} steps")
        return None
    loop, count = found
    parts, _ = s.split(loop, known[loop] // count)
    return str(s.rfactor(parts))


def _parts(extents: Mapping[str, int], threads: int) -> tuple[str, int] | None:
    """The loop to cut and the number of equal parts that leave the busiest thread the least work.

    Among those that leave the same, few parts of a long loop.
    """
    choices = [
        (math.ceil(count / threads) / count, count, -extent, number)
        for number, extent in enumerate(extents.values())
        for count in range(threads, _TURNS * threads + 1)
        if extent % count == 0
    ]
    if not choices:
        return None
    _, count, _, number = min(choices)
    return list(extents)[number], count
