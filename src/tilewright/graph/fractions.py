"""Sizes that a model computes with floats, as integers.

Exporters write `int(height * 0.6)` as a conversion to float, a product, and a conversion back.
Between the conversions there are fractions whose denominators are known, so that the result is a
quotient of integers, and a size like any other.

    i64(f32(n) * 0.6)   becomes   n * 3 // 5

A float stands for the fraction of small numbers that rounds to it: 0.6 is 3/5. What a model
computes is rounded, and may lie beside the fraction where that is a whole number: 425 times the
float of 0.6 is a little more than 255. So each ratio knows its drift, and is rounded only to the
other side; what that does not allow is data. Sizes are below 2²⁴ divided by the denominator, as f32
holds them.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np

from tilewright.dtypes import f32, f64
from tilewright.graph.sizes import never_exceeds
from tilewright.tensor import ir as tir

__all__ = ["compared", "whole_part"]

MOST: Final = 1 << 12
"""Denominators above this are not those of a factor that someone wrote down."""


class Ratio(NamedTuple):
    """An integer expression over a positive number.

    A model that `rounds` has a float near it, which is equal where the ratio is one, unless there
    is a `drift`: away from zero (1), or towards it (-1).
    """

    over: tir.Expr
    under: int
    rounds: bool = False
    drift: int = 0


def whole_part(expr: tir.Expr) -> tir.Expr | None:
    """A float expression over sizes, truncated; None if it is no fraction of integers."""
    found = _ratio(expr)
    rounded = None if found is None else _truncated(found)
    return None if rounded is None else rounded.over


def compared(expr: tir.Compare) -> tir.Expr | None:
    """A comparison of floats over sizes as one of integers; None if one is no exact fraction."""
    first, second = _ratio(expr.a), _ratio(expr.b)
    if first is None or second is None or first.rounds or second.rounds:
        return None
    return type(expr)(first.over * second.under, second.over * first.under)


def _ratio(expr: tir.Expr) -> Ratio | None:
    if expr.dtype not in (f32, f64):
        return None
    match expr:
        case tir.Const(value=value):
            return _number(float(value), single=expr.dtype == f32)
        case tir.Cast(value=value) if value.dtype.is_integer:
            return Ratio(value, 1)
        case tir.Cast(value=value):
            return _ratio(value)
        case tir.Neg(value=value):
            found = _ratio(value)
            return None if found is None else found._replace(over=tir.Const(0) - found.over)
        case tir.Call(name=name, args=(value,)) if name in _ROUNDED:
            found = _ratio(value)
            return None if found is None else _ROUNDED[name](found)
        case tir.Binary(a=a, b=b) if type(expr) in _COMBINED:
            first, second = _ratio(a), _ratio(b)
            if first is None or second is None:
                return None
            return _limited(_COMBINED[type(expr)](first, second))
    return None


def _number(value: float, *, single: bool) -> Ratio | None:
    if not np.isfinite(value):
        return None
    near, exact = Fraction(value).limit_denominator(MOST), Fraction(value)
    if (np.float32(float(near)) if single else float(near)) != value:
        return None
    # Half of the least step between floats, relative to these: products by less are rounded back.
    small = abs(near) * Fraction(1, 2**25 if single else 2**54)
    drift = 0 if abs(exact - near) < small or exact == near else 1
    drift = -drift if abs(exact) < abs(near) else drift
    return Ratio(tir.Const(near.numerator), near.denominator, exact != near, drift)


def _limited(found: Ratio | None) -> Ratio | None:
    return found if found is not None and found.under <= MOST else None


def _is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


def _floor(found: Ratio) -> Ratio | None:
    if found.drift and not (found.drift > 0 and _is_never_negative(found.over)):
        return None
    return Ratio(found.over // found.under if found.under > 1 else found.over, 1)


def _ceil(found: Ratio) -> Ratio | None:
    if found.drift and not (found.drift < 0 and _is_never_negative(found.over)):
        return None
    under = found.under
    return Ratio((found.over + (under - 1)) // under if under > 1 else found.over, 1)


def _truncated(found: Ratio) -> Ratio | None:
    if found.drift < 0:
        return None
    down, up = (f(found._replace(drift=0)) for f in (_floor, _ceil))
    assert down is not None
    assert up is not None
    if found.under == 1:
        return down
    return Ratio(tir.Select(found.over < 0, up.over, down.over), 1)


def _is_never_negative(over: tir.Expr) -> bool:
    return never_exceeds(tir.Const(0), over, ())


def _sum(p: Ratio, q: Ratio) -> Ratio | None:
    if (p.rounds and q.rounds) or p.drift or q.drift:
        return None
    over = p.over * q.under + q.over * p.under
    return Ratio(over, p.under * q.under, p.rounds or q.rounds)


def _difference(p: Ratio, q: Ratio) -> Ratio | None:
    return _sum(p, q._replace(over=tir.Const(0) - q.over))


def _product(p: Ratio, q: Ratio) -> Ratio | None:
    """What is rounded may be doubled and halved; another factor makes more of its error."""
    if tir.int_value(p.over) is not None:
        p, q = q, p
    by = tir.int_value(q.over)
    if by is None and (p.rounds or q.rounds):
        return None
    doubles = by is not None and _is_power_of_two(abs(by)) and _is_power_of_two(q.under)
    if p.rounds and not doubles:
        return None
    rounds = p.rounds or q.rounds or not _is_power_of_two(q.under)
    return Ratio(p.over * q.over, p.under * q.under, rounds, p.drift or q.drift)


def _quotient(p: Ratio, q: Ratio) -> Ratio | None:
    """By a number only: a size may be zero."""
    by = tir.int_value(q.over)
    if not by:
        return None
    sign = 1 if by > 0 else -1
    return _product(p, Ratio(tir.Const(sign * q.under), abs(by), q.rounds, -q.drift))


def _greatest(p: Ratio, q: Ratio) -> Ratio | None:
    return _chosen(tir.Max, p, q)


def _least(p: Ratio, q: Ratio) -> Ratio | None:
    return _chosen(tir.Min, p, q)


def _chosen(which: type[tir.Binary], p: Ratio, q: Ratio) -> Ratio | None:
    """One of two: what lies near a ratio lies on its side of others with small denominators."""
    if p.drift or q.drift:
        return None
    over = which(p.over * q.under, q.over * p.under)
    return Ratio(over, p.under * q.under, p.rounds or q.rounds)


_ROUNDED: Final = {"floor": _floor, "ceil": _ceil, "trunc": _truncated}
_COMBINED: Final = {
    tir.Add: _sum,
    tir.Sub: _difference,
    tir.Mul: _product,
    tir.Div: _quotient,
    tir.Max: _greatest,
    tir.Min: _least,
}
