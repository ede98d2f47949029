"""Attention with few keys: the scores of a tile of queries with all of them stay in the cache.

for batch, head, tile of queries:                     (fused, parallel)
    copy the queries with lanes along them
    for tile of keys: scores, logits                  (registers)
    greatest value, powers, their sum                 (lanes along the queries)
    for panel of features, tile of queries:
        sums, result                                  (registers)
"""

from __future__ import annotations

from tilewright.schedule.recipes.attention.steps import Steps
from tilewright.schedule.recipes.context import extent_of
from tilewright.schedule.recipes.contraction.tiling import even

__all__ = ["schedule_whole"]


def schedule_whole(steps: Steps) -> None:
    """Apply all steps."""
    s, r = steps.s, steps.roles
    packed = steps.pack()
    copies = steps.copies()
    steps.round_up(*copies, r.scores, r.logits, r.peak, r.powers, r.total, r.sums)
    steps.turn(*copies, r.scores, r.logits, r.powers)
    steps.tile_result()
    for name in (r.total, r.powers, r.peak, r.logits, r.scores, *copies):
        s.compute_at(name, steps.row)
    steps.finish_packed(*packed)
    _finish_scores(steps)
    for name in (r.total, r.peak):
        *_, key, query = steps.lanes_last(name, steps.row)
        init = s.decompose_reduction(name, key)
        s.vectorize(query)
        s.vectorize(s.loops(init)[-1])
    for name in (r.powers, *copies):
        s.vectorize(steps.lanes_last(name, steps.row)[-1])
    steps.share()


def _finish_scores(steps: Steps) -> None:
    """The first product in register tiles, and what is done with them before they are stored."""
    s, r, point = steps.s, steps.roles, steps.point
    *_, key, query = steps.lanes_last(r.logits, steps.row)
    extent = extent_of(steps.context, key)
    tiles, rows = s.split(key, point.keys if extent is None else even(extent, point.keys))
    panels, lane = s.split(query, point.panel)
    s.reorder(panels, tiles, rows, lane)
    s.set_scope(steps.buffer(r.scores), "register")
    s.compute_at(r.scores, tiles)
    s.vectorize(lane)
    s.unroll(rows)
    *_, query, key, walk = s.loops(r.scores)
    s.reorder(walk, key, query)
    steps.finish_product(r.scores, walk)
