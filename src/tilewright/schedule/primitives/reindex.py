"""Bring an operand into the order and shape of a block's own iterators."""

from __future__ import annotations

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.accesses import Change, Ranges, change_block, loads_of
from tilewright.schedule.copies import box_nest
from tilewright.schedule.dataflow import Outline, Place, edited
from tilewright.schedule.handles import Names, fresh, names_of
from tilewright.schedule.nests import allocate
from tilewright.schedule.primitive import Edit, primitive
from tilewright.schedule.primitives.cache_read import require_reader
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import free_vars, substitute

__all__ = ["reindex"]

S225 = Code("S225", "block `{block}` accesses `{buffer}` at more than one place")
S227 = Code("S227", "`{other}` reads `{buffer}` in a loop that block `{block}` shares")
S226 = Code("S226", "block `{block}` has loops or blocks inside")


@primitive
def reindex(func: tir.Func, block: tir.Block, buffer: tir.Buffer, access: int = -1) -> Edit:
    """Copy an operand so that the block accesses it by its iterators alone.

    The new buffer `A_reindex` has one dimension for each iterator in the indices, in the order of
    the iterators. A buffer that the block reads is copied before its nest; one that it writes,
    after it. Where a block reads several places of a buffer, `access` says which of them, in the
    order in which they appear.

    Before:  for h, w, r: B[h, w] += A[h * 2 + r, w] * K[r]
    After:   for h, w, r: A_reindex[h, w, r] = A[h * 2 + r, w]
             for h, w, r: B[h, w] += A_reindex[h, w, r] * K[r]
    Requires: S201 the block is not inside another block; S220 it reads or writes the buffer; S222
        the buffer is complete before the nest begins; S225 all its accesses have the same
        indices, or `access` is one of them; S226 its body is plain; S203 it is the only writer of a
        buffer that it writes; S227 nothing in its nest reads such a buffer
    Example: s.reindex("B", "A")
    """
    outline = Outline(func)
    place = outline.place(block)
    written = place.writes(buffer)
    if written:
        outline.require_sole_writer(place, buffer)
        _require_unread(outline, place, buffer)
    else:
        require_reader(outline, place, buffer)
    where = _indices(outline, place, buffer, access)
    used = {var for index in where for var in free_vars(index)}
    iters = [it for it in block.iters if it.var in used]
    names = names_of(func)
    name = fresh(names, f"{buffer.name}_reindex")
    direct = tir.Buffer(name, tuple([it.extent for it in iters]), buffer.dtype)
    nest = _copy(names, name, direct, buffer, iters, where, written=written)
    at = tuple([it.var for it in iters])
    changed = change_block(block, _Here(buffer, direct, where, at))
    top = outline.top(place)
    after = edited(tir.Func("", (), top), (block, (changed,))).body
    parts = (after, nest) if written else (nest, after)
    return Edit(allocate(edited(func, (top, parts)), direct), (name,))


class _Here(Change):
    """Accesses of a buffer at one place go to the copy, by the iterators."""

    def __init__(
        self,
        old: tir.Buffer,
        new: tir.Buffer,
        where: tuple[tir.Expr, ...],
        at: tuple[tir.Expr, ...],
    ) -> None:
        self.old, self.new, self.where, self.at = old, new, where, at

    def touches(self, block: tir.Block) -> bool:
        return any(r.buffer is self.old for r in (*block.writes, *block.reads))

    def expr(self, expr: tir.Expr, ranges: Ranges) -> tir.Expr | None:
        del ranges
        here = type(expr) is tir.Load and expr.buffer is self.old and expr.indices == self.where
        return tir.Load(self.new, self.at) if here else None

    def store(self, store: tir.Store, ranges: Ranges) -> tir.Store:
        del ranges
        if store.buffer is self.old:
            return tir.Store(self.new, self.at, store.value)
        return store


def _require_unread(outline: Outline, place: Place, buffer: tir.Buffer) -> None:
    top = outline.top(place)
    for reader in outline.readers(buffer):
        if reader.is_inside(top):
            hint = "use this step before `compute_at` or `reverse_compute_at`"
            marks = {"block": place.block, "buffer": buffer, "reader": reader.block}
            facts = {"other": reader.block.name}
            raise ScheduleError(S227, facts, program=outline.func, marks=marks, hint=hint)


def _indices(
    outline: Outline, place: Place, buffer: tir.Buffer, access: int
) -> tuple[tir.Expr, ...]:
    """The indices that all accesses of the buffer have, or those of one access (S225, S226)."""
    block = place.block
    marks = {"block": block, "buffer": buffer}
    parts = [s for s in (block.body, block.init) if s is not None]
    stores = [s for s in parts if isinstance(s, tir.Store)]
    if len(stores) < len(parts):
        hint = "use this step before `blockize`"
        raise ScheduleError(S226, program=outline.func, marks=marks, hint=hint)
    found = [load.indices for store in stores for load in loads_of(store, buffer)]
    found += [store.indices for store in stores if store.buffer is buffer]
    places = list(dict.fromkeys(found))
    if access == -1 and len(places) == 1:
        return places[0]
    if not 0 <= access < len(places) or place.writes(buffer):
        facts = {"places": len(places), "access": access}
        hint = (
            "say which place it reads with `access`, or compute the values in blocks of their own"
        )
        raise ScheduleError(S225, facts, program=outline.func, marks=marks, hint=hint)
    return places[access]


def _copy(
    names: Names,
    name: str,
    direct: tir.Buffer,
    buffer: tir.Buffer,
    iters: list[tir.Iter],
    where: tuple[tir.Expr, ...],
    *,
    written: bool,
) -> tir.Stmt:
    """`direct[v] = buffer[where(v)]`, or the other way round for a result."""
    own = tuple([tir.Iter(tir.Var(it.var.name), it.extent) for it in iters])
    ranges = Ranges({it.var: it.extent for it in own})
    renamed = {old.var: new.var for old, new in zip(iters, own, strict=True)}
    there = ranges.simplify_all(tuple([substitute(index, renamed) for index in where]))

    def body(at: tuple[tir.Expr, ...]) -> tir.Stmt:
        if written:
            return tir.Store(buffer, there, tir.Load(direct, at))
        return tir.Store(direct, at, tir.Load(buffer, there))

    return box_nest(names, name, own, body)
