"""A long reduction shared by threads, where there are too few register tiles for them (split-K).

    for part:                                   (parallel)
        partial[part, …] = Σ left · right       of this part of the reduction
    out = epilogue(Σ partial)                   over the parts

A deep layer on a small map, or a classifier with few results, has one or two tiles and a reduction
of thousands of steps: without this, one thread would do all of it.
"""

from __future__ import annotations

import math

from tilewright.schedule.recipes import context as contexts
from tilewright.schedule.recipes.context import Context, extent_of
from tilewright.schedule.recipes.contraction.plan import plan_contraction
from tilewright.schedule.recipes.contraction.roles import loops_of, shape_of
from tilewright.tensor.analysis.structure import contraction

__all__ = ["split_reduction"]

# How much more work there must be than is worth a second thread: the parts are summed up, too.
_WORTH = 3


def split_reduction(context: Context, block: str) -> str | None:
    """The block of partial sums, one for each thread; None where tiles keep all of them busy."""
    s, threads = context.schedule, context.threads
    roles = contraction(s.block(block))
    if threads == 1 or roles is None or context.loops is not None:
        return None
    shape = shape_of(context, roles)
    plan = plan_contraction(shape, context.target)
    rows = math.ceil(shape.rows / plan.tile_rows)
    panels = math.ceil(shape.columns / plan.tile_columns)
    busy = shape.batch * panels >= threads or rows >= 2 * threads
    if busy or plan.cycles <= _WORTH * contexts.PARALLEL_CYCLES:
        return None
    extents = {loop: extent_of(context, loop) or 1 for loop in loops_of(context, block).reduce}
    longest = max(extents, key=lambda loop: extents[loop])
    if extents[longest] % threads:
        return None
    parts, _ = s.split(longest, extents[longest] // threads)
    return str(s.rfactor(parts))
