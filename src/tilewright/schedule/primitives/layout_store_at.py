"""Store one buffer next to another, so that one stream of memory brings both."""

from __future__ import annotations

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.accesses import Ranges, redirected
from tilewright.schedule.dataflow import Outline
from tilewright.schedule.primitive import Edit, primitive
from tilewright.schedule.relayout import plain_size, require_dim, stored_as, with_change
from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.layout import StoreAt
from tilewright.tensor.packing import passed
from tilewright.tensor.regions import allocated

__all__ = ["layout_store_at"]

S310 = Code("S310", "`{buffer}` and `{other}` cannot be stored together")
S311 = Code("S311", "`{other}` does not fit next to `{buffer}` along dimension {dim}")


@primitive
def layout_store_at(func: tir.Func, buffer: tir.Buffer, other: tir.Buffer, dim: int) -> Edit:
    """Append `other` to `buffer` along a dimension; it has the same dimensions or all but this one.

    Two inputs become one, which keeps the place and the name of `buffer`. Callers still pass both
    arrays, in their old places: packing puts them together.

    Before:  W: f32[64, 16], b: f32[16];   … W[k, j] …   … b[j] …
    After:   W: f32[65, 16];               … W[k, j] …   … W[64, j] …
    Requires: S301 the dimension exists; S310 both are inputs or both are intermediate, of one dtype
        and scope, neither is computed from the other, and `other` holds no third buffer; S311 the
        other dimensions agree
    Example: s.layout_store_at("W", "b", 0)
    """
    dim = require_dim(func, buffer, dim)
    _require_alike(func, buffer, other)
    _require_fits(func, buffer, other, dim)
    owners = passed(func.params) if _is_param(func, other) else allocated(func)
    place = next(n for n, owner in enumerate(owners) if owner is other)
    size = tuple([plain_size(s) for s in other.shape])
    step = StoreAt(dim, other.name, size, other.layout, place)
    new = stored_as(buffer, step.shape(buffer.shape), (*buffer.layout, step))

    def move(indices: tuple[tir.Expr, ...], ranges: Ranges) -> tuple[tir.Expr, ...]:
        return tuple([ranges.simplify(i) for i in step.guest_index(indices, buffer.shape)])

    moved = with_change(with_change(func, redirected(buffer, new)), redirected(other, new, move))
    if _is_param(func, other):
        pairs = zip(func.params, moved.params, strict=True)
        return Edit(moved.with_fields(params=tuple([p for old, p in pairs if old is not other])))
    return Edit(_without_second_alloc(moved, new, buffer, func))


def _without_second_alloc(
    moved: tir.Func, new: tir.Buffer, buffer: tir.Buffer, before: tir.Func
) -> tir.Func:
    """Both allocations now name the new buffer: the one that was for the other one goes."""
    keep = next(n for n, owner in enumerate(allocated(before)) if owner is buffer)
    numbers = iter(range(len(allocated(before))))

    def visit(stmt: tir.Stmt) -> tir.Stmt:
        if type(stmt) is not tir.Alloc:
            return stmt
        number = next(numbers)
        body = visit(stmt.body)
        if stmt.buffer is new and number != keep:
            return body
        return stmt.with_fields(body=body)

    return moved.with_fields(body=visit(moved.body))


def _is_param(func: tir.Func, buffer: tir.Buffer) -> bool:
    return any(buffer is p for p in func.params)


def _require_alike(func: tir.Func, buffer: tir.Buffer, other: tir.Buffer) -> None:
    outline = Outline(func)
    inputs = [_is_param(func, b) for b in (buffer, other)]
    found = None
    if buffer is other:
        found = "the same buffer twice"
    elif inputs[0] != inputs[1]:
        found = "a parameter and an intermediate buffer"
    elif inputs[0] and (outline.writers(buffer) or outline.writers(other)):
        found = "an output"
    elif buffer.dtype != other.dtype:
        found = f"elements of {buffer.dtype.name} and {other.dtype.name}"
    elif buffer.scope is not other.scope:
        found = f"buffers in {buffer.scope.value} and {other.scope.value}"
    elif any(isinstance(step, StoreAt) for step in other.layout):
        found = "a buffer that already holds another one"
    elif any(
        (p.reads(buffer) and p.writes(other)) or (p.reads(other) and p.writes(buffer))
        for p in outline.places
    ):
        found = "a block that computes one from the other"
    if found is not None:
        facts = {"expected": "two inputs or two intermediate buffers of one dtype", "found": found}
        marks = {"buffer": buffer, "other": other}
        hint = "leave them apart, or make a copy of one with `cache_read` and store that"
        raise ScheduleError(S310, facts, program=func, marks=marks, hint=hint)


def _require_fits(func: tir.Func, buffer: tir.Buffer, other: tir.Buffer, dim: int) -> None:
    wanted = [s for d, s in enumerate(buffer.shape) if d != dim]
    same_rank = len(other.shape) == len(buffer.shape)
    found = [s for d, s in enumerate(other.shape) if not same_rank or d != dim]
    equal = Analyzer().prove_equal
    if len(wanted) == len(found) and all(map(equal, wanted, found)):
        return
    sizes = ", ".join(str(plain_size(s)) for s in wanted)
    facts = {"dim": dim, "expected": f"sizes ({sizes}) besides that dimension"}
    facts["found"] = f"({', '.join(str(plain_size(s)) for s in other.shape)})"
    marks = {"buffer": buffer, "other": other}
    hint = "name the dimension along which the two may differ"
    raise ScheduleError(S311, facts, program=func, marks=marks, hint=hint)
