"""Attention as one kernel: scores never leave the cache, and memory is read once per tile.

Vectors run along the queries up to the powers and along the features of the values after them, so
that keys and values are read as they are stored, and no lanes are ever folded. Few keys are worked
on as a whole (`whole.py`), many in blocks (`blocked.py`), and a few queries one by one with lanes
along keys and features (`single.py`).

Attention is found before blocks are put into groups; its seven blocks are a group of their own.
"""

from __future__ import annotations

from tilewright.errors import UserError
from tilewright.schedule.recipes.attention.blocked import schedule_blocked
from tilewright.schedule.recipes.attention.cycles import attention_cycles
from tilewright.schedule.recipes.attention.roles import attention_of, attentions
from tilewright.schedule.recipes.attention.shape import AttentionShape, attention_shape
from tilewright.schedule.recipes.attention.single import schedule_single
from tilewright.schedule.recipes.attention.space import AttentionPoint, attention_space
from tilewright.schedule.recipes.attention.steps import Steps
from tilewright.schedule.recipes.attention.whole import schedule_whole
from tilewright.schedule.recipes.context import Context
from tilewright.schedule.recipes.grouping import Group
from tilewright.schedule.recipes.recipe import follow
from tilewright.schedule.recipes.table import Costs, Table
from tilewright.target import MachineModel, Target
from tilewright.tensor.analysis.structure import Kind

__all__ = ["ATTENTION", "AttentionRecipe", "schedule_attentions"]


class AttentionRecipe:
    """Two products with a softmax between them."""

    name = "attention"
    point = AttentionPoint

    def match(self, context: Context, group: Group) -> AttentionShape | None:
        """The shape of a group of seven blocks whose last but one is the second product."""
        if len(group.blocks) < 2:
            return None
        found = attention_of(context.schedule, group.blocks[-2])
        return None if found is None else attention_shape(context, found)

    def space(self, shape: AttentionShape, target: Target) -> Table[AttentionPoint]:
        """Every form, with all register tiles, blocks of keys and ways to share the work."""
        return attention_space(shape, target)

    def cycles(
        self, shape: AttentionShape, machine: MachineModel, table: Table[AttentionPoint]
    ) -> Costs:
        """Predicted cycles for every row."""
        return attention_cycles(shape, machine, table)

    def apply(
        self, context: Context, group: Group, shape: AttentionShape, point: AttentionPoint
    ) -> None:
        """Schedule one attention."""
        del shape  # a point says it all
        found = attention_of(context.schedule, group.blocks[-2])
        assert found is not None
        steps = Steps(context, found, point)
        with context.schedule.together():
            if point.heads:
                schedule_single(steps)
            elif point.block:
                schedule_blocked(steps)
            else:
                schedule_whole(steps)


ATTENTION = AttentionRecipe()


def schedule_attentions(context: Context) -> frozenset[str]:
    """Schedule every attention of the program; the names of the blocks that this settles."""
    s = context.schedule
    done: set[str] = set()
    for attention in attentions(s):
        before, decided = s.copy(), len(context.decisions)
        group = Group(Kind.OPAQUE, attention.blocks)
        try:
            follow(ATTENTION, context, group)
        except UserError as problem:
            s.restore(before)  # its parts are scheduled one by one
            del context.decisions[decided:]
            s.remarks.append(f"{attention.result}: not one attention ({problem.code.id})")
        else:
            around = s.loops(attention.result)[0]
            done.update(name for name in s.blocks() if around in s.loops(name))
    return frozenset(done)
