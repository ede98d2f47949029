"""Choose where an intermediate buffer lives."""

from __future__ import annotations

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.dataflow import require_scope
from tilewright.schedule.nests import replace_buffer
from tilewright.schedule.primitive import Edit, primitive
from tilewright.tensor import ir as tir

__all__ = ["set_scope"]

S270 = Code("S270", "`{buffer}` is a parameter and stays in memory")


@primitive
def set_scope(func: tir.Func, buffer: tir.Buffer, scope: str) -> Edit:
    """Keep a buffer in `memory` or in `register`s; lowering shrinks it to what is live at once.

    Before:  T = alloc(f32[6, 16])
    After:   T = alloc(f32[6, 16], "register")
    Requires: S270 the buffer is not a parameter; S215 the scope exists
    Example: s.set_scope("C_write", "register")
    """
    kept = require_scope(func, scope)
    if any(buffer is p for p in func.params):
        hint = f'work on a copy: `cache_write("{buffer.name}", "{scope}")` or `cache_read`'
        raise ScheduleError(
            S270, {"scope": scope}, program=func, marks={"buffer": buffer}, hint=hint
        )
    moved = buffer.with_fields(scope=kept)
    return Edit(func if moved is buffer else replace_buffer(func, {buffer: moved}))
