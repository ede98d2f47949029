"""Divide the iterations of a loop among the threads."""

from __future__ import annotations

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.checks import require_blocks, require_serial, require_spatial
from tilewright.schedule.primitive import Edit, primitive
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import enclosing, replace_node, walk_stmts

__all__ = ["parallel"]

S114 = Code("S114", "loop `{loop}` is inside or around the parallel loop `{other}`")


@primitive
def parallel(func: tir.Func, loop: tir.For) -> Edit:
    """Let each thread run its share of the iterations; validation refuses races.

    Before:  for i in range(64): S(i)
    After:   for i in parallel(64): S(i)
    Requires: S101 the loop is serial; S111 it is around blocks; S108 no block reduces over it;
        S114 no parallel loop is inside or around it
    Example: s.parallel("i_0")
    """
    require_serial(func, loop)
    require_blocks(func, loop)
    require_spatial(func, loop, "make the partial results a dimension of their own with `rfactor`")
    for other in (*enclosing(func, loop), *walk_stmts(loop.body)):
        if type(other) is tir.For and other.kind is tir.LoopKind.PARALLEL:
            facts = {"expected": "one level of parallel loops"}
            hint = "fuse the two loops and make the fused one parallel"
            marks = {"loop": loop, "other": other}
            raise ScheduleError(S114, facts, program=func, marks=marks, hint=hint)
    return Edit(replace_node(func, loop, loop.with_fields(kind=tir.LoopKind.PARALLEL)))
