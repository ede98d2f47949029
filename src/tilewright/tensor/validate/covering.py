"""Does a block write all that another one reads, while the loops that they share stand still?

Each element that is read is traced back to the iteration of the writer that writes it
(`elements.py`); it must be one that the writer takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from tilewright.tensor import ir as tir
from tilewright.tensor.validate.alike import walk_alike
from tilewright.tensor.validate.bindings import Bound
from tilewright.tensor.validate.elements import Point, fills_buffer, writer_of
from tilewright.tensor.validate.facts import Known, image_of
from tilewright.tensor.validate.groups import Maps
from tilewright.tensor.validate.places import Pair, Place, conjuncts
from tilewright.tensor.visit import free_vars

__all__ = ["Answer", "covers"]


@dataclass(slots=True, eq=False)
class Answer:
    """Whether a writer provides a region, and if not, why."""

    covers: bool
    because: str = ""


def covers(
    writer: Bound,
    reader: Bound,
    region: tir.Region,
    depth: int,
    maps: Maps,
    *,
    in_domain: bool = False,
) -> Answer:
    """Does `writer` write all that `reader` reads while the first `depth` loops stand still?

    With `in_domain`, elements outside of what it ever writes are not asked for.
    """
    if any(tir.int_value(span.extent) == 0 for span in region.ranges):
        return Answer(covers=True)  # there is nothing to write
    if writer.place.is_conditional(reader.place):
        return Answer(covers=False, because="it is written only under a condition")
    question = ("covers", depth, in_domain)
    about = (writer.mapped, writer.place.block.writes, reader.mapped, region)
    return maps.once(
        question, about, lambda: _covers(writer, reader, region, depth, maps, in_domain=in_domain)
    )


def _covers(
    writer: Bound,
    reader: Bound,
    region: tir.Region,
    depth: int,
    maps: Maps,
    *,
    in_domain: bool,
) -> Answer:
    answer = Answer(covers=False, because="nothing writes it")
    for written in writer.place.block.writes:
        if written.buffer is region.buffer:
            answer = _writes_all(writer, written, reader, region, depth, maps, in_domain=in_domain)
            if answer.covers:
                return answer
    return answer


def _writes_all(
    writer: Bound,
    written: tir.Region,
    reader: Bound,
    region: tir.Region,
    depth: int,
    maps: Maps,
    *,
    in_domain: bool,
) -> Answer:
    place = writer.place
    iters = place.block.iters
    fixed = {loop.var for loop in place.loops[:depth]}
    moving = any(not fixed.isdisjoint(free_vars(b)) for b in place.block.bindings)
    if writer.mapped.fills and not moving and fills_buffer(iters, written, maps):
        return Answer(covers=True)
    if walk_alike(place, written, reader.place, region, depth):
        return Answer(covers=True)
    extents = reader.place.extents()
    element: list[tir.Expr] = []
    for span in reader.place.at(region).ranges:
        start = span.start
        if tir.int_value(span.extent) != 1:
            inside = tir.Var("inside")
            extents[inside] = span.extent
            start = start + inside
        element.append(start)
    known = Known(extents, conjuncts(reader.place.block.predicate))
    if _is_still(place, depth) and _holds_all(place.at(written), element, known):
        return Answer(covers=True)
    answer = _has_point(writer, written, element, known, depth, maps, in_domain=in_domain)
    if not answer.covers and _sweeps(place, written, element, known, depth, maps):
        return Answer(covers=True)
    return answer


def _has_point(
    writer: Bound,
    written: tir.Region,
    element: Sequence[tir.Expr],
    known: Known,
    depth: int,
    maps: Maps,
    *,
    in_domain: bool,
) -> Answer:
    """Is there a point of the writer that writes the element, and is it taken?"""
    iters = writer.place.block.iters
    point = writer_of(iters, written, element, maps)
    if point is None:
        return Answer(covers=False, because="it cannot be told which iteration writes it")
    met = all(known.within(at, span.start, span.extent) for at, span in point.conditions)
    if not in_domain and not met:
        return Answer(covers=False, because="the writer never writes it")
    inside = point.values.keys() if in_domain else point.inside
    return _runs(writer, point, known, depth, maps, inside)


def _sweeps(
    place: Place,
    written: tir.Region,
    element: Sequence[tir.Expr],
    known: Known,
    depth: int,
    maps: Maps,
) -> bool:
    """Is the element in the box that the writer's region sweeps without gaps, whatever points it is
    written at? Windows that overlap are so.
    """
    outer, inner = place.loops[:depth], place.loops[depth:]
    if place.block.predicate != tir.TRUE or not all(_runs_at_all(p, known) for p in inner):
        return False
    fixed = {loop.var: loop.extent for loop in outer}
    taken: set[tir.Var] = set()
    for span, at in zip(place.at(written).ranges, element, strict=True):
        used = {p.var for p in inner} & (free_vars(span.start) | free_vars(span.extent))
        if not taken.isdisjoint(used):
            return False
        taken |= used
        inside = tir.For(tir.Var("inside"), span.extent, place.block)
        image = image_of([span.start + inside.var], [*inner, inside], fixed, maps)
        if image is None or not known.reached(at, at, image, 0):
            return False
    return True


def _is_still(place: Place, depth: int) -> bool:
    """Does the block run once, without condition, while the outer loops stand still?"""
    outer = {loop.var for loop in place.loops[:depth]}
    still = all(free_vars(b) <= outer for b in place.block.bindings)
    return still and not place.reduce and place.block.predicate == tir.TRUE


def _holds_all(box: tir.Region, element: Sequence[tir.Expr], known: Known) -> bool:
    spans = zip(box.ranges, element, strict=True)
    return all(known.within(at, span.start, span.extent) for span, at in spans)


def _runs(
    writer: Bound,
    point: Point,
    known: Known,
    depth: int,
    maps: Maps,
    inside: AbstractSet[tir.Var],
) -> Answer:
    """Is the writer's point with these iterators taken while the outer loops stand still?

    `inside` has the iterators that are known to lie in their domains.
    """
    place, values = writer.place, point.values
    outer, inner = place.loops[:depth], place.loops[depth:]
    fixed = {loop.var: loop.extent for loop in outer}
    for group in writer.groups:
        pairs = [
            (it, b) for it, b in group.pairs if it.kind is tir.IterKind.REDUCE or it.var in values
        ]
        if group.fills and not any(loop.var in fixed for loop in group.loops):
            if not _in_domain(pairs, values, known, inside):
                return Answer(covers=False, because="it lies outside of what the writer computes")
            continue
        if not all(loop.var in fixed or _runs_at_all(loop, known) for loop in group.loops):
            return Answer(covers=False, because="a loop of the writer may have no iterations")
        image = image_of([b for _, b in pairs], inner, fixed, maps)
        if image is None:
            return Answer(covers=False, because="the iterations of the writer are too irregular")
        for n, (it, _) in enumerate(pairs):
            value = values.get(it.var)
            if value is None:
                continue
            if not known.reached(value, point.rounded_up.get(it.var, value), image, n):
                because = f"`{it.var.name}` of the writer does not reach it"
                return Answer(covers=False, because=because)
        if not _passes(group.predicate, pairs, values, known, inside):
            return Answer(covers=False, because="the predicate of the writer leaves it out")
    return Answer(covers=True)


def _runs_at_all(loop: tir.For, known: Known) -> bool:
    length = tir.int_value(loop.extent)
    if length is not None or type(loop.extent) is tir.TileSize:  # tiles are never empty
        return length != 0
    return known.holds(loop.extent >= 1)


def _in_domain(
    pairs: Sequence[Pair],
    values: dict[tir.Var, tir.Expr],
    known: Known,
    inside: AbstractSet[tir.Var],
) -> bool:
    asked = [it for it, _ in pairs if it.var in values and it.var not in inside]
    return all(known.within(values[it.var], tir.Const(0), it.extent) for it in asked)


def _passes(
    predicate: tir.Expr,
    pairs: Sequence[Pair],
    values: dict[tir.Var, tir.Expr],
    known: Known,
    inside: AbstractSet[tir.Var],
) -> bool:
    """Does the writer's predicate hold for these iterators? It usually compares a binding."""
    for cond in conjuncts(predicate):
        if type(cond) is not tir.Lt and type(cond) is not tir.Le:
            return False
        assert isinstance(cond, tir.Compare)
        if not any(
            _passes_as(cond, it, binding, values[it.var], known, in_bounds=it.var in inside)
            for it, binding in pairs
            if it.var in values
        ):
            return False
    return True


def _passes_as(
    cond: tir.Compare,
    it: tir.Iter,
    binding: tir.Expr,
    value: tir.Expr,
    known: Known,
    *,
    in_bounds: bool,
) -> bool:
    """`cond` as a condition on the iterator `it`, which has this binding; does `value` meet it?"""
    kind = type(cond)
    if cond.a == binding:
        if in_bounds and kind is tir.Lt and cond.b == it.extent:
            return True
        return known.holds(kind(value, cond.b))
    if cond.b == binding:
        if in_bounds and kind is tir.Le and tir.int_value(cond.a) == 0:
            return True
        return known.holds(kind(cond.a, value))
    return False
