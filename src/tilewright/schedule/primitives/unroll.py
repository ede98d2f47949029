"""Unroll a loop completely when the program is lowered."""

from __future__ import annotations

from tilewright.schedule.checks import require_bounded, require_serial
from tilewright.schedule.primitive import Edit, primitive
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import replace_node

__all__ = ["unroll"]


@primitive
def unroll(func: tir.Func, loop: tir.For) -> Edit:
    """Repeat the body once for each iteration, with the loop variable as a constant.

    Before:  for i in range(4): S(i)
    After:   for i in unrolled(4): S(i)        (lowered to S(0); S(1); S(2); S(3))
    Requires: S101 the loop is serial; S110 its extent is a constant or a tile size
    Example: s.unroll("i_1")
    """
    require_serial(func, loop)
    require_bounded(func, loop)
    done = replace_node(func, loop, loop.with_fields(kind=tir.LoopKind.UNROLLED))
    return Edit(done, harmless=True)
