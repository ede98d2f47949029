"""Store neighbouring dimensions as one."""

from __future__ import annotations

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.primitive import Edit, primitive
from tilewright.schedule.relayout import plain_size, relayout, require_dim
from tilewright.tensor import ir as tir
from tilewright.tensor.layout import Fuse

__all__ = ["layout_fuse"]

S305 = Code("S305", "`{buffer}` needs two dimensions or more to fuse, not {count}")


@primitive
def layout_fuse(func: tir.Func, buffer: tir.Buffer, dim: int, count: int = 2) -> Edit:
    """Store `count` dimensions from `dim` on as one, the last running fastest.

    It is the inverse of `layout_split`, and the other way round.

    Before:  A: f32[4, 16];   … A[i, j] …
    After:   A: f32[64];      … A[i * 16 + j] …
    Requires: S301 the dimensions exist; S305 there are two or more
    Example: s.layout_fuse("A", 0)
    """
    if count < 2:
        facts = {"count": count, "expected": "two or more"}
        hint = "leave `count` out to fuse a dimension with the next one"
        raise ScheduleError(S305, facts, program=func, marks={"buffer": buffer}, hint=hint)
    dim = require_dim(func, buffer, dim, count)
    sizes = tuple([plain_size(size) for size in buffer.shape[dim : dim + count]])
    return Edit(relayout(func, buffer, Fuse(dim, sizes)))
