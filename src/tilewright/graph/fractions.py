"""Sizes that a model computes with floats, as integers.

Exporters write `int(height * 0.6)` as a conversion to float, a product, and a conversion back.
Between the conversions there are fractions whose denominators are known, so that the result is a
quotient of integers, and a size like any other.

    i64(f32(n) * 0.6)   becomes   n * 3 // 5

A float stands for the fraction of small numbers that rounds to it: 0.6 is 3/5. What a model rounds
on the way is then not rounded here; results agree while sizes times denominators are far below
2²⁴.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np

from tilewright.dtypes import f32, f64
from tilewright.tensor import ir as tir

__all__ = ["whole_part"]

MOST: Final = 1 << 12
"""Denominators above this are not those of a factor that someone wrote down."""


class Ratio(NamedTuple):
    """An integer expression over a positive number."""

    over: tir.Expr
    under: int


def whole_part(expr: tir.Expr) -> tir.Expr | None:
    """A float expression over sizes, truncated; None if it is no fraction of integers."""
    found = _ratio(expr)
    return None if found is None else _truncated(found)


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
            return None if found is None else Ratio(tir.Const(0) - found.over, found.under)
        case tir.Call(name=name, args=(value,)) if name in _ROUNDED:
            found = _ratio(value)
            return None if found is None else Ratio(_ROUNDED[name](found), 1)
        case tir.Binary(a=a, b=b) if type(expr) in _COMBINED:
            first, second = _ratio(a), _ratio(b)
            if first is None or second is None:
                return None
            return _limited(_COMBINED[type(expr)](first, second))
    return None


def _number(value: float, *, single: bool) -> Ratio | None:
    if not np.isfinite(value):
        return None
    near = Fraction(value).limit_denominator(MOST)
    rounded = np.float32(float(near)) if single else float(near)
    same = rounded == (np.float32(value) if single else value)
    return Ratio(tir.Const(near.numerator), near.denominator) if same else None


def _limited(found: Ratio | None) -> Ratio | None:
    return found if found is not None and found.under <= MOST else None


def _floor(found: Ratio) -> tir.Expr:
    return found.over // found.under if found.under > 1 else found.over


def _ceil(found: Ratio) -> tir.Expr:
    return (found.over + (found.under - 1)) // found.under if found.under > 1 else found.over


def _truncated(found: Ratio) -> tir.Expr:
    if found.under == 1:
        return found.over
    return tir.Select(found.over < 0, _ceil(found), _floor(found))


def _sum(p: Ratio, q: Ratio) -> Ratio:
    return Ratio(p.over * q.under + q.over * p.under, p.under * q.under)


def _difference(p: Ratio, q: Ratio) -> Ratio:
    return Ratio(p.over * q.under - q.over * p.under, p.under * q.under)


def _product(p: Ratio, q: Ratio) -> Ratio:
    return Ratio(p.over * q.over, p.under * q.under)


def _quotient(p: Ratio, q: Ratio) -> Ratio | None:
    """By a number only: a size may be zero."""
    by = tir.int_value(q.over)
    if not by:
        return None
    return Ratio(p.over * (q.under if by > 0 else -q.under), p.under * abs(by))


_ROUNDED: Final = {"floor": _floor, "ceil": _ceil, "trunc": _truncated}
_COMBINED: Final = {
    tir.Add: _sum,
    tir.Sub: _difference,
    tir.Mul: _product,
    tir.Div: _quotient,
}
