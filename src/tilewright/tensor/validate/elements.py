"""From an element of a buffer back to the point of a block that writes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.arith.itermap import IterMap
from tilewright.tensor.validate.groups import Maps
from tilewright.tensor.visit import free_vars, substitute

__all__ = ["determined", "fills_buffer", "is_identity", "Point", "writer_of"]

ZERO, ONE = tir.Const(0), tir.Const(1)


def is_identity(block: tir.Block, region: tir.Region) -> bool:
    """Does the block write the whole buffer, each element by the iterators of the same number?"""
    extents = {it.var: it.extent for it in block.iters}
    seen: set[tir.Var] = set()
    for span, size in zip(region.ranges, region.buffer.shape, strict=True):
        var = span.start
        if not isinstance(var, tir.Var) or var in seen or tir.int_value(span.extent) != 1:
            return False
        if extents.get(var) != size:
            return False
        seen.add(var)
    return True


def fills_buffer(block: tir.Block, region: tir.Region, maps: Maps) -> bool:
    """Does the block write every element of the buffer while its iterators take all values?"""
    if is_identity(block, region):
        return True
    if any(tir.int_value(span.extent) != 1 for span in region.ranges):
        return False
    loops = [(it.var, it.extent) for it in block.iters if it.kind is tir.IterKind.SPATIAL]
    starts = [span.start for span in region.ranges]
    return isinstance(maps.detect(starts, region.buffer.shape, loops), IterMap)


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


def writer_of(
    block: tir.Block, region: tir.Region, element: Sequence[tir.Expr], maps: Maps
) -> Point | None:
    """The point at which `region` of the block is `element`; None if it cannot be told."""
    spatial = {it.var: it.extent for it in block.iters if it.kind is tir.IterKind.SPATIAL}
    found = Point({}, [])
    rest: list[tuple[tir.Range, tir.Expr, tir.Expr]] = []
    for span, at, size in zip(region.ranges, element, region.buffer.shape, strict=True):
        inside = free_vars(span.start) & spatial.keys()
        var = next(iter(inside)) if len(inside) == 1 else None
        offset = _offset(span.start, var) if var is not None else None
        single = tir.int_value(span.extent) == 1
        if var is not None and offset is not None and single and var not in found.values:
            found.values[var] = at - offset
        elif inside:
            rest.append((span, at, size))
        else:
            _demand(found, at, span, size)
    unsolved = [part for part in rest if not free_vars(part[0].start) <= found.values.keys()]
    for span, at, size in rest:
        if free_vars(span.start) <= found.values.keys():
            _demand(found, at, span, size)
    if unsolved and not _invert(unsolved, spatial, found, maps):
        return None
    found.conditions = [(at, substitute(span, found.values)) for at, span in found.conditions]
    return found


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
    """Solve indices such as `v // 8, v % 8`, and boxes such as `v * 16` of extent 16."""
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
    analyzer = Analyzer(dict(loops))
    offsets = [analyzer.bounds(e).lo or 0 for e in exprs]  # padding moves digits: `v % 4 + 1`
    exprs = [e - offset for e, offset in zip(exprs, offsets, strict=True)]
    ends = [_end(e, loops, analyzer) for e in exprs]
    map_ = maps.detect(exprs, ends, loops)
    if not isinstance(map_, IterMap):
        return False
    moved = [at - n for (_, at, _), n in zip(rest, offsets, strict=True)]
    back = map_.inverse(moved)
    values = {var: back[var] for var in needed if var in back and var in spatial}
    if not needed & spatial.keys() <= values.keys():
        return False
    found.values = {**values, **found.values}
    for (_, at, size), offset, end in zip(rest, offsets, ends, strict=True):
        _demand(found, at, tir.Range(tir.Const(offset), end), size)
    return True


def _end(expr: tir.Expr, loops: list[tuple[tir.Var, tir.Expr]], analyzer: Analyzer) -> tir.Expr:
    """One more than the greatest value of an index."""
    high = analyzer.bounds(expr).hi
    if high is not None:
        return tir.Const(high + 1)

    for var, extent in reversed(loops):
        expr = substitute(expr, {var: extent - 1})
    return analyzer.simplify(expr + 1)


def determined(block: tir.Block, region: tir.Region, maps: Maps) -> set[tir.Var]:
    """The spatial iterators for whose values the region is disjoint from all others."""
    spatial = {it.var: it.extent for it in block.iters if it.kind is tir.IterKind.SPATIAL}
    found: set[tir.Var] = set()
    for span in region.ranges:
        inside = free_vars(span.start) & spatial.keys()
        if len(inside) == 1:
            (var,) = inside
            if _steps_over(span, var, spatial):
                found.add(var)
    if found == spatial.keys():
        return found
    element = [tir.Var("at") for _ in region.ranges]
    point = writer_of(block, region, element, maps)
    return found if point is None else found | point.values.keys()


def _steps_over(span: tir.Range, var: tir.Var, spatial: dict[tir.Var, tir.Expr]) -> bool:
    """Does the range move on by at least its own length with each value of `var`?"""
    if span.start is var and tir.int_value(span.extent) == 1:
        return True
    if type(span.start) is tir.TileStart and span.start.tile is var:
        return span.extent == tir.TileSize(span.start.cover, var)

    analyzer = Analyzer(spatial)
    step = analyzer.simplify(substitute(span.start, {var: var + 1}) - span.start)
    number, longest = tir.int_value(step), analyzer.bounds(span.extent).hi
    return number is not None and longest is not None and abs(number) >= longest > 0
