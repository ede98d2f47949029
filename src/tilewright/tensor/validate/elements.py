"""From an element of a buffer back to the point of a block that writes it."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.arith.itermap import IterMap
from tilewright.tensor.validate.groups import Maps
from tilewright.tensor.visit import free_vars, substitute

__all__ = ["determined", "fills_buffer", "is_identity", "writer_of"]

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


def _offset(start: tir.Expr, var: tir.Var) -> int | None:
    """The number c in `var + c`, 0 for `var`; None for anything else."""
    if start is var:
        return 0
    match start:
        case tir.Add(a=a, b=tir.Const(value=int() as value)) if a is var:
            return value
        case tir.Sub(a=a, b=tir.Const(value=int() as value)) if a is var:
            return -value
    return None


def writer_of(
    block: tir.Block, region: tir.Region, element: Sequence[tir.Expr], maps: Maps
) -> dict[tir.Var, tir.Expr] | None:
    """The values of the block's iterators at which `region` holds `element`.

    Iterators that do not matter are left out. None if they cannot be told.
    """
    spatial = {it.var: it.extent for it in block.iters if it.kind is tir.IterKind.SPATIAL}
    found: dict[tir.Var, tir.Expr] = {}
    rest: list[tuple[tir.Range, tir.Expr]] = []
    for span, at in zip(region.ranges, element, strict=True):
        inside = free_vars(span.start) & spatial.keys()
        var = next(iter(inside)) if len(inside) == 1 else None
        offset = _offset(span.start, var) if var is not None else None
        if var is not None and offset is not None and tir.int_value(span.extent) == 1:
            found.setdefault(var, at - offset)
        elif inside or tir.int_value(span.start) != 0:
            rest.append((span, at))
    rest = [(span, at) for span, at in rest if not free_vars(span.start) <= found.keys()]
    return found if not rest else _inverted(rest, spatial, found, maps)


def _inverted(
    rest: list[tuple[tir.Range, tir.Expr]],
    spatial: dict[tir.Var, tir.Expr],
    found: dict[tir.Var, tir.Expr],
    maps: Maps,
) -> dict[tir.Var, tir.Expr] | None:
    """Indices such as `v // 8, v % 8`, and boxes such as `v * 16` of extent 16."""
    needed = {v for span, _ in rest for v in free_vars(span.start) | free_vars(span.extent)}
    loops = [(var, extent) for var, extent in spatial.items() if var in needed]
    exprs: list[tir.Expr] = []
    for span, _ in rest:
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
    if any(end is None for end in ends):
        return None
    map_ = maps.detect(exprs, [e for e in ends if e is not None], loops)
    if not isinstance(map_, IterMap):
        return None
    back = map_.inverse([at - n for (_, at), n in zip(rest, offsets, strict=True)])
    values = {var: back[var] for var in needed if var in back and var in spatial}
    return {**values, **found} if needed & spatial.keys() <= values.keys() else None


def _end(
    expr: tir.Expr, loops: list[tuple[tir.Var, tir.Expr]], analyzer: Analyzer
) -> tir.Expr | None:
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
    values = writer_of(block, region, element, maps)
    return found if values is None else found | values.keys()


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
