"""Is what a block reads ready? Every element must be written before, in the same iteration of the
loops that writer and reader share, and completely: a reduction must be through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.errors import ProgramError
from tilewright.tensor import ir as tir
from tilewright.tensor.validate.alike import walk_alike
from tilewright.tensor.validate.bindings import Bound
from tilewright.tensor.validate.codes import V104, V110
from tilewright.tensor.validate.elements import fills_buffer, is_identity, writer_of
from tilewright.tensor.validate.facts import Known, image_of
from tilewright.tensor.validate.groups import Maps
from tilewright.tensor.validate.places import Place, conjuncts
from tilewright.tensor.validate.together import fill_together
from tilewright.tensor.visit import free_vars

__all__ = ["Need", "covers", "require_final", "require_ready", "require_written", "unready"]


@dataclass(slots=True, eq=False)
class Need:
    """A region that no block of the same nest provides, or (`inside`) only as far as it reaches."""

    reader: Bound
    region: tir.Region
    inside: Bound | None = None


@dataclass(slots=True, eq=False)
class _Answer:
    """Whether a writer provides a region, and if not, why."""

    covers: bool
    because: str = ""


def unready(
    func: tir.Func, blocks: Sequence[Bound], maps: Maps
) -> tuple[list[Need], dict[int, int]]:
    """What the blocks of one nest need from outside, and for each block that updates elements in
    place (by number) how many loops it shares with the block that prepares them.

    Raises V104 where a block of the nest writes what is read, but too late or not all of it.
    """
    needs: list[Need] = []
    depths: dict[int, int] = {}
    writers: dict[tir.Buffer, list[Bound]] = {}
    for block in blocks:
        for buffer in dict.fromkeys(r.buffer for r in block.place.block.writes):
            writers.setdefault(buffer, []).append(block)
    for reader in blocks:
        place = reader.place
        _require_independent(func, place)
        for region in place.reads():
            if region.buffer in place.inherited:
                continue
            others = [w for w in writers.get(region.buffer, ()) if w is not reader]
            if not others:
                if not (place.inner and reader in writers.get(region.buffer, ())):
                    needs.append(Need(reader, region))
                continue
            shared, partly = _provided(func, reader, region, others, maps)
            if partly is not None:
                needs.append(Need(reader, region, partly))
            if place.updates:
                depths[place.number] = max(depths.get(place.number, 0), shared)
    return needs, depths


def _require_independent(func: tir.Func, place: Place) -> None:
    """A leaf reads no other element of what it writes: its points run in any order."""
    if place.inner:
        return
    written = {r.buffer for r in place.block.writes}
    for region in place.block.reads:
        if region.buffer in written:
            raise ProgramError(
                V110,
                {"block": place.block.name, "buffer": region.buffer.name},
                hint="write to another buffer",
                program=func,
                marks={"here": place.block},
            )


def _provided(
    func: tir.Func, reader: Bound, region: tir.Region, others: list[Bound], maps: Maps
) -> tuple[int, Bound | None]:
    """Require that the other writers of the nest provide `region`; the loops shared with them.

    Also a writer that provides only what lies in its domain: others must provide the rest.
    """
    because, shared, covered = "", 0, False
    partly: Bound | None = None
    for writer in others:
        depth = writer.place.common(reader.place)
        if writer.place.number > reader.place.number:
            if depth or not _is_next_step(reader, writer, region.buffer):
                _refuse(func, reader, region, writer, "it is written again later")
            continue
        partial = _partial(writer, reader, depth)
        if partial is not None:
            _refuse(func, reader, region, writer, f"its sum over loop `{partial}` is not complete")
        answer = covers(writer, reader, region, depth, maps)
        if answer.covers:
            covered, shared = True, max(shared, depth)
        elif covers(writer, reader, region, depth, maps, in_domain=True).covers:
            partly, shared = writer, max(shared, depth)
        else:
            because = because or answer.because
    if not covered and partly is None:
        _refuse(func, reader, region, others[0], because or "it is written later")
    return shared, None if covered else partly


def _is_next_step(reader: Bound, later: Bound, buffer: tir.Buffer) -> bool:
    """Do both blocks accumulate into the buffer? Only then may the second one write it later."""
    mine = any(r.buffer is buffer for r in reader.place.block.writes)
    return mine and reader.place.updates and later.place.updates


def _partial(writer: Bound, reader: Bound, depth: int) -> str | None:
    """A shared loop that the writer still reduces over."""
    if not writer.place.reduce:
        return None
    folded = writer.place.driven_by(writer.place.reduce)
    for loop in reader.place.loops[:depth]:
        if loop.var in folded and tir.int_value(loop.extent) != 1:
            return loop.var.name
    return None


def covers(
    writer: Bound,
    reader: Bound,
    region: tir.Region,
    depth: int,
    maps: Maps,
    *,
    in_domain: bool = False,
) -> _Answer:
    """Does `writer` write all that `reader` reads while the first `depth` loops stand still?

    With `in_domain`, elements outside of what it ever writes are not asked for.
    """
    answer = _Answer(covers=False, because="nothing writes it")
    for written in writer.place.block.writes:
        if written.buffer is region.buffer:
            answer = _covers(writer, written, reader, region, depth, maps, in_domain=in_domain)
            if answer.covers:
                return answer
    return answer


def _covers(
    writer: Bound,
    written: tir.Region,
    reader: Bound,
    region: tir.Region,
    depth: int,
    maps: Maps,
    *,
    in_domain: bool,
) -> _Answer:
    place = writer.place
    fixed = {loop.var for loop in place.loops[:depth]}
    moving = any(fixed & free_vars(b) for b in place.block.bindings)
    if writer.fills and not moving and fills_buffer(place.block, written, maps):
        return _Answer(covers=True)
    if walk_alike(place, written, reader.place, region, depth):
        return _Answer(covers=True)
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
    point = writer_of(place.block, written, element, maps)
    if point is None:
        if _is_still(place, depth) and _holds_all(place.at(written), element, known):
            return _Answer(covers=True)
        return _Answer(covers=False, because="it cannot be told which iteration writes it")
    met = all(known.within(at, span.start, span.extent) for at, span in point.conditions)
    if not in_domain and not met:
        return _Answer(covers=False, because="the writer never writes it")
    in_bounds = in_domain or is_identity(place.block, written)
    return _runs(writer, point.values, known, depth, maps, in_bounds=in_bounds)


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
    values: dict[tir.Var, tir.Expr],
    known: Known,
    depth: int,
    maps: Maps,
    *,
    in_bounds: bool,
) -> _Answer:
    """Is the writer's point with these iterators taken while the outer loops stand still?

    `in_bounds`: the iterators are the indices, which stay within the buffer in any valid program.
    """
    place = writer.place
    outer, inner = place.loops[:depth], place.loops[depth:]
    fixed = {loop.var: loop.extent for loop in outer}
    for group in writer.groups:
        pairs = [
            (it, b) for it, b in group.pairs if it.kind is tir.IterKind.REDUCE or it.var in values
        ]
        if group.fills and not any(loop.var in fixed for loop in group.loops):
            if not in_bounds and not _in_domain(pairs, values, known):
                return _Answer(covers=False, because="it lies outside of what the writer computes")
            continue
        if not all(loop.var in fixed or _runs_at_all(loop, known) for loop in group.loops):
            return _Answer(covers=False, because="a loop of the writer may have no iterations")
        image = image_of([b for _, b in pairs], inner, fixed, maps)
        if image is None:
            return _Answer(covers=False, because="the iterations of the writer are too irregular")
        for (it, _), least, extent in zip(pairs, image.least, image.extents, strict=True):
            value = values.get(it.var)
            if value is not None and not known.within(value, least, extent):
                because = f"`{it.var.name}` of the writer does not reach it"
                return _Answer(covers=False, because=because)
        if not _passes(group.predicate, pairs, values, known, in_bounds=in_bounds):
            return _Answer(covers=False, because="the predicate of the writer leaves it out")
    return _Answer(covers=True)


def _runs_at_all(loop: tir.For, known: Known) -> bool:
    length = tir.int_value(loop.extent)
    if length is not None or type(loop.extent) is tir.TileSize:  # tiles are never empty
        return length != 0
    return known.holds(loop.extent >= 1)


def _in_domain(
    pairs: list[tuple[tir.Iter, tir.Expr]], values: dict[tir.Var, tir.Expr], known: Known
) -> bool:
    zero = tir.Const(0)
    return all(known.within(values[it.var], zero, it.extent) for it, _ in pairs if it.var in values)


def _passes(
    predicate: tir.Expr,
    pairs: list[tuple[tir.Iter, tir.Expr]],
    values: dict[tir.Var, tir.Expr],
    known: Known,
    *,
    in_bounds: bool,
) -> bool:
    """Does the writer's predicate hold for these iterators? It usually compares a binding."""
    for cond in conjuncts(predicate):
        if type(cond) is not tir.Lt and type(cond) is not tir.Le:
            return False
        assert isinstance(cond, tir.Compare)
        if not any(
            _passes_as(cond, it, binding, values[it.var], known, in_bounds=in_bounds)
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


def require_final(func: tir.Func, reader: Bound, region: tir.Region, after: list[Bound]) -> None:
    """V104 if blocks of later nests still write what a block reads."""
    for writer in after:
        if not _is_next_step(reader, writer, region.buffer):
            _refuse(func, reader, region, writer, "it is written later")


def require_ready(
    func: tir.Func, need: Need, before: list[Bound], after: list[Bound], maps: Maps
) -> None:
    """V104 unless blocks of earlier nests provide what a block needs.

    A parameter that nothing else writes has its value from the call.
    """
    buffer = need.region.buffer
    because = "nothing writes it"
    if need.inside is not None:
        because = "it lies outside of what the writer computes"
    for writer in before:
        answer = covers(writer, need.reader, need.region, 0, maps)
        if answer.covers:
            return
        because = answer.because
    alone = not before and not after and need.inside is None
    if alone and any(buffer is p for p in func.params):
        return
    if _provided_together(need, before, maps):
        return
    _refuse(func, need.reader, need.region, before[0] if before else None, because)


def _provided_together(need: Need, before: list[Bound], maps: Maps) -> bool:
    """Do several blocks fill the buffer between them, those of other nests completely?"""
    found = [need.inside] if need.inside is not None else before
    for writer in found:
        others = [w for w in before if w is not writer]
        if (
            others
            and all(w.fills for w in others)
            and fill_together([writer, *others], need.region.buffer)
        ):
            inside = need.inside is not None
            if inside or covers(writer, need.reader, need.region, 0, maps, in_domain=True).covers:
                return True
    return False


def require_written(func: tir.Func, outer: Bound, inside: Sequence[Bound], maps: Maps) -> None:
    """What a block says it writes must be written by the blocks inside of it."""
    place = outer.place
    own = place.block.with_fields(
        bindings=tuple(i.var for i in place.block.iters), predicate=tir.TRUE
    )
    loops = place.inner_loops
    end = Bound(Place(own, loops, loops, len(inside)), [], [])
    for region in place.block.writes:
        writers = [
            w for w in inside if any(r.buffer is region.buffer for r in w.place.block.writes)
        ]
        # The start value runs in the spatial ones of the loops only.
        still = [sum(any(p is q for q in loops) for p in w.place.loops) for w in writers]
        found = zip(writers, still, strict=True)
        if writers and not any(covers(w, end, region, depth, maps).covers for w, depth in found):
            because = "the blocks inside do not write all of it"
            _refuse(func, outer, region, writers[0], because)


def _refuse(
    func: tir.Func, reader: Bound, region: tir.Region, writer: Bound | None, because: str
) -> None:
    from tilewright.tensor.printer import print_node  # only when an error is made

    marks: dict[str, object] = {"reader": reader.place.block}
    if writer is not None:
        marks["writer"] = writer.place.block
    facts = {"buffer": region.buffer.name, "region": print_node(region), "because": because}
    hint = "compute it further out or earlier, or give its block more of the domain"
    raise ProgramError(V104, facts, hint=hint, program=func, marks=marks)
