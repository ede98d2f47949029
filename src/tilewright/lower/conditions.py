"""For which iterations of a loop a comparison holds: the question behind every cut.

An affine comparison `c·v + r < 0`, where r moves in [lo, hi] while the loops inside run, holds for
a first range of v, is undecided for a second, and fails for the rest (or the other way round).
Borders are forms in the variables outside of the loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.dtypes import index
from tilewright.lower import forms
from tilewright.lower.extremes import Loops, extremes, greatest, least
from tilewright.lower.forms import Form
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import children, find, holds

__all__ = ["Spans", "comparisons", "spans"]

ONE = forms.constant(1)


@dataclass(frozen=True, slots=True)
class Spans:
    """Values of a comparison along a loop: `values[i]` holds between borders i - 1 and i.

    True, False, or None for undecided; the first border is zero and the last one is the extent,
    neither of which is listed.
    """

    borders: tuple[Form, ...]
    values: tuple[bool | None, ...]


def comparisons(stmt: tir.Stmt) -> Iterator[tuple[tir.Compare, Loops]]:
    """Comparisons of indices that decide what runs, each with the loops around it inside `stmt`.

    These are conditions of `If`, and of `Select` where a value from memory depends on it.
    """
    yield from _comparisons(stmt, ())


def _comparisons(stmt: tir.Stmt, loops: Loops) -> Iterator[tuple[tir.Compare, Loops]]:
    if not holds(stmt, tir.Compare):
        return
    match stmt:
        case tir.For():
            yield from _comparisons(stmt.body, (*loops, (stmt.var, stmt.extent)))
        case tir.Store():
            for node in find(stmt.value, tir.Select):
                if _has_load(node.if_true, node.if_false):
                    yield from ((c, loops) for c in _index_comparisons(node.cond))
        case tir.If():
            yield from ((c, loops) for c in _index_comparisons(stmt.cond))
            yield from _comparisons(stmt.then, loops)
            if stmt.otherwise is not None:
                yield from _comparisons(stmt.otherwise, loops)
        case _:
            for child in children(stmt):
                if isinstance(child, tir.Stmt):
                    yield from _comparisons(child, loops)


def _index_comparisons(cond: tir.Expr) -> Iterator[tir.Compare]:
    for node in find(cond, tir.Compare):
        if node.a.dtype is index and not _has_load(node):
            yield node


def _has_load(*exprs: tir.Expr) -> bool:
    return any(holds(expr, tir.Load) for expr in exprs)


def spans(comparison: tir.Compare, loop: tir.For, inner: Loops) -> Spans | None:
    """How `comparison` behaves along `loop`; None if it is not affine in its variable."""
    var = loop.var
    distance = forms.minus(forms.form_of(comparison.a), forms.form_of(comparison.b))
    parts = forms.split(distance, var)
    factor = None if parts is None else forms.const_of(parts[0])
    if parts is None or not factor:
        return None
    bounds = extremes(parts[1], inner)
    if bounds is None:
        return None
    here = [(var, loop.extent)]  # extents of inner loops may depend on it
    lo, hi = least(bounds[0], here), greatest(bounds[1], here)
    if lo is None or hi is None or any(forms.mentions(b, v) for b in (lo, hi) for v, _ in inner):
        return None
    if factor < 0:  # a - b < 0 with a falling left side is b - a > 0 with a rising one
        factor, lo, hi = -factor, forms.scaled(hi, -1), forms.scaled(lo, -1)
        return _falling(type(comparison), factor, lo, hi)
    return _rising(type(comparison), factor, lo, hi)


def _rising(kind: type[tir.Compare], c: int, lo: Form, hi: Form) -> Spans | None:
    """`c·v + r (kind) 0` with lo ≤ r ≤ hi."""
    if kind is tir.Lt or kind is tir.Le:
        more = 1 if kind is tir.Le else 0
        # c·v + r < 1 or < 0, surely for v < ceil((more - hi) / c)
        first, last = _ceil(forms.scaled(hi, -1), more, c), _ceil(forms.scaled(lo, -1), more, c)
        return Spans((first, last), (True, None, False))
    return _equal(kind, c, lo, hi)


def _falling(kind: type[tir.Compare], c: int, lo: Form, hi: Form) -> Spans | None:
    """`c·v + r (the mirror of kind) 0`, that is > or ≥, with lo ≤ r ≤ hi."""
    if kind is tir.Lt or kind is tir.Le:
        more = 1 if kind is tir.Lt else 0
        # c·v + r ≥ 1 or ≥ 0, never for v < ceil((more - hi) / c)
        first, last = _ceil(forms.scaled(hi, -1), more, c), _ceil(forms.scaled(lo, -1), more, c)
        return Spans((first, last), (False, None, True))
    return _equal(kind, c, lo, hi)


def _equal(kind: type[tir.Compare], c: int, lo: Form, hi: Form) -> Spans | None:
    if kind is not tir.Eq and kind is not tir.Ne:
        return None
    hit = kind is tir.Eq
    exact = c == 1 and lo == hi
    first = _ceil(forms.scaled(hi, -1), 0, c)
    behind = forms.plus(forms.form_of(_floor(forms.scaled(lo, -1), c)), ONE)
    return Spans((first, behind), (not hit, hit if exact else None, not hit))


def _ceil(form: Form, more: int, divisor: int) -> Form:
    """⌈(form + more) / divisor⌉."""
    total = forms.plus(form, forms.constant(more + divisor - 1))
    return forms.form_of(_floor(total, divisor))


def _floor(form: Form, divisor: int) -> tir.Expr:
    return forms.expr_of(form) // divisor
