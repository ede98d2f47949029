"""Vectors of which only the first lanes are on: what is left over, and what a condition keeps.

    for j in vectorized(16):                 C[prefix(i*16, n - i*16, 16)] =
        if i*16 + j < n:               →         A[prefix(i*16, n - i*16, 16)] * 2
            C[i*16 + j] = A[i*16 + j] * 2

Lanes that are off touch no memory. They compute all the same, from zeros, and nobody looks at what
they come to; a fold sees its identity there. Adjacent elements only: a gather of lanes has nothing
that could switch them off.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.dtypes import index
from tilewright.lower import fold, forms
from tilewright.lower.vector_values import CannotVectorize, VectorValues
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import find, holds

__all__ = ["Masked", "MaskedValues", "has_fixed_loads", "masked_by"]


@dataclass(frozen=True, slots=True)
class Masked:
    """A condition that holds in the first `count` lanes, where those of `others` hold."""

    count: tir.Expr
    others: tuple[tir.Expr, ...]


def masked_by(cond: tir.Expr, chunk: VectorValues) -> Masked | None:
    """The lanes of a chunk in which a condition holds, if they are the first ones; else None.

    Conditions on data are left alone: statements inside might change what they read.
    """
    if holds(cond, tir.Load):
        return None
    if type(cond) is tir.BitAnd:
        return _both(cond, chunk)
    if type(cond) not in (tir.Lt, tir.Le) or cond.a.dtype != index:  # type: ignore[attr-defined]
        return None
    lane = fold.substitute(cond, chunk.at)
    assert isinstance(lane, tir.Compare)
    parts = forms.split(forms.form_of(fold.fold_binary(tir.Sub, lane.b, lane.a)), chunk.lane)
    if parts is None or forms.const_of(parts[0]) != -1:
        return None
    rest = parts[1] if type(cond) is tir.Lt else forms.plus(parts[1], forms.constant(1))
    return Masked(forms.expr_of(rest), ())


def _both(cond: tir.BitAnd, chunk: VectorValues) -> Masked | None:
    """Two conditions, of which one at least moves."""
    for fixed, moving in ((cond.a, cond.b), (cond.b, cond.a)):
        if not chunk.moves(fixed):
            found = masked_by(moving, chunk)
            return None if found is None else Masked(found.count, (fixed, *found.others))
    a, b = masked_by(cond.a, chunk), masked_by(cond.b, chunk)
    if a is None or b is None:
        return None
    return Masked(tir.minimum(a.count, b.count), (*a.others, *b.others))


def has_fixed_loads(stmt: tir.Stmt, chunk: VectorValues) -> bool:
    """Whether something is loaded for all lanes at once that is there only if a lane is on."""
    return any(not chunk.moves(load) and not _is_there(load) for load in find(stmt, tir.Load))


def _is_there(load: tir.Load) -> bool:
    """Whether an element exists in any case: the only one of its buffer."""
    return all(tir.int_value(size) == 1 for size in load.buffer.shape)


class MaskedValues(VectorValues):
    """Rewrites expressions for the first `count` of a chunk's lanes."""

    def __init__(self, chunk: VectorValues, count: tir.Expr) -> None:
        super().__init__(chunk.var, chunk.base, chunk.lanes, chunk.surroundings)
        self.count = count

    def place(self, buffer: tir.Buffer, indices: tuple[tir.Expr, ...]) -> tuple[tir.Expr, ...]:
        """Where the lanes that are on store."""
        if buffer.scope is tir.Scope.REGISTER:
            raise CannotVectorize(f"registers of `{buffer.name}` are written in part")
        return tuple([self._prefix(i) for i in super().place(buffer, indices)])

    def source(self, buffer: tir.Buffer, indices: tuple[tir.Expr, ...]) -> tuple[tir.Expr, ...]:
        """Where the lanes that are on load from; registers have all of them."""
        found = super().source(buffer, indices)
        if buffer.scope is tir.Scope.REGISTER:
            return found
        return tuple([self._prefix(i) for i in found])

    def _prefix(self, where: tir.Expr) -> tir.Expr:
        if type(where) is not tir.Ramp or tir.int_value(where.stride) != 1:
            raise CannotVectorize("a condition keeps some of its lanes, which are not adjacent")
        return tir.Prefix(where.base, self.count, self.lanes)

    def folded(self, expr: tir.Expr, identity: tir.Expr) -> tir.Expr:
        value = self.vector(expr)
        return tir.Select(self.mask(), value, tir.Broadcast(identity, self.lanes))

    def mask(self) -> tir.Expr:
        """Whether each lane is on."""
        lane = tir.Ramp(tir.Const(0), tir.Const(1), self.lanes)
        return tir.Lt(lane, tir.Broadcast(self.count, self.lanes))
