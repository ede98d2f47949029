"""How far an index expression reaches, so that shapes alone show whether it stays inside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tilewright.errors import Code, GraphError
from tilewright.graph.ops.op import Limit
from tilewright.graph.sizes import fixed
from tilewright.tensor import ir as tir
from tilewright.tensor.printer import print_node
from tilewright.tensor.visit import walk

__all__ = ["ends", "require_limits"]

G012 = Code("G012", "places up to {most} of a dimension of {size} elements are asked for")


def ends(place: tir.Expr, extents: Mapping[tir.Var, tir.Expr]) -> tuple[tir.Expr, tir.Expr] | None:
    """The least and the greatest value of an index, both of which it takes.

    `extents` are the lengths of dimensions. An index is a sum of steps along them, a quotient of
    such a sum by a number, or the remainder of a dimension. None for everything else, and where a
    dimension occurs twice: what would be known then is too wide to refuse anything by it.
    """
    used = [part for part in walk(place) if isinstance(part, tir.Var) and part in extents]
    return _ends(place, extents) if len(used) == len(set(used)) else None


def _ends(place: tir.Expr, extents: Mapping[tir.Var, tir.Expr]) -> tuple[tir.Expr, tir.Expr] | None:
    match place:
        case tir.Var() if place in extents:
            return tir.Const(0), extents[place] - 1
        case tir.Add(a=a, b=b) | tir.Sub(a=a, b=b):
            first, second = _ends(a, extents), _ends(b, extents)
            if first is None or second is None:
                return None
            if isinstance(place, tir.Sub):
                return first[0] - second[1], first[1] - second[0]
            return first[0] + second[0], first[1] + second[1]
        case tir.Mul(a=a, b=tir.Const(value=factor)) | tir.Mul(a=tir.Const(value=factor), b=a):
            found = _ends(a, extents)
            if found is None:
                return None
            low, high = (end * int(factor) for end in found)
            return (low, high) if factor >= 0 else (high, low)
        case tir.FloorDiv(a=a, b=tir.Const(value=divisor)) if divisor > 0:
            found = _ends(a, extents)
            return None if found is None else (found[0] // divisor, found[1] // divisor)
        case tir.FloorMod(a=tir.Var() as a, b=tir.Const(value=divisor)) if a in extents:
            last = tir.minimum(extents[a], divisor) - 1
            return (tir.Const(0), last) if divisor > 0 else None
    moves = any(isinstance(part, tir.Var) and part in extents for part in walk(place))
    return None if moves else (place, place)


def require_limits(limits: Iterable[Limit]) -> None:
    """Refuse what is outside for all sizes; where nothing is asked for, nothing is outside."""
    for most, size, shape in limits:
        a, b = fixed(most), fixed(size)
        if a is not None and b is not None and a > b and all(map(fixed, shape)):
            hint = "indices and data agree in the dimensions that are not indexed"
            raise GraphError(G012, {"most": print_node(most), "size": print_node(size)}, hint=hint)
