"""One lane of a vector expression as a scalar expression: gathers compute their indices this way.

Scalar indices are shared, moved out of loops and split into constant distances like any other,
which the lanes of an integer vector would not be.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

from tilewright.dtypes import index
from tilewright.tensor import ir as tir

__all__ = ["count_of_lanes", "lane_of", "unit_ramp"]

# These fold constants when they are applied.
_OPERATORS: Final[dict[type[tir.Expr], Callable[[Any, Any], tir.Expr]]] = {
    tir.Add: operator.add,
    tir.Sub: operator.sub,
    tir.Mul: operator.mul,
    tir.FloorDiv: operator.floordiv,
    tir.FloorMod: operator.mod,
}


def lane_of(expr: tir.Expr, lane: int, otherwise: Callable[[tir.Expr, int], tir.Expr]) -> tir.Expr:
    """The scalar in lane number `lane` of `expr`; `otherwise` gives that of any other node."""

    def visit(part: tir.Expr) -> tir.Expr:
        match part:
            case _ if part.dtype.lanes == 1:
                return part
            case tir.Ramp(base=base, stride=stride):
                return base + stride * lane
            case tir.Broadcast(value=value):
                return value
            case tir.Load(buffer=buffer, indices=(where,)):
                return tir.Load(buffer, (visit(where),))
            case tir.Cast(dtype=dtype, value=value):
                return tir.Cast(dtype.scalar, visit(value))
            case tir.Binary(a=a, b=b):
                return _OPERATORS.get(type(part), type(part))(visit(a), visit(b))
            case tir.Select(cond=cond, if_true=a, if_false=b):
                return tir.Select(visit(cond), visit(a), visit(b))
        return otherwise(part, lane)

    return visit(expr)


def unit_ramp(where: tir.Expr) -> tir.Expr | None:
    """The first index if `where` counts up by one."""
    if type(where) is tir.Ramp and tir.int_value(where.stride) == 1:
        return where.base
    return None


def count_of_lanes(cond: tir.Compare) -> tir.Expr | None:
    """The number of lanes, counted from the first, in which `ramp(0, 1, …) < bound` holds."""
    match cond:
        case tir.Lt(a=tir.Ramp() as ramp, b=tir.Broadcast(value=bound)) if bound.dtype == index:
            if tir.int_value(ramp.base) == 0 and tir.int_value(ramp.stride) == 1:
                return bound
    return None
