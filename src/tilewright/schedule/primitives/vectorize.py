"""Run the iterations of an innermost loop as lanes of vectors."""

from __future__ import annotations

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.checks import (
    require_blocks,
    require_bounded,
    require_serial,
    require_spatial,
)
from tilewright.schedule.nests import blocks_under
from tilewright.schedule.primitive import Edit, primitive
from tilewright.schedule.reductions import update_of
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import replace_node, walk_stmts

__all__ = ["vectorize"]

S112 = Code("S112", "loop `{loop}` is not innermost: loop `{inner}` is inside")


@primitive
def vectorize(func: tir.Func, loop: tir.For) -> Edit:
    """Compute all iterations of an innermost loop at once, as many vectors as it takes.

    Before:  for j in range(16): S(j)
    After:   for j in vectorized(16): S(j)     (lowered to two statements on vectors of 8)
    Requires: S101 the loop is serial; S112 no loop is inside; S111 it is around blocks; S110 its
        extent is a constant or a tile size; S108 a block that reduces over it folds with +, ×,
        min or max and has no start value inside (its lanes are folded in any order)
    Example: s.vectorize("j_1")
    """
    require_serial(func, loop)
    for inner in walk_stmts(loop.body):
        if type(inner) is tir.For:
            facts = {"expected": "a loop without loops inside"}
            hint = "move it to the innermost place with `reorder`"
            marks = {"loop": loop, "inner": inner}
            raise ScheduleError(S112, facts, program=func, marks=marks, hint=hint)
    require_blocks(func, loop)
    require_bounded(func, loop)
    if not all(_folds_lanes(block) for block in blocks_under(loop)):
        hint = "`rfactor` the loop and vectorise `…_rf`, or take the start value out first"
        require_spatial(func, loop, hint)
    return Edit(replace_node(func, loop, loop.with_fields(kind=tir.LoopKind.VECTOR)))


def _folds_lanes(block: tir.Block) -> bool:
    """Whether a block is a plain fold, so that all lanes of a vector can be folded at once."""
    return block.init is None and update_of(block) is not None
