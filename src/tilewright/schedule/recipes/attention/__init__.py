"""Attention as one kernel: scores never leave the cache, and memory is read once per tile.

Vectors run along the queries up to the powers and along the features of the values after them, so
that keys and values are read as they are stored, and no lanes are ever folded. Few keys are worked
on as a whole (`whole.py`), many in blocks (`blocked.py`), and a few queries one by one with lanes
along keys and features (`single.py`); `plan.py` decides.
"""

from __future__ import annotations

from tilewright.errors import UserError
from tilewright.schedule.recipes.attention.blocked import schedule_blocked
from tilewright.schedule.recipes.attention.plan import AttentionPlan, plan_attention
from tilewright.schedule.recipes.attention.roles import Attention, attentions
from tilewright.schedule.recipes.attention.single import schedule_single
from tilewright.schedule.recipes.attention.steps import Steps
from tilewright.schedule.recipes.attention.whole import schedule_whole
from tilewright.schedule.recipes.context import Context

__all__ = ["apply_plan", "schedule_attention", "schedule_attentions"]


def schedule_attentions(context: Context) -> frozenset[str]:
    """Schedule every attention of the program; the names of the blocks that this settles."""
    s = context.schedule
    done: set[str] = set()
    for attention in attentions(s):
        before = s.copy()
        try:
            row = schedule_attention(context, attention)
        except UserError as problem:
            s.restore(before)  # its parts are scheduled one by one
            s.remarks.append(f"{attention.result}: not one attention ({problem.code.id})")
        else:
            done.update(name for name in s.blocks() if row in s.loops(name))
    return frozenset(done)


def schedule_attention(context: Context, attention: Attention) -> str:
    """Schedule one attention; the loop that all of it is in."""
    return apply_plan(context, attention, plan_attention(context, attention))


def apply_plan(context: Context, attention: Attention, plan: AttentionPlan) -> str:
    """Schedule one attention with these parameters; the loop that all of it is in."""
    steps = Steps(context, attention, plan)
    with context.schedule.together():
        if plan.heads:
            schedule_single(steps)
        elif plan.block:
            schedule_blocked(steps)
        else:
            schedule_whole(steps)
    return steps.shared
