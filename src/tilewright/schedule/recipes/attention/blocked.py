"""Attention by blocks of keys: a block's scores stay in the first cache, whatever the length.

    for batch, head, tile of queries:                     (fused, parallel)
        copy the queries with lanes along them
        for block of keys:
            for tile of keys: scores, logits              (registers)
            greatest value, powers, their sum             (lanes along the queries)
            for panel of features, tile of queries:
                sums of the block                         (registers)
        weights of the blocks from their greatest values
        result = weighted sum over the blocks             (registers)

Tiles that a causal mask hides are left out, and so are the keys that fill up the last block.
"""

from __future__ import annotations

from contextlib import suppress

from tilewright.errors import ScheduleError
from tilewright.schedule.recipes.attention.steps import Steps
from tilewright.schedule.recipes.contraction.tiling import even

__all__ = ["schedule_blocked"]


def schedule_blocked(steps: Steps) -> None:
    """Apply all steps."""
    s, r, point = steps.s, steps.roles, steps.point
    packed = steps.pack()
    s.round_up(r.scores, s.block(r.scores).iters[r.batch + 1].var.name, point.block)
    peak, total, sums, weight = s.factor_softmax(r.powers, point.block)
    if point.skips:
        with suppress(ScheduleError):  # a mask that does not hide whole tiles is only applied
            s.skip_masked(r.powers, point.keys, point.queries)
    copies = steps.copies()
    inner = (r.scores, r.logits, peak, r.powers, total, sums)
    steps.round_up(*copies, *inner, r.peak, weight, r.total, r.sums)
    stored = str(s.cache_write(sums))
    steps.turn(*copies, r.scores, r.logits, r.powers, peak, total, weight)
    steps.tile_result(1)
    for name in (r.total, weight, r.peak, stored, *reversed(inner), *copies):
        s.compute_at(name, steps.row)
    steps.finish_packed(*packed)
    block = _blocks_of_keys(steps, peak, total, sums)
    _finish_sums(steps, sums, stored)
    _finish_scores(steps, block)
    for name in (peak, total):
        _finish_fold(steps, name, block, grouped=True)
    _finish_powers(steps, block)
    for name in (r.peak, r.total):
        _finish_fold(steps, name, steps.row, grouped=False)
    for name in (weight, *copies):
        s.vectorize(steps.lanes_last(name, steps.row)[-1])
    steps.share()


def _blocks_of_keys(steps: Steps, peak: str, total: str, sums: str) -> str:
    """Bring all stages of a block of keys into one loop over the blocks."""
    s, r, point = steps.s, steps.roles, steps.point
    loops = s.loops(r.logits)
    inner = list(loops[loops.index(steps.row) + 1 :])
    key = inner[-1]
    block, _ = s.split(key, point.block)
    s.reorder(block, *inner[:-1])
    for name in (peak, r.powers, total, sums):
        s.reverse_compute_at(name, block)
    return str(block)


def _finish_sums(steps: Steps, sums: str, stored: str) -> None:
    """The second product of one block of keys."""
    s, point = steps.s, steps.point
    query, key = steps.loop_along(sums, steps.query), steps.loop_along(sums, steps.key)
    feature = steps.loop_along(sums, s.block(sums).iters[-2].var.name)
    tiles, inner = s.split(query, even(point.queries, point.rows))
    panels, lane = s.split(feature, point.columns)
    s.reorder(panels, tiles, key, inner, lane)
    steps.finish_rows(s.reverse_compute_at(stored, tiles))
    steps.finish_product(sums, key, point.keys)


def _finish_scores(steps: Steps, block: str) -> None:
    """The first product in register tiles, and what is done with them before they are stored."""
    s, r, point = steps.s, steps.roles, steps.point
    *_, key, query = steps.lanes_last(r.logits, block)
    tiles, rows = s.split(key, point.keys)
    panels, lane = s.split(query, point.panel)
    s.reorder(panels, tiles, rows, lane)
    s.set_scope(steps.buffer(r.scores), "register")
    s.compute_at(r.scores, tiles)
    s.vectorize(lane)
    s.unroll(rows)
    *_, query, key, walk = s.loops(r.scores)
    s.reorder(walk, key, query)
    steps.finish_product(r.scores, walk)


def _finish_fold(steps: Steps, name: str, around: str, *, grouped: bool) -> None:
    """A fold over keys or blocks of keys, lanes along the queries."""
    s = steps.s
    *_, key, query = steps.lanes_last(name, around)
    if grouped:
        key, each = s.split(key, steps.point.keys)
        s.unroll(each)
    init = s.decompose_reduction(name, key)
    s.vectorize(query)
    s.vectorize(s.loops(init)[-1])


def _finish_powers(steps: Steps, block: str) -> None:
    s = steps.s
    *_, key, query = steps.lanes_last(steps.roles.powers, block)
    s.split(key, steps.point.keys)
    s.vectorize(query)
