"""Attention of a few queries, as in decoding: memory is the limit, keys and values stream by once.

    for batch, head of keys:                              (fused, parallel)
        for key, head that shares it, query: score        (lanes along the features, then folded)
        logits, greatest value, powers, their sum         (lanes along the keys)
        for panel of features:
            for key: sums of all these heads              (registers)
            result

Lanes along the queries would be mostly empty here; the scores of a query with all keys are short.
"""

from __future__ import annotations

from tilewright.schedule.recipes.attention.steps import Steps
from tilewright.schedule.recipes.context import vector_tail

__all__ = ["schedule_single"]


def schedule_single(steps: Steps) -> None:
    """Apply all steps."""
    s, r, context = steps.s, steps.roles, steps.context
    point = steps.point
    *batch, query, feature, key = s.loops(r.sums)
    rows = [query]
    if point.heads > 1:
        batch[-1], sharing = s.split(batch[-1], point.heads)
        rows = [sharing, query]
    panels, lane = s.split(feature, point.columns)
    s.set_scope(steps.buffer(r.sums), "register")
    s.reorder(*batch, panels, key, *rows, lane)
    steps.row = steps.shared = str(s.fuse(*batch)) if len(batch) > 1 else batch[0]
    steps.finish_rows(s.reverse_compute_at(r.result, panels))
    for name in (r.total, r.powers, r.peak, r.logits, r.scores):
        s.compute_at(name, steps.row)
    steps.finish_product(r.sums, key, rows=len(rows))
    for name in (r.total, r.peak):
        walk = s.loops(name)[-1]
        s.decompose_reduction(name, walk)
        vector_tail(context, walk, point.lanes, point.folded)
    for name in (r.powers, r.logits):
        vector_tail(context, s.loops(name)[-1], point.lanes, point.vectors)
    _finish_scores(steps)
    steps.share()


def _finish_scores(steps: Steps) -> None:
    """The scores of one key with all queries that share it, a few keys at a time."""
    s, r = steps.s, steps.roles
    loops = s.loops(r.scores)
    *around, key, walk = loops[loops.index(steps.row) + 1 :]
    tiles, inner = s.split(key, steps.point.keys)
    s.reorder(tiles, inner, *around, walk)
    for loop in (inner, *around):
        s.unroll(loop)
    s.decompose_reduction(r.scores, walk)
    s.vectorize(walk)
