"""From an element of a buffer back to the point of a block that writes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise

from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.arith.itermap import IterMap, Refusal
from tilewright.tensor.arith.sweep import region_bounds
from tilewright.tensor.validate.groups import Maps
from tilewright.tensor.visit import free_vars, substitute

__all__ = ["Point", "determined", "fills_buffer", "writer_of"]

ZERO, ONE = tir.Const(0), tir.Const(1)

Iters = tuple[tir.Iter, ...]


def _is_identity(iters: Iters, region: tir.Region) -> bool:
    """Is the whole buffer written, each element by the iterators of the same number?"""
    extents = {it.var: it.extent for it in iters}
    seen: set[tir.Var] = set()
    for span, size in zip(region.ranges, region.buffer.shape, strict=True):
        var = span.start
        if type(var) is not tir.Var or var in seen or tir.int_value(span.extent) != 1:
            return False
        if extents.get(var) != size:
            return False
        seen.add(var)
    return True


def fills_buffer(iters: Iters, region: tir.Region, maps: Maps) -> bool:
    """Is every element of the buffer written while the iterators take all values?"""
    return maps.once("fills", (iters, region), lambda: _fills_buffer(iters, region, maps))


def _fills_buffer(iters: Iters, region: tir.Region, maps: Maps) -> bool:
    return _is_identity(iters, region) or isinstance(_single(iters, region, maps), IterMap)


def _single(iters: Iters, region: tir.Region, maps: Maps) -> IterMap | Refusal | None:
    """The map from spatial iterators to elements, if each point writes a single one."""
    if any(tir.int_value(span.extent) != 1 for span in region.ranges):
        return None
    loops = [(it.var, it.extent) for it in iters if it.kind is tir.IterKind.SPATIAL]
    return maps.detect([span.start for span in region.ranges], region.buffer.shape, loops)


def _offset(start: tir.Expr, var: tir.Var) -> tir.Expr | None:
    """What is added to `var` in an index; None if it is not just moved."""
    if start is var:
        return ZERO
    match start:
        case tir.Add(a=a, b=b) if var not in free_vars(b):
            inner = _offset(a, var)
            return None if inner is None else inner + b
        case tir.Add(a=a, b=b) if var not in free_vars(a):
            inner = _offset(b, var)
            return None if inner is None else inner + a
        case tir.Sub(a=a, b=b) if var not in free_vars(b):
            inner = _offset(a, var)
            return None if inner is None else inner - b
    return None


@dataclass(slots=True)
class Point:
    """Where a block writes an element, if the element meets the conditions."""

    values: dict[tir.Var, tir.Expr]
    """The iterators that matter."""
    conditions: list[tuple[tir.Expr, tir.Range]]
    """Indices that must lie in a range, which may depend on the block's iterators."""
    inside: set[tir.Var]
    """Iterators whose values are in their domains if the conditions are met."""
    rounded_up: dict[tir.Var, tir.Expr]
    """The same values if the conditions are met, but rounded to the next element of a stride."""


def writer_of(
    iters: Iters, region: tir.Region, element: Sequence[tir.Expr], maps: Maps
) -> Point | None:
    """The point at which `region` of a block is `element`; None if it cannot be told."""
    spatial = {it.var: it.extent for it in iters if it.kind is tir.IterKind.SPATIAL}
    found = Point({}, [], set(), {})
    rest: list[tuple[tir.Range, tir.Expr, tir.Expr]] = []
    for span, at, size in zip(region.ranges, element, region.buffer.shape, strict=True):
        inside = free_vars(span.start) & spatial.keys()
        var = next(iter(inside)) if len(inside) == 1 else None
        offset = _offset(span.start, var) if var is not None else None
        single = tir.int_value(span.extent) == 1
        if var is not None and offset is not None and single and var not in found.values:
            found.values[var] = at - offset
            if offset is ZERO and spatial[var] == size:
                found.inside.add(var)  # indices stay within the buffer in any valid program
        elif inside:
            rest.append((span, at, size))
        else:
            _demand(found, at, span, size)
    unsolved: list[tuple[tir.Range, tir.Expr, tir.Expr]] = []
    for span, at, size in rest:
        if free_vars(span.start) <= found.values.keys():
            _demand(found, at, span, size)
        elif not _read_digits(span, at, spatial, found):
            unsolved.append((span, at, size))
    if unsolved and not _invert(unsolved, spatial, found, maps):
        return None
    found.conditions = [(at, substitute(span, found.values)) for at, span in found.conditions]
    return found


def _read_digits(
    span: tir.Range, at: tir.Expr, spatial: dict[tir.Var, tir.Expr], found: Point
) -> bool:
    """Solve a sum of iterators, `v * 8 + u * 2 + 1`, in which each stays below the next factor."""
    factors: dict[tir.Var, int] = {}
    length, offset = tir.int_value(span.extent), _collect(span.start, 1, spatial, factors)
    if length is None or offset is None or not factors.keys().isdisjoint(found.values):
        return False
    ordered = sorted(factors.items(), key=lambda item: item[1])
    place = at - offset
    conditions: list[tuple[tir.Expr, tir.Range]] = []
    below, extent, rest = 1, span.extent, 0
    for var, factor in ordered:
        period, longest = factor // below, tir.int_value(extent)
        if factor <= 0 or factor % below or longest is None or longest > period:
            return False
        if longest < period:
            conditions.append((place // below % period, tir.Range(ZERO, extent)))
        rest += below * (longest - 1)
        below, extent = factor, spatial[var]
    for (var, factor), (_, above) in pairwise(ordered):
        found.values[var] = place // factor % (above // factor)
    top, largest = ordered[-1]
    found.values[top] = place // largest
    found.conditions += [*conditions, (found.values[top], tir.Range(ZERO, spatial[top]))]
    found.inside |= factors.keys()
    found.rounded_up[top] = (place + (largest - 1 - rest)) // largest
    return True


def _collect(
    expr: tir.Expr, factor: int, spatial: Mapping[tir.Var, tir.Expr], found: dict[tir.Var, int]
) -> tir.Expr | None:
    """Add up the factors of the iterators in a sum; what else is added, None if it is no sum."""
    if free_vars(expr).isdisjoint(spatial):
        return expr * factor
    match expr:
        case tir.Var():
            found[expr] = found.get(expr, 0) + factor
            return ZERO
        case tir.Add(a=a, b=b) | tir.Sub(a=a, b=b):
            left = _collect(a, factor, spatial, found)
            right = _collect(b, factor if type(expr) is tir.Add else -factor, spatial, found)
            return None if left is None or right is None else left + right
        case tir.Mul(a=a, b=tir.Const(value=int() as value)):
            return _collect(a, factor * value, spatial, found)
    return None


def _demand(point: Point, at: tir.Expr, span: tir.Range, size: tir.Expr) -> None:
    """An index must lie in a range; every index lies in its whole dimension."""
    if span.start != ZERO or span.extent != size:
        point.conditions.append((at, span))


def _invert(
    rest: list[tuple[tir.Range, tir.Expr, tir.Expr]],
    spatial: dict[tir.Var, tir.Expr],
    found: Point,
    maps: Maps,
) -> bool:
    """Solve indices such as `v // 8, v % 8`, and tiles with their insides."""
    needed = {v for span, _, _ in rest for v in free_vars(span.start) | free_vars(span.extent)}
    loops = [(var, extent) for var, extent in spatial.items() if var in needed]
    exprs: list[tir.Expr] = []
    for span, _, _ in rest:
        expr = span.start
        if tir.int_value(span.extent) != 1:
            inside = tir.Var("inside")
            loops.append((inside, span.extent))
            expr = expr + inside
        exprs.append(expr)
    reach = [span for span in region_bounds(exprs, loops, Analyzer()) if span is not None]
    if len(reach) < len(exprs):
        return False
    # Padding moves digits: `v % 4 + 1`.
    exprs = [expr - span.start for expr, span in zip(exprs, reach, strict=True)]
    moved = [at - span.start for (_, at, _), span in zip(rest, reach, strict=True)]
    ends = [span.extent for span in reach]
    map_ = maps.detect(exprs, ends, loops)
    if not isinstance(map_, IterMap):
        return False
    back = map_.inverse(moved)
    values = {var: back[var] for var in needed if var in back and var in spatial}
    if not needed & spatial.keys() <= values.keys():
        return False
    found.inside |= values.keys()
    for var, value in values.items():
        if found.values.setdefault(var, value) is not value:  # both indices must say the same
            found.conditions.append((found.values[var], tir.Range(value, ONE)))
    for (_, _, size), place, end in zip(rest, moved, ends, strict=True):
        _demand(found, place, tir.Range(ZERO, end), size)
    return True


def determined(iters: Iters, region: tir.Region, maps: Maps) -> AbstractSet[tir.Var]:
    """The spatial iterators for whose values the region is disjoint from all others."""
    return maps.once("determined", (iters, region), lambda: _determined(iters, region, maps))


def _determined(iters: Iters, region: tir.Region, maps: Maps) -> AbstractSet[tir.Var]:
    spatial = {it.var: it.extent for it in iters if it.kind is tir.IterKind.SPATIAL}
    found: set[tir.Var] = set()
    for span in region.ranges:
        inside = free_vars(span.start) & spatial.keys()
        if len(inside) == 1:
            (var,) = inside
            if var not in found and _steps_over(span, var, spatial):
                found.add(var)
    if found == spatial.keys():
        return found
    map_ = _single(iters, region, maps)
    if isinstance(map_, IterMap) and map_.is_exact:
        return spatial.keys()
    element = [tir.Var("at") for _ in region.ranges]
    point = writer_of(iters, region, element, maps)
    return found if point is None else found | point.values.keys()


def _steps_over(span: tir.Range, var: tir.Var, spatial: dict[tir.Var, tir.Expr]) -> bool:
    """Does the range move on by at least its own length with each value of `var`?"""
    start, length = span.start, tir.int_value(span.extent)
    if start is var and length == 1:
        return True
    if type(start) is tir.TileStart and start.tile is var:
        return span.extent == tir.TileSize(start.cover, var)
    if length == 1 and isinstance(start, tir.FloorDiv | tir.FloorMod):
        return False

    analyzer = Analyzer(spatial).assume(var + 1 < spatial[var])  # wherever there is a next one
    further = tir.Range(*[substitute(part, {var: var + 1}) for part in (start, span.extent)])
    return bool(
        analyzer.prove(start + span.extent <= further.start)
        or analyzer.prove(further.start + further.extent <= start)
    ) and bool(analyzer.prove(span.extent >= 0))
