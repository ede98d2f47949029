"""Take a buffer out of the one that it is stored in."""

from __future__ import annotations

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.accesses import Change, Ranges
from tilewright.schedule.handles import fresh, names_of
from tilewright.schedule.primitive import Edit, primitive
from tilewright.schedule.relayout import last_step, stored_as, with_change
from tilewright.tensor import ir as tir
from tilewright.tensor.layout import StoreAt
from tilewright.tensor.packing import passed

__all__ = ["layout_decouple"]

S312 = Code("S312", "an access of `{buffer}` may meet the buffer and what is stored behind it")


@primitive
def layout_decouple(func: tir.Func, buffer: tir.Buffer) -> Edit:
    """Undo the last `layout_store_at` of a buffer; the other buffer gets its old name and place.

    Before:  W: f32[65, 16];               … W[k, j] …   … W[64, j] …
    After:   W: f32[64, 16], b: f32[16];   … W[k, j] …   … b[j] …
    Requires: S302 the last layout step is a store_at; S312 every access is on one side
    Example: s.layout_decouple("W")
    """
    step = last_step(func, buffer, StoreAt)
    assert isinstance(step, StoreAt)
    host = stored_as(buffer, step.before(buffer.shape), buffer.layout[:-1])
    names = names_of(func)
    name = fresh(names, step.name) if step.name in names.buffers else step.name
    guest = tir.Buffer(
        name, tuple(map(tir.as_index, step.size)), buffer.dtype, buffer.scope, step.layout
    )
    moved = with_change(func, _Apart(func, buffer, host, guest, step))
    if any(buffer is p for p in func.params):
        before = passed(func.params)[: step.place]
        place = sum(isinstance(owner, tir.Buffer) for owner in before)
        params = (*moved.params[:place], guest, *moved.params[place:])
        return Edit(moved.with_fields(params=params), (name,))
    return Edit(_allocated_at(moved, guest, step.place), (name,))


class _Apart(Change):
    """Each access goes to the side that it is on."""

    def __init__(
        self, func: tir.Func, old: tir.Buffer, host: tir.Buffer, guest: tir.Buffer, step: StoreAt
    ) -> None:
        self.func, self.old, self.host, self.guest, self.step = func, old, host, guest, step

    def touches(self, block: tir.Block) -> bool:
        return any(r.buffer is self.old for r in (*block.writes, *block.reads))

    def buffer(self, buffer: tir.Buffer) -> tir.Buffer:
        return self.host if buffer is self.old else buffer

    def expr(self, expr: tir.Expr, ranges: Ranges) -> tir.Expr | None:
        if type(expr) is tir.Load and expr.buffer is self.old:
            return tir.Load(*self._side(expr.indices, ranges))
        return None

    def store(self, store: tir.Store, ranges: Ranges) -> tir.Store:
        if store.buffer is self.old:
            return tir.Store(*self._side(store.indices, ranges), store.value)
        return store

    def _side(
        self, indices: tuple[tir.Expr, ...], ranges: Ranges
    ) -> tuple[tir.Buffer, tuple[tir.Expr, ...]]:
        d = self.step.dim
        border = self.host.shape[d]
        behind = ranges.analyzer.prove(indices[d] >= border)
        if behind is False:
            return self.host, indices
        if behind is None:
            facts = {
                "dimension": d,
                "expected": "an index that is always before or behind the border",
            }
            marks, hint = {"buffer": self.old}, "undo the steps that made the access first"
            raise ScheduleError(S312, facts, program=self.func, marks=marks, hint=hint)
        if len(self.guest.shape) < len(indices):
            return self.guest, (*indices[:d], *indices[d + 1 :])
        at = ranges.simplify(indices[d] - border)
        return self.guest, (*indices[:d], at, *indices[d + 1 :])


def _allocated_at(func: tir.Func, buffer: tir.Buffer, place: int) -> tir.Func:
    def visit(stmt: tir.Stmt, number: int) -> tir.Stmt:
        if number == place or not isinstance(stmt, tir.Alloc):  # others may have gone since
            return tir.Alloc(buffer, stmt)
        return stmt.with_fields(body=visit(stmt.body, number + 1))

    return func.with_fields(body=visit(func.body, 0))
