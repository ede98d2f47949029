"""Store the dimensions of a buffer in another order."""

from __future__ import annotations

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.primitive import Edit, primitive
from tilewright.schedule.relayout import relayout
from tilewright.tensor import ir as tir
from tilewright.tensor.layout import Reorder

__all__ = ["layout_reorder"]

S304 = Code("S304", "{order} is not an order of the dimensions of `{buffer}`")


@primitive
def layout_reorder(func: tir.Func, buffer: tir.Buffer, order: tuple[int, ...]) -> Edit:
    """Store dimension `order[d]` at place d, as `numpy.transpose` does.

    Before:  A: f32[8, 4, 3];   … A[i, j, k] …
    After:   A: f32[3, 8, 4];   … A[k, i, j] …              (order = [2, 0, 1])
    Requires: S304 the order names every dimension once
    Example: s.layout_reorder("A", [2, 0, 1])
    """
    if sorted(order) != list(range(len(buffer.shape))):
        facts = {"order": list(order), "expected": f"each of 0 to {len(buffer.shape) - 1} once"}
        hint = "name every dimension once, as for `numpy.transpose`"
        raise ScheduleError(S304, facts, program=func, marks={"buffer": buffer}, hint=hint)
    return Edit(relayout(func, buffer, Reorder(order)))
