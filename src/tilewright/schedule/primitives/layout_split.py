"""Store a dimension as two."""

from __future__ import annotations

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.primitive import Edit, primitive
from tilewright.schedule.relayout import relayout, require_dim
from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.layout import Split

__all__ = ["layout_split"]

S303 = Code("S303", "dimension {dim} of `{buffer}` cannot be stored in groups of {factor}")


@primitive
def layout_split(func: tir.Func, buffer: tir.Buffer, dim: int, factor: int) -> Edit:
    """Store a dimension of size n as two, of sizes n / factor and factor.

    Before:  A: f32[64];      … A[i] …
    After:   A: f32[4, 16];   … A[i // 16, i % 16] …
    Requires: S301 the dimension exists; S303 the factor divides its size
    Example: s.layout_split("B", 1, 16)
    """
    dim = require_dim(func, buffer, dim)
    size = buffer.shape[dim]
    if factor < 1 or Analyzer().divisor(size) % factor:
        known = tir.int_value(size)
        hint = "pad the dimension with `layout_pad` first"
        if known is not None and factor > 0:
            hint = f'use `layout_pad("{buffer.name}", {dim}, 0, {-known % factor})` first'
        expected = "a positive factor" if factor < 1 else "a factor that divides the size"
        facts = {"dim": dim, "factor": factor, "expected": expected, "size": known or "symbolic"}
        raise ScheduleError(S303, facts, program=func, marks={"buffer": buffer}, hint=hint)
    return Edit(relayout(func, buffer, Split(dim, factor)))
