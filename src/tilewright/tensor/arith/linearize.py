"""From expressions to linear forms: one visit of the tree, adding into one dictionary.

Index arithmetic is taken apart completely. What depends on data (loads, calls, conversions of wide
values, bit operations) raises `NotAffine`: such values may wrap, and the laws of mathematical
integers do not hold for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tilewright.dtypes import index
from tilewright.tensor.arith import div_mod, symbolic_div
from tilewright.tensor.arith.linear import Kind, Linear, Terms, constant, high, low, scaled
from tilewright.tensor.arith.min_max import extreme
from tilewright.tensor.arith.rebuild import expression
from tilewright.tensor.arith.recombine import recombine
from tilewright.tensor.arith.space import NotAffine, Space
from tilewright.tensor.arith.tiles import tile_size, tile_start
from tilewright.tensor.ir import (
    Add,
    Call,
    Cast,
    Const,
    Expr,
    FloorDiv,
    FloorMod,
    Max,
    Min,
    Mul,
    Neg,
    Select,
    Sub,
    TileSize,
    TileStart,
    Var,
)

__all__ = ["linearize"]


def linearize(space: Space, expr: Expr) -> Linear:
    """The canonical linear form of an index expression."""
    terms: Terms = {}
    const = _collect(space, expr, 1, terms)
    if 0 in terms.values():
        terms = {atom: k for atom, k in terms.items() if k}
    return recombine(space, Linear(const, terms))


def _collect(space: Space, expr: Any, k: int, terms: dict[Any, int]) -> int:
    """Add k·expr to `terms` (zeros may stay) and return what is constant of it."""
    kind = type(expr)
    if kind is Var:
        atom = space.var(expr)
        if type(atom) is int:
            return k * atom
        terms[atom] = terms.get(atom, 0) + k
        return 0
    if kind is Const:
        return int(k * expr.value)
    if kind is Add:
        return _collect(space, expr.a, k, terms) + _collect(space, expr.b, k, terms)
    if kind is Mul:
        a, b = expr.a, expr.b
        if type(b) is Const:
            return _collect(space, a, k * int(b.value), terms) if b.value else 0
        if type(a) is Const:
            return _collect(space, b, k * int(a.value), terms) if a.value else 0
    elif kind is Sub:
        return _collect(space, expr.a, k, terms) + _collect(space, expr.b, -k, terms)
    form = space.atomic(expr)
    for atom, q in form.terms.items():
        terms[atom] = terms.get(atom, 0) + k * q
    return k * form.const


def atomic(space: Space, expr: Expr) -> Linear:
    """The form of an expression that is not a sum."""
    handler = _HANDLERS.get(type(expr))
    if handler is None:
        if isinstance(expr, Var):
            atom = space.var(expr)
            return constant(atom) if isinstance(atom, int) else Linear(0, {atom: 1})
        raise NotAffine
    return handler(space, expr)


def _product(space: Space, expr: Mul) -> Linear:
    a, b = space.linear(expr.a), space.linear(expr.b)
    return space.multiply(a, b)


def _floor_div(space: Space, expr: FloorDiv) -> Linear:
    x, divisor = space.linear(expr.a), space.linear(expr.b)
    if divisor.terms:
        return symbolic_div.divide(space, x, divisor)
    return div_mod.floor_div(space, x, divisor.const, expr)


def _floor_mod(space: Space, expr: FloorMod) -> Linear:
    x, divisor = space.linear(expr.a), space.linear(expr.b)
    if divisor.terms:
        return symbolic_div.modulo(space, x, divisor)
    return div_mod.floor_mod(space, x, divisor.const, expr)


def _min(space: Space, expr: Min) -> Linear:
    return extreme(space, Kind.MIN, [space.linear(expr.a), space.linear(expr.b)], expr)


def _max(space: Space, expr: Max) -> Linear:
    return extreme(space, Kind.MAX, [space.linear(expr.a), space.linear(expr.b)], expr)


def _neg(space: Space, expr: Neg) -> Linear:
    return scaled(space.linear(expr.value), -1)


def _tile_start(space: Space, expr: TileStart) -> Linear:
    return tile_start(space, expr.cover, space.linear(expr.tile), expr)


def _tile_size(space: Space, expr: TileSize) -> Linear:
    return tile_size(space, expr.cover, space.linear(expr.tile), expr)


def _select(space: Space, expr: Select) -> Linear:
    cond = space.simplify(expr.cond)
    if type(cond) is Const:
        return space.linear(expr.if_true if cond.value else expr.if_false)
    yes, no = space.linear(expr.if_true), space.linear(expr.if_false)
    if yes.same(no):
        return yes

    def bounds() -> tuple[int | None, int | None]:
        lows = low(yes.const, yes.terms), low(no.const, no.terms)
        highs = high(yes.const, yes.terms), high(no.const, no.terms)
        lo = None if lows[0] is None or lows[1] is None else min(lows[0], lows[1])
        return lo, None if highs[0] is None or highs[1] is None else max(highs[0], highs[1])

    def build() -> Expr:
        if_true, if_false = expression(yes, expr.if_true), expression(no, expr.if_false)
        if cond is expr.cond and if_true is expr.if_true and if_false is expr.if_false:
            return expr
        return Select(cond, if_true, if_false)

    ident = (cond, yes.key(), no.key())
    return space.atom(Kind.SELECT, (yes, no), ident, bounds, build)


def _cast(space: Space, expr: Cast) -> Linear:
    """A narrower integer: its type bounds it."""
    source = expr.value.dtype
    if source.is_float or source.bits >= index.bits or source.lanes > 1:
        raise NotAffine
    inner = space.simplify(expr.value)
    made = expr if inner is expr.value else Cast(index, inner)
    bounds = (0, 1) if source.is_bool else (int(source.min_value), int(source.max_value))
    return space.atom(Kind.OTHER, (), (Cast, inner), lambda: bounds, lambda: made)


def _call(space: Space, expr: Call) -> Linear:
    """The number of this thread and of all threads, which are small and not negative."""
    if expr.name not in {"thread", "threads"}:
        raise NotAffine
    bounds = (1 if expr.name == "threads" else 0, (1 << 31) - 1)
    return space.atom(Kind.OTHER, (), (Call, expr.name), lambda: bounds, lambda: expr)


_HANDLERS: Final[dict[type[Expr], Callable[[Any, Any], Linear]]] = {
    Mul: _product,
    FloorDiv: _floor_div,
    FloorMod: _floor_mod,
    Min: _min,
    Max: _max,
    Neg: _neg,
    Select: _select,
    TileStart: _tile_start,
    TileSize: _tile_size,
    Cast: _cast,
    Call: _call,
}
