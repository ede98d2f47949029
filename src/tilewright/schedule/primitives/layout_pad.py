"""Store zeros around the elements of a buffer."""

from __future__ import annotations

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.accesses import Ranges, Redirect
from tilewright.schedule.copies import box_nest, iters_over
from tilewright.schedule.dataflow import FILL, Outline, edited
from tilewright.schedule.handles import fresh, names_of
from tilewright.schedule.primitive import Edit, primitive
from tilewright.schedule.relayout import require_dim, stored_as, with_change
from tilewright.tensor import ir as tir
from tilewright.tensor.layout import Pad

__all__ = ["layout_pad"]

S306 = Code("S306", "`{buffer}` cannot be padded by {before} and {after}")


@primitive
def layout_pad(func: tir.Func, buffer: tir.Buffer, dim: int, before: int, after: int) -> Edit:
    """Store zeros before and after the elements along a dimension.

    A read that chooses between an element and zero, because its index may be outside, reads the
    stored zero instead. Around a buffer that the program writes, blocks `A_lead0` and `A_tail0`
    (for dimension 0) write the zeros first; for an input, packing does.

    Before:  A: f32[8];    … select(0 <= i - 1 and i - 1 < 8, A[max(min(i - 1, 7), 0)], 0.0) …
    After:   A: f32[10];   … A[i] …                                        (before = after = 1)
    Requires: S301 the dimension exists; S306 the numbers are not negative, and not both zero
    Example: s.layout_pad("A", 1, 0, 8)
    """
    dim = require_dim(func, buffer, dim)
    if min(before, after) < 0 or before + after == 0:
        facts = {"before": before, "after": after, "expected": "how many zeros to store"}
        hint = "give two numbers of zeros, at least one of them positive"
        raise ScheduleError(S306, facts, program=func, marks={"buffer": buffer}, hint=hint)
    step = Pad(dim, before, after)
    new = stored_as(buffer, step.shape(buffer.shape), (*buffer.layout, step))
    padded = with_change(func, _Padded(buffer, new, step))
    return _filled(padded, new, step)


class _Padded(Redirect):
    """Accesses move behind the leading zeros; tests that the zeros make needless disappear."""

    def __init__(self, old: tir.Buffer, new: tir.Buffer, step: Pad) -> None:
        super().__init__(old, new, self._shifted)
        self.step = step

    def _shifted(self, indices: tuple[tir.Expr, ...], ranges: Ranges) -> tuple[tir.Expr, ...]:
        d = self.step.dim
        at = ranges.simplify(indices[d] + self.step.lead)
        return (*indices[:d], at, *indices[d + 1 :])

    def expr(self, expr: tir.Expr, ranges: Ranges) -> tir.Expr | None:
        if type(expr) is tir.Select:
            return self._select(expr, ranges)
        return super().expr(expr, ranges)

    def _select(self, expr: tir.Select, ranges: Ranges) -> tir.Expr | None:
        """`select(in_range & rest, A[clamped], 0)` reads the zeros; `rest` stays to be tested."""
        load = expr.if_true
        if type(load) is not tir.Load or load.buffer is not self.new or not _is_zero(expr.if_false):
            return None
        d, size = self.step.dim, self.old.shape[self.step.dim]
        at = ranges.analyzer.simplify(_unclamped(load.indices[d], self.step.lead))
        inside = (at >= 0) & (at < self.new.shape[d])
        if ranges.analyzer.prove(inside) is not True:
            return None
        kept = [
            test
            for test in _conjuncts(expr.cond)
            if not _is_bound(test, ranges.simplify(at - self.step.lead), size, ranges)
        ]
        if len(kept) == len(_conjuncts(expr.cond)):
            return None
        moved = tir.Load(self.new, (*load.indices[:d], at, *load.indices[d + 1 :]))
        cond = None
        for test in kept:
            cond = test if cond is None else cond & test
        return moved if cond is None else tir.Select(cond, moved, expr.if_false)


def _is_zero(expr: tir.Expr) -> bool:
    return type(expr) is tir.Const and expr == tir.const(0, expr.dtype)


def _unclamped(index: tir.Expr, lead: int) -> tir.Expr:
    """The index inside `min` and `max` with constants, moved behind the leading zeros.

    `index` is already moved: `max(min(e, n) + lead, lead)` or any such nesting.
    """
    match index:
        case tir.Min(a=a, b=tir.Const()) | tir.Max(a=a, b=tir.Const()):
            return _unclamped(a, lead)
        case tir.Min(a=tir.Const(), b=a) | tir.Max(a=tir.Const(), b=a):
            return _unclamped(a, lead)
        case tir.Add(a=(tir.Min() | tir.Max()) as a, b=tir.Const() as b):
            return _unclamped(a, lead) + b
        case tir.Sub(a=(tir.Min() | tir.Max()) as a, b=tir.Const() as b):
            return _unclamped(a, lead) - b
    return index


def _conjuncts(cond: tir.Expr) -> list[tir.Expr]:
    if type(cond) is tir.BitAnd:
        return _conjuncts(cond.a) + _conjuncts(cond.b)
    return [cond]


def _is_bound(test: tir.Expr, at: tir.Expr, size: tir.Expr, ranges: Ranges) -> bool:
    """Is the test exactly one side of `0 <= at < size`?"""
    if not isinstance(test, tir.Lt | tir.Le) or test.a.dtype != at.dtype:
        return False
    strict = 1 if type(test) is tir.Lt else 0
    gap = ranges.analyzer.simplify(test.b - test.a - strict)  # the test says: gap >= 0
    equal = ranges.analyzer.prove_equal
    return bool(equal(gap, at)) or bool(equal(gap, size - 1 - at))


def _filled(func: tir.Func, buffer: tir.Buffer, step: Pad) -> Edit:
    """Blocks that write the zeros in front of everything that touches a computed buffer."""
    outline = Outline(func)
    if not outline.writers(buffer):
        return Edit(func)
    names = names_of(func)
    first = next(p for p in outline.places if p.reads(buffer) or p.writes(buffer))
    inner = buffer.shape[step.dim] - (step.lead + step.tail)
    nests: list[tir.Stmt] = []
    made: list[str] = []
    sides = (("lead", step.lead, tir.Const(0)), ("tail", step.tail, inner + step.lead))
    for side, length, offset in sides:
        if length == 0:
            continue
        name = fresh(names, f"{buffer.name}_{side}{step.dim}", *made)
        made.append(name)
        box = (*buffer.shape[: step.dim], tir.Const(length), *buffer.shape[step.dim + 1 :])
        nests.append(_zeros(names, name, buffer, box, step.dim, offset))
    top = outline.top(first)
    return Edit(edited(func, (top, (*nests, top))), tuple(made))


def _zeros(
    names: object,
    name: str,
    buffer: tir.Buffer,
    box: tuple[tir.Expr, ...],
    dim: int,
    offset: tir.Expr,
) -> tir.Stmt:
    zero = tir.const(0, buffer.dtype)

    def body(at: tuple[tir.Expr, ...]) -> tir.Stmt:
        return tir.Store(buffer, (*at[:dim], at[dim] + offset, *at[dim + 1 :]), zero)

    return box_nest(names, name, iters_over(box), body, notes=(FILL,))  # type: ignore[arg-type]
