"""Store a buffer without the zeros around it."""

from __future__ import annotations

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.accesses import Ranges, redirected
from tilewright.schedule.dataflow import Outline, edited, is_fill
from tilewright.schedule.primitive import Edit, primitive
from tilewright.schedule.relayout import last_step, stored_as, with_change
from tilewright.tensor import ir as tir
from tilewright.tensor.layout import Pad

__all__ = ["layout_unpad"]

S307 = Code("S307", "the zeros around `{buffer}` are read")


@primitive
def layout_unpad(func: tir.Func, buffer: tir.Buffer) -> Edit:
    """Undo the last `layout_pad` of a buffer; the blocks that wrote its zeros disappear.

    Before:  A: f32[10];   … A[i + 1] …
    After:   A: f32[8];    … A[i] …
    Requires: S302 the last layout step is a pad; S307 nothing reads its zeros
    Example: s.layout_unpad("A")
    """
    step = last_step(func, buffer, Pad)
    assert isinstance(step, Pad)
    new = stored_as(buffer, step.before(buffer.shape), buffer.layout[:-1])
    outline = Outline(func)
    fills = [p for p in outline.writers(buffer) if is_fill(p.block) and _is_outside(p.block, step)]
    func = edited(func, *((outline.own(p), ()) for p in fills))

    def move(indices: tuple[tir.Expr, ...], ranges: Ranges) -> tuple[tir.Expr, ...]:
        at = ranges.simplify(indices[step.dim] - step.lead)
        if ranges.analyzer.prove((at >= 0) & (at < new.shape[step.dim])) is not True:
            facts = {"dimension": step.dim, "zeros": f"{step.lead} before, {step.tail} after"}
            hint = "they must stay as long as a block relies on them"
            raise ScheduleError(S307, facts, program=func, marks={"buffer": buffer}, hint=hint)
        return (*indices[: step.dim], at, *indices[step.dim + 1 :])

    return Edit(with_change(func, redirected(buffer, new, move)))


def _is_outside(block: tir.Block, step: Pad) -> bool:
    """Does the block write zeros of this step, not those of an earlier one?"""
    assert isinstance(block.body, tir.Store)
    ranges = Ranges.of_block(block)
    at = block.body.indices[step.dim]
    end = block.body.buffer.shape[step.dim] - step.tail
    return bool(ranges.analyzer.prove(at < step.lead)) or bool(ranges.analyzer.prove(at >= end))
