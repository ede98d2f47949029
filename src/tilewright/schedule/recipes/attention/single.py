"""Attention of a few queries, as in decoding: memory is the limit, keys and values stream by once.

    for batch, head, query:                               (fused, parallel)
        for key: score                                    (lanes along the features, then folded)
        logits, greatest value, powers, their sum         (lanes along the keys)
        sums of all features, result                      (registers)

Lanes along the queries would be mostly empty here; the scores of one query with all keys are short.
"""

from __future__ import annotations

from tilewright.schedule.recipes.attention.steps import Steps
from tilewright.schedule.recipes.context import vector_tail

__all__ = ["schedule_single"]

# Vectors per statement: of a map, and of a fold, whose lanes are combined once for all of them.
_VECTORS = 4
_FOLDED_VECTORS = 16

# Keys whose scores are worked on side by side.
_KEYS_AT_ONCE = 4


def schedule_single(steps: Steps) -> None:
    """Apply all steps."""
    s, r, context = steps.s, steps.roles, steps.context
    lanes = steps.plan.lanes
    *around, feature, key = s.loops(r.sums)
    steps.row = steps.shared = str(s.fuse(*around)) if len(around) > 1 else around[0]
    panels, lane = s.split(feature, steps.plan.columns)
    s.set_scope(steps.buffer(r.sums), "register")
    s.reorder(panels, key, lane)
    *_, column = s.reverse_compute_at(r.result, panels)
    s.vectorize(column)
    for name in (r.total, r.powers, r.peak, r.logits, r.scores):
        s.compute_at(name, steps.row)
    steps.finish_product(r.sums, key, rows=0)
    for name in (r.total, r.peak):
        walk = s.loops(name)[-1]
        s.decompose_reduction(name, walk)
        vector_tail(context, walk, lanes, _FOLDED_VECTORS)
    for name in (r.powers, r.logits):
        vector_tail(context, s.loops(name)[-1], lanes, _VECTORS)
    *_, key, walk = s.loops(r.scores)
    _, inner = s.split(key, _KEYS_AT_ONCE)
    s.unroll(inner)
    s.decompose_reduction(r.scores, walk)
    s.vectorize(walk)
    steps.share()
