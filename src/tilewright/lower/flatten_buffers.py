"""Every buffer becomes one row of elements, every access one offset; layouts end here.

    A: f32[128, 64]  A[i, k]   →   A: f32[8192]  A[i*64 + k]

Strides are those of the row-major physical shape, dense but for gaps in temporary buffers that keep
planes apart in a cache (`stagger`), and may be symbolic. Terms of an offset go
from outer to inner loops, with what unrolling and vectorising make constant at the end.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.lower import forms
from tilewright.lower.context import Context
from tilewright.lower.forms import Form
from tilewright.lower.rewrite_accesses import AccessRewriter
from tilewright.lower.simplify import simplified
from tilewright.lower.stagger import gaps_of
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import walk_stmts

__all__ = ["flatten_buffers"]


def flatten_buffers(func: tir.Func, context: Context) -> tir.Func:
    """One dimension for every buffer."""
    own = [s.buffer for s in walk_stmts(func) if type(s) is tir.Alloc]
    gaps = gaps_of(func, own, context.target)
    flat: dict[tir.Buffer, tuple[tir.Buffer, Strides]] = {}
    for buffer in (*func.params, *own):
        if len(buffer.shape) != 1 or buffer.layout:
            flat[buffer] = _flat(buffer, *gaps.get(buffer, (0, 0)))
    if not flat:
        return func
    params = tuple([flat[p][0] if p in flat else p for p in func.params])
    made = func.with_fields(params=params, body=_Flatten(flat).statement(func.body))
    # Rows and columns of fused loops come together again: (ij // 6) * 6 + ij % 6 is ij.
    return made.with_fields(body=simplified(made.body, made))


Strides = tuple[Form, ...]


def _flat(buffer: tir.Buffer, planes: int, gap: int) -> tuple[tir.Buffer, Strides]:
    """The buffer as one row, and its strides; so many elements between the planes it has."""
    strides: list[Form] = []
    total = forms.constant(1)
    for d, size in reversed(list(enumerate(buffer.shape))):
        if gap and d == planes:
            total = forms.plus(total, forms.constant(gap))
        strides.insert(0, total)
        total = forms.times(forms.form_of(size), total)
    shape = (forms.expr_of(total),)
    return tir.Buffer(buffer.name, shape, buffer.dtype, buffer.scope), tuple(strides)


class _Flatten(AccessRewriter):
    def __init__(self, flat: Mapping[tir.Buffer, tuple[tir.Buffer, Strides]]) -> None:
        super().__init__({old: new for old, (new, _) in flat.items()})
        self.strides = {old: strides for old, (_, strides) in flat.items()}

    def indices(self, buffer: tir.Buffer, indices: tuple[tir.Expr, ...]) -> tuple[tir.Expr, ...]:
        strides = self.strides[buffer]
        if any(type(index) is tir.FloorMod for index in indices):
            indices, strides = _joined(indices, strides, buffer.shape)
        return (self.offset(indices, strides),)

    def offset(self, indices: tuple[tir.Expr, ...], strides: Strides) -> tir.Expr:
        total: Form = {}
        lanes: tir.Expr | None = None
        for index, stride in zip(indices, strides, strict=True):
            if index.dtype.lanes > 1:
                lanes = (
                    _strided(index, stride) if lanes is None else lanes + _strided(index, stride)
                )
            else:
                total = forms.plus(total, forms.times(forms.form_of(index), stride))
        start = forms.expr_of(total, self.order)
        if lanes is None:
            return start
        if type(lanes) is tir.Ramp:
            base = forms.plus(total, forms.form_of(lanes.base))
            return lanes.with_fields(base=forms.expr_of(base, self.order))
        return lanes + tir.Broadcast(start, lanes.dtype.lanes) if total else lanes


def _joined(
    indices: tuple[tir.Expr, ...], strides: Strides, shape: tuple[tir.Expr, ...]
) -> tuple[tuple[tir.Expr, ...], Strides]:
    """Neighbouring indices that are digits of one number, by sizes that are not known, as one.

    The simplifier puts digits together whose sizes are numbers; `(x // w) * w + x % w` with a
    symbolic w would stay.
    """
    joined = [(indices[-1], strides[-1], shape[-1])]
    for index, stride, size in reversed(list(zip(indices, strides, shape, strict=True))[:-1]):
        inner, inner_stride, inner_size = joined[0]
        if tir.int_value(inner_size) is None:
            whole = _whole(index, size, inner, inner_size)
            if whole is not None:
                joined[0] = whole, inner_stride, size * inner_size
                continue
        joined.insert(0, (index, stride, size))
    return tuple([j[0] for j in joined]), tuple([j[1] for j in joined])


def _whole(
    outer: tir.Expr, outer_size: tir.Expr, inner: tir.Expr, inner_size: tir.Expr
) -> tir.Expr | None:
    """The x of `x // s` and `x % s`; `x % (t * s)` for `x // s % t` and `x % s`."""
    if type(inner) is not tir.FloorMod or not _same(inner.b, inner_size):
        return None
    high, cut = outer, False
    if type(outer) is tir.FloorMod and _same(outer.b, outer_size):
        high, cut = outer.a, True
    if type(high) is not tir.FloorDiv or not _same(high.b, inner.b) or not _same(high.a, inner.a):
        return None
    return tir.FloorMod(inner.a, outer_size * inner_size) if cut else inner.a


def _same(a: tir.Expr, b: tir.Expr) -> bool:
    return a == b or forms.form_of(a) == forms.form_of(b)


def _strided(index: tir.Expr, stride: Form) -> tir.Expr:
    """A vector of indices times a stride."""
    if forms.const_of(stride) == 1:
        return index
    if type(index) is tir.Ramp:
        base = forms.times(forms.form_of(index.base), stride)
        step = forms.times(forms.form_of(index.stride), stride)
        return tir.Ramp(forms.expr_of(base), forms.expr_of(step), index.lanes)
    return index * tir.Broadcast(forms.expr_of(stride), index.dtype.lanes)
