"""Lanes of a fold are shared by the loops and statements that follow each other into one element.

    lanes = identity                               lanes = identity
    for k: lanes = lanes + v(k)                    for k: lanes = lanes + v(k)
    s = s + Reduce(add, lanes)              →      if some: lanes = lanes + w
    if some: s = s + Reduce(add, w)                s = s + Reduce(add, lanes)

What is left over behind full vectors would otherwise pay for folding its lanes once more.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.lower import fold
from tilewright.tensor import ir as tir
from tilewright.tensor.build import fold_identity
from tilewright.tensor.node import Node
from tilewright.tensor.visit import find, holds, rewrite

__all__ = ["LaneFold", "joined", "lane_fold"]


@dataclass(frozen=True)
class LaneFold:
    """`store` folds the lanes of `vector` into the element that it loads."""

    store: tir.Store
    kind: type[tir.Binary]
    fold: tir.Fold
    vector: tir.Expr


def lane_fold(stmt: tir.Stmt) -> LaneFold | None:
    """What a statement folds into an element; None if it is not of that form."""
    if type(stmt) is not tir.Store or not isinstance(stmt.value, tir.Binary):
        return None
    value = stmt.value
    if type(value.b) is not tir.Reduce or OPERATION[value.b.fold] is not type(value):
        return None
    if value.a != tir.Load(stmt.buffer, stmt.indices):
        return None
    return LaneFold(stmt, type(value), value.b.fold, value.b.value)


OPERATION = {
    tir.Fold.ADD: tir.Add,
    tir.Fold.MUL: tir.Mul,
    tir.Fold.MIN: tir.Min,
    tir.Fold.MAX: tir.Max,
}


def joined(seq: tir.Seq) -> tir.Stmt:
    """Statements one after another, in which neighbours share their lanes."""
    parts: list[tir.Stmt] = []
    for part in seq.body:
        made = _with(parts[-1], part) if parts else None
        if made is None:
            parts.append(part)
        else:
            parts[-1] = made
    return seq if len(parts) == len(seq.body) else fold.seq(*parts)


def _with(group: tir.Stmt, part: tir.Stmt) -> tir.Stmt | None:
    """A loop with lanes of its own, and what follows it; None if that is something else."""
    last = _last_of(group)
    if last is None:
        return None
    assert isinstance(group, tir.Alloc)
    assert isinstance(group.body, tir.Seq)
    more = _Joining(last, group.buffer).statement(part)
    if more is None:
        return None
    return group.with_fields(body=fold.seq(*group.body.body[:-1], more, last.store))


def _last_of(stmt: tir.Stmt) -> LaneFold | None:
    """How a loop with lanes of its own ends: they are folded into an element."""
    if type(stmt) is not tir.Alloc or type(stmt.body) is not tir.Seq:
        return None
    found = lane_fold(stmt.body.body[-1])
    if found is None or type(found.vector) is not tir.Load:
        return None
    return found if found.vector.buffer is stmt.buffer else None


def _start(last: LaneFold) -> tir.Store:
    """How lanes begin that change nothing."""
    dtype = last.vector.dtype
    identity = tir.Broadcast(fold_identity(last.fold, dtype.scalar), dtype.lanes)
    assert isinstance(last.vector, tir.Load)
    return tir.Store(last.vector.buffer, last.vector.indices, identity)


class _Joining:
    """Statements that fold into the element of `last`, so that they fold into its lanes."""

    def __init__(self, last: LaneFold, lanes: tir.Buffer) -> None:
        self.last, self.lanes = last, lanes

    def statement(self, stmt: tir.Stmt) -> tir.Stmt | None:
        match stmt:
            case tir.Store():
                return self.store(stmt)
            case tir.Alloc(buffer=other, body=tir.Seq(body=(first, *loops, end))):
                found = _last_of(stmt)
                if found is None or first != _start(found) or self.store(end) is None:
                    return None
                return fold.seq(*(self.renamed(loop, other) for loop in loops))
            case tir.Seq(body=parts):
                made = [self.statement(part) for part in parts]
                known = [part for part in made if part is not None]
                return fold.seq(*known) if len(known) == len(made) else None
            case tir.If(cond=cond, then=then, otherwise=None) if not holds(cond, tir.Load):
                inside = self.statement(then)
                return None if inside is None else tir.If(cond, inside)
        return None

    def store(self, stmt: tir.Stmt) -> tir.Stmt | None:
        """A single fold."""
        found, last = lane_fold(stmt), self.last
        if found is None or found.fold is not last.fold or found.vector.dtype != last.vector.dtype:
            return None
        buffer = last.store.buffer
        if found.store.buffer is not buffer or found.store.indices != last.store.indices:
            return None
        if any(load.buffer is buffer for load in find(found.vector, tir.Load)):
            return None
        assert isinstance(last.vector, tir.Load)
        return tir.Store(self.lanes, last.vector.indices, found.kind(last.vector, found.vector))

    def renamed(self, loop: tir.Stmt, other: tir.Buffer) -> tir.Stmt:
        """A loop that folds into these lanes instead of its own."""

        def change(part: Node) -> Node | None:
            if isinstance(part, (tir.Load, tir.Store)) and part.buffer is other:
                return part.with_fields(buffer=self.lanes)
            return None

        return rewrite(loop, change)
