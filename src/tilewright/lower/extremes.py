"""How far an index reaches while loops run: symbolic least and greatest values, and exact boxes.

The bounds of `arith` are numbers; allocation, compaction and cutting need expressions in the outer
loops and the sizes, for example `[i0*6, i0*6 + size(t) - 1]`. Loops are taken away from the inside
out. Bounds are never too small; `fills_box` says when nothing between them is missed. Variables (of
loops and sizes) are never negative.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.lower import forms
from tilewright.lower.forms import Form
from tilewright.tensor import cover as covers
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import free_vars

__all__ = ["Loops", "extremes", "fills_box", "greatest", "least", "merge_tiles"]

Loops = Sequence[tuple[tir.Var, tir.Expr]]

ONE = forms.constant(1)


def extremes(form: Form, loops: Loops) -> tuple[Form, Form] | None:
    """(least, greatest) value of `form` while `loops` (outermost first) run; None if unknown."""
    if len(loops) > 1:
        form, loops = merge_tiles(form, loops)
    lo, hi = least(form, loops), greatest(form, loops)
    return None if lo is None or hi is None else (lo, hi)


def least(form: Form, loops: Loops) -> Form | None:
    """A lower bound in the variables outside of `loops`."""
    return _bound(form, loops, upper=False)


def greatest(form: Form, loops: Loops) -> Form | None:
    """An upper bound in the variables outside of `loops`."""
    return _bound(form, loops, upper=True)


def _bound(form: Form, loops: Loops, *, upper: bool) -> Form | None:
    result: Form | None = form
    for var, extent in reversed(loops):
        if result is None:
            return None
        if forms.mentions(result, var):
            result = _without(result, var, forms.form_of(extent), upper=upper)
    return result


def _without(form: Form, var: tir.Var, extent: Form, *, upper: bool) -> Form | None:
    last = forms.minus(extent, ONE)
    rising = _ends_of_tiles(form, var)
    if rising is not None:
        return forms.put(form, {var: last if upper == (rising > 0) else {}})
    total: Form = {}
    for key, k in form.items():
        touching = [a for a in key if a is var or (key and forms.mentions({(a,): 1}, var))]
        if not touching:
            total = forms.plus(total, {key: k})
            continue
        if len(touching) > 1 or not all(_not_negative(a) for a in key if a is not touching[0]):
            return None
        atom = touching[0]
        top = upper == (k > 0)
        at = (last if top else {}) if atom is var else _of_atom(atom, var, extent, upper=top)
        if at is None:
            return None
        others = list(key)
        others.remove(atom)
        total = forms.plus(total, forms.times(at, {tuple(others): k}))
    return total


def _not_negative(atom: tir.Expr) -> bool:
    return isinstance(atom, (tir.Var, tir.TileSize, tir.TileStart))


def _ends_of_tiles(form: Form, var: tir.Var) -> int | None:
    """The sign of k if `var` occurs just as k·(start of tile + size of tile), which is monotone."""
    touching = {key: k for key, k in form.items() if forms.mentions({key: 1}, var)}
    if len(touching) != 2 or any(len(key) != 1 for key in touching):
        return None
    atoms = {key[0]: k for key, k in touching.items()}
    size = next((a for a in atoms if type(a) is tir.TileSize), None)
    if size is None:
        return None
    k = atoms.pop(size)
    (other, factor), *_ = atoms.items()
    step = covers.regular_size(size.cover)
    if step is None:
        fits = other == tir.TileStart(size.cover, size.tile) and factor == k
    else:
        fits = other is var and size.tile is var and factor == k * step
    return k if fits and forms.split(forms.form_of(size.tile), var) is not None else None


def _of_atom(atom: tir.Expr, var: tir.Var, extent: Form, *, upper: bool) -> Form | None:
    """A bound of something that is no sum."""

    def inside(expr: tir.Expr) -> Form | None:
        form = forms.form_of(expr)
        return _without(form, var, extent, upper=upper) if forms.mentions(form, var) else form

    match atom:
        case tir.FloorDiv(a=a, b=tir.Const(value=int(c))) if c > 0:
            bound = inside(a)
            return None if bound is None else forms.form_of(forms.expr_of(bound) // c)
        case tir.FloorMod(b=tir.Const(value=int(c))) if c > 0:
            return forms.constant(c - 1 if upper else 0)
        case tir.TileSize(cover=cover):
            sizes = [size for size, _ in cover.segments]
            return forms.constant(max(sizes) if upper else min(sizes))
        case tir.TileStart(cover=cover, tile=tile):
            bound = inside(tile)
            return None if bound is None else start_of(cover, bound)
        case tir.Min(a=a, b=b) | tir.Max(a=a, b=b):
            x, y = inside(a), inside(b)
            if x is None or y is None:
                return None
            return forms.form_of(type(atom)(forms.expr_of(x), forms.expr_of(y)))
        case tir.Select(if_true=a, if_false=b):
            x, y = inside(a), inside(b)
            if x is None or y is None:
                return None
            kind = tir.Max if upper else tir.Min
            return forms.form_of(kind(forms.expr_of(x), forms.expr_of(y)))
    return None


def start_of(cover: tir.Cover, tile: Form) -> Form:
    """The start of a tile, which is the total for the tile behind the last."""
    if tile == forms.form_of(covers.count(cover)):
        return forms.form_of(covers.total(cover))
    return forms.form_of(covers.start(cover, forms.expr_of(tile)))


def merge_tiles(form: Form, loops: Loops) -> tuple[Form, Loops]:
    """Where tile and position in tile both run in full, one variable over the whole extent."""
    for var, extent in loops:
        if type(extent) is not tir.TileSize or not isinstance(extent.tile, tir.Var):
            continue
        cover, tile = extent.cover, extent.tile
        outer = next((e for v, e in loops if v is tile), None)
        parts = forms.split(form, var)
        if (
            outer is None
            or parts is None
            or forms.form_of(outer) != forms.form_of(covers.count(cover))
        ):
            continue
        k = forms.const_of(parts[0])
        rest = forms.minus(parts[1], forms.scaled(forms.form_of(covers.start(cover, tile)), k or 0))
        if not k or forms.mentions(rest, tile):
            continue
        whole = tir.Var(tile.name)
        merged = [
            (whole, covers.total(cover)) if v is tile else (v, e) for v, e in loops if v is not var
        ]
        return merge_tiles(forms.plus(rest, {(whole,): k}), merged)
    return form, loops


def fills_box(indices: Sequence[Form], loops: Loops) -> bool:
    """Do the points between the extremes of each dimension all occur, in every combination?"""
    every = {v for v, _ in loops}
    used: set[tir.Var] = set()
    for index in indices:
        form, own = merge_tiles(index, loops)
        moving = [(v, e) for v, e in own if forms.mentions(form, v)]
        mine = {v for v in every if forms.mentions(index, v)}
        if not used.isdisjoint(mine) or not _is_dense(form, moving):
            return False
        if any(not every.isdisjoint(free_vars(e)) for _, e in moving):
            return False
        used |= mine
    return True


def _is_dense(form: Form, loops: Loops) -> bool:
    """No gaps: with the loops sorted by step, each step is at most what the finer ones fill."""
    steps: list[tuple[int, Form]] = []
    for var, extent in loops:
        parts = forms.split(form, var)
        k = None if parts is None else forms.const_of(parts[0])
        if not k:
            return False
        steps.append((abs(k), forms.form_of(extent)))
    reach = ONE
    for k, length in sorted(steps, key=lambda s: s[0]):
        gap = forms.const_of(forms.minus(forms.constant(k), reach))
        if gap is None or gap > 0:
            return False
        reach = forms.plus(reach, forms.scaled(forms.minus(length, ONE), k))
    return True
