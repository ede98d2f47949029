"""Changing how a buffer is stored: all its accesses, its allocation or parameter, and its record.

Every layout primitive goes through `relayout`. Intermediate buffers and parameters are treated
alike; for a parameter the interface of the program changes, and `Buffer.layout` says how arrays
have to be packed for it.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.accesses import Change, Ranges, change_stmt, redirected
from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.layout import LayoutStep, appended, word_of

__all__ = [
    "last_step",
    "plain_size",
    "relayout",
    "require_dim",
    "stored_as",
    "with_change",
]

S301 = Code("S301", "`{buffer}` has no dimension {dim}")
S302 = Code("S302", "the last change of the layout of `{buffer}` is not `{expected}`")

Move = Callable[[tuple[tir.Expr, ...], Ranges], tuple[tir.Expr, ...]]


def require_dim(func: tir.Func, buffer: tir.Buffer, dim: int, count: int = 1) -> int:
    """`dim` counted from the front; S301 unless it and `count - 1` more exist."""
    rank = len(buffer.shape)
    found = dim + rank if dim < 0 else dim
    if not 0 <= found <= rank - count:
        last = dim if found < 0 or found >= rank else dim + count - 1
        expected = f"a number from {-rank} to {rank - 1}" if rank else "none: it is a scalar"
        facts = {"dim": last, "expected": expected, "dimensions": rank}
        hint = "dimensions are counted from 0, or from -1 at the end, as they are stored now"
        raise ScheduleError(S301, facts, program=func, marks={"buffer": buffer}, hint=hint)
    return found


def plain_size(size: tir.Expr) -> int | tir.Expr:
    """A dimension as layout steps store it: a number if it is known."""
    known = tir.int_value(size)
    return size if known is None else known


def last_step(func: tir.Func, buffer: tir.Buffer, kind: type[LayoutStep]) -> LayoutStep:
    """The last step of a buffer's layout, which must be of this kind (S302)."""
    if buffer.layout and isinstance(buffer.layout[-1], kind):
        return buffer.layout[-1]
    found = f"`{buffer.layout[-1]}`" if buffer.layout else "no layout step"
    facts = {"expected": word_of(kind), "found": found}
    hint = "undo the steps that came after it first, in reverse order"
    raise ScheduleError(S302, facts, program=func, marks={"buffer": buffer}, hint=hint)


def stored_as(
    buffer: tir.Buffer, shape: tuple[object, ...], layout: tuple[LayoutStep, ...]
) -> tir.Buffer:
    """The buffer with another shape and layout, its sizes simplified."""
    sizes: list[tir.Expr] = []
    for size in shape:
        expr = tir.as_index(size)  # type: ignore[arg-type]
        sizes.append(expr if type(expr) is tir.Const else Analyzer().simplify(expr))
    return tir.Buffer(buffer.name, tuple(sizes), buffer.dtype, buffer.scope, layout)


def relayout(func: tir.Func, buffer: tir.Buffer, step: LayoutStep) -> tir.Func:
    """The program with one more step in a buffer's layout, where every element has one place."""
    new = stored_as(buffer, step.shape(buffer.shape), appended(buffer.layout, step))

    def move(indices: tuple[tir.Expr, ...], ranges: Ranges) -> tuple[tir.Expr, ...]:
        moved = step.index(indices)
        old = {id(i) for i in indices}
        return tuple([i if id(i) in old else ranges.simplify(tir.as_index(i)) for i in moved])

    return with_change(func, redirected(buffer, new, move))


def with_change(func: tir.Func, change: Change) -> tir.Func:
    """A change applied to all blocks, allocations and parameters."""
    params = tuple([change.buffer(p) for p in func.params])
    return tir.Func(func.name, params, change_stmt(func.body, change, Ranges({})))
