"""Intermediate buffers shrink to the region that is touched where they exist.

    for i0 in range(16):                        for i0 in range(16):
        T = alloc(f32[128])                         T = alloc(f32[8])
        for i1 in range(8):             →           for i1 in range(8):
            T[i0*8 + i1] = …                            T[i1] = …

The start of the region is subtracted from every index. Shapes must be known before any loop runs,
so an extent that depends on loops outside of the allocation is replaced by its upper bound: a tile
of a cover by the largest size. A dimension that cannot be bounded keeps its size.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.lower import forms
from tilewright.lower.accesses import Access, accesses_of
from tilewright.lower.context import Context
from tilewright.lower.extremes import Loops, extremes, greatest
from tilewright.lower.forms import Form
from tilewright.lower.rewrite_accesses import AccessRewriter
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import children, holds

__all__ = ["compact_buffers"]


def compact_buffers(func: tir.Func, context: Context) -> tir.Func:
    """Make each allocation as small as its accesses allow."""
    del context
    depths: dict[tir.Buffer, int] = {}
    _find(func.body, 0, depths)
    if not depths:
        return func
    shrunk: dict[tir.Buffer, tuple[tir.Buffer, tuple[Form, ...]]] = {}
    for buffer, accesses in accesses_of(func.body, depths).items():
        new = _compacted(buffer, accesses, depths[buffer])
        if new is not None:
            shrunk[buffer] = new
    return func.with_fields(body=_Shift(shrunk).statement(func.body)) if shrunk else func


def _find(stmt: tir.Stmt, depth: int, depths: dict[tir.Buffer, int]) -> None:
    """How many loops there are around each allocation."""
    if type(stmt) is tir.Alloc:
        depths[stmt.buffer] = depth
    inner = depth + (type(stmt) is tir.For)
    for child in children(stmt):
        if isinstance(child, tir.Stmt):
            _find(child, inner, depths)


def _compacted(
    buffer: tir.Buffer, accesses: list[Access], depth: int
) -> tuple[tir.Buffer, tuple[Form, ...]] | None:
    """The smaller buffer and the start of the region in each dimension; None if it stays."""
    if not accesses:
        return None
    outer = accesses[0].loops[:depth]
    starts: list[Form] = []
    shape: list[tir.Expr] = []
    for d, size in enumerate(buffer.shape):
        start, extent = _touched([(a.indices[d], a.loops[depth:]) for a in accesses], size, outer)
        starts.append(start)
        shape.append(extent)
    if not any(starts) and tuple(shape) == buffer.shape:
        return None
    smaller = tir.Buffer(buffer.name, tuple(shape), buffer.dtype, buffer.scope)
    return smaller, tuple(starts)


def _touched(
    indices: Sequence[tuple[Form, Loops]], size: tir.Expr, outer: Loops
) -> tuple[Form, tir.Expr]:
    """(start, extent) of what is touched in one dimension."""
    everything: tuple[Form, tir.Expr] = {}, size
    bounds = [extremes(form, loops) for form, loops in indices]
    if None in bounds:
        return everything
    lo = _extreme([b[0] for b in bounds if b is not None], sign=-1)
    hi = _extreme([b[1] for b in bounds if b is not None], sign=1)
    if lo is None or hi is None or any(_is_loose(atom) for key in lo for atom in key):
        return everything
    length = greatest(forms.plus(forms.minus(hi, lo), forms.constant(1)), outer)
    if length is None or any(_is_loose(atom) for key in length for atom in key):
        return everything
    if any(forms.mentions(length, var) for var, _ in outer):
        return everything
    whole = forms.form_of(size)
    spare = forms.const_of(forms.minus(whole, length))
    if spare is None:  # nothing is known about the size: a number is surely the better choice
        return (lo, forms.expr_of(length)) if forms.const_of(length) is not None else everything
    return (lo, forms.expr_of(length)) if spare > 0 else everything


def _extreme(candidates: list[Form], sign: int) -> Form | None:
    """The least (`sign` = -1) or greatest of forms that differ by numbers; None if they do not."""
    best = candidates[0]
    for form in candidates[1:]:
        distance = forms.const_of(forms.minus(form, best))
        if distance is None:
            return None
        if distance * sign > 0:
            best = form
    return best


def _is_loose(atom: tir.Expr) -> bool:
    """Not good enough as a start or an extent: a value from memory, or a choice."""
    return holds(atom, tir.Load, tir.Select, tir.Min, tir.Max)


class _Shift(AccessRewriter):
    """Replaces the buffers and subtracts the starts."""

    def __init__(self, shrunk: dict[tir.Buffer, tuple[tir.Buffer, tuple[Form, ...]]]) -> None:
        super().__init__({old: new for old, (new, _) in shrunk.items()})
        self.starts = {old: starts for old, (_, starts) in shrunk.items()}

    def indices(self, buffer: tir.Buffer, indices: tuple[tir.Expr, ...]) -> tuple[tir.Expr, ...]:
        pairs = zip(indices, self.starts[buffer], strict=True)
        return tuple([self.shifted(index, start) if start else index for index, start in pairs])

    def shifted(self, index: tir.Expr, start: Form) -> tir.Expr:
        if type(index) is tir.Ramp:
            return index.with_fields(base=self.shifted(index.base, start))
        return forms.expr_of(forms.minus(forms.form_of(index), start), self.order)
