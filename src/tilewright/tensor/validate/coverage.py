"""Is what a block reads ready? Every element must be written before, in the same iteration of the
loops that writer and reader share, and completely: a reduction must be through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from tilewright.errors import ProgramError
from tilewright.tensor import ir as tir
from tilewright.tensor.regions import block_regions
from tilewright.tensor.validate.apart import never_meet
from tilewright.tensor.validate.bindings import Bound, Mapped
from tilewright.tensor.validate.codes import V104, V110
from tilewright.tensor.validate.covering import covers
from tilewright.tensor.validate.groups import Maps
from tilewright.tensor.validate.places import Place
from tilewright.tensor.validate.together import fill_together

__all__ = ["Need", "lacking", "require_final", "require_ready", "require_written", "unready"]


@dataclass(slots=True, eq=False)
class Need:
    """A region that no block of the same nest provides; `parts` provide what they ever write."""

    reader: Bound
    region: tir.Region
    parts: list[Bound]


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
        for buffer in block.written:
            writers.setdefault(buffer, []).append(block)
    for reader in blocks:
        place = reader.place
        _require_independent(func, place)
        for region in reader.reads():
            if region.buffer in place.inherited and region.buffer in reader.lacks:
                continue
            others = [w for w in writers.get(region.buffer, ()) if w is not reader]
            if not others:
                needs.append(Need(reader, region, []))
                continue
            shared, parts = _provided(func, reader, region, others, maps)
            if parts:
                needs.append(Need(reader, region, parts))
            if reader.lacks:
                depths[place.number] = max(depths.get(place.number, 0), shared)
    return needs, depths


def _require_independent(func: tir.Func, place: Place) -> None:
    """A leaf reads no other element of what it writes: its points run in any order."""
    if place.inner:
        return
    for region in place.block.reads:
        if region.buffer in place.content.written:
            _refuse_own(func, place.block, region.buffer)


def _refuse_own(func: tir.Func, block: tir.Block, buffer: tir.Buffer) -> NoReturn:
    raise ProgramError(
        V110,
        {"block": block.name, "buffer": buffer.name},
        hint="write to another buffer",
        program=func,
        marks={"here": block},
    )


def lacking(func: tir.Func, outer: Bound, needs: Sequence[Need]) -> frozenset[tir.Buffer]:
    """The buffers whose elements a block updates without preparing them, from what the blocks
    inside of it need.

    Other elements of what it writes it must not read, nor what only it could have written.
    """
    block = outer.place.block
    written, read = outer.written, {region.buffer for region in block.reads}
    found: set[tir.Buffer] = set()
    for need in needs:
        buffer, reader = need.region.buffer, need.reader.place.block
        if need.parts:
            if not fill_together(need.parts, buffer):
                because = "the blocks before do not write all of it"
                _refuse(func, need.reader, need.region, need.parts[0], because)
        elif buffer in need.reader.lacks and buffer in written:
            found.add(buffer)
        elif buffer in written:
            _refuse_own(func, reader, buffer)
        elif buffer not in read:
            _refuse(func, need.reader, need.region, None, "nothing writes it")
    return frozenset(found)


def _provided(
    func: tir.Func, reader: Bound, region: tir.Region, others: list[Bound], maps: Maps
) -> tuple[int, list[Bound]]:
    """Require that the other writers of the nest provide `region`; the loops shared with them.

    Also writers that provide only what they ever write: if there are any, others do the rest.
    """
    depths = [writer.place.common(reader.place) for writer in others]
    later = [writer.place.number > reader.place.number for writer in others]
    lacks = [reader.lacks, *[writer.lacks for writer in others]]
    guarded = [writer.place.is_conditional(reader.place) for writer in others]
    about = [part for w in others for part in (w.mapped, w.place.block.writes)]
    return maps.once(
        ("provided", *depths, *later, *lacks, *guarded),
        (reader.mapped, region, *about),
        lambda: _search(func, reader, region, list(zip(others, depths, strict=True)), maps),
    )


def _search(
    func: tir.Func,
    reader: Bound,
    region: tir.Region,
    others: list[tuple[Bound, int]],
    maps: Maps,
) -> tuple[int, list[Bound]]:
    """As `_provided`; with each writer comes the number of loops that it shares."""
    because, shared, covered = "", 0, False
    parts: list[Bound] = []
    for writer, depth in others:
        if writer.place.number > reader.place.number:
            next_step = not depth and _is_next_step(reader, writer, region.buffer)
            if not next_step and not _leaves_alone(writer, reader, region, maps):
                _refuse(func, reader, region, writer, "it is written again later")
            continue
        partial = _reducing(writer.place, depth)
        if partial is not None:
            _refuse(func, reader, region, writer, f"its sum over loop `{partial}` is not complete")
        answer = covers(writer, reader, region, depth, maps)
        if region.buffer in reader.lacks and not writer.lacks:
            again = _reducing(reader.place, depth)
            if again is not None and not _leaves_alone(writer, reader, region, maps):
                _refuse(func, reader, region, writer, f"loop `{again}` starts its sum again")
        if answer.covers:
            covered, shared = True, max(shared, depth)
        elif covers(writer, reader, region, depth, maps, in_domain=True).covers:
            parts.append(writer)
            shared = max(shared, depth)
        else:
            because = because or answer.because
    if not covered and not parts:
        _refuse(func, reader, region, others[0][0], because or "it is written later")
    return shared, [] if covered else parts


def _is_next_step(reader: Bound, later: Bound, buffer: tir.Buffer) -> bool:
    """Do both blocks accumulate into the buffer? Only then may the second one write it later."""
    return buffer in reader.lacks and buffer in later.lacks


def _reducing(place: Place, depth: int) -> str | None:
    """One of the first loops over which a block reduces."""
    if not place.reduce:
        return None
    folded = place.driven_by(place.reduce)
    for loop in place.loops[:depth]:
        if loop.var in folded and tir.int_value(loop.extent) != 1:
            return loop.var.name
    return None


def _leaves_alone(writer: Bound, reader: Bound, region: tir.Region, maps: Maps) -> bool:
    """Does the writer never write any of the region?"""
    written = [r for r in writer.place.block.writes if r.buffer is region.buffer]
    return all(never_meet(writer, r, reader, region, maps) for r in written)


def require_final(
    func: tir.Func, reader: Bound, region: tir.Region, after: list[Bound], maps: Maps
) -> None:
    """V104 if blocks of later nests still write what a block reads."""
    for writer in after:
        next_step = _is_next_step(reader, writer, region.buffer)
        if not next_step and not _leaves_alone(writer, reader, region, maps):
            _refuse(func, reader, region, writer, "it is written later")


def require_ready(
    func: tir.Func, need: Need, before: list[Bound], after: list[Bound], maps: Maps
) -> None:
    """V104 unless blocks of earlier nests provide what a block needs.

    A parameter that nothing else writes has its value from the call.
    """
    buffer = need.region.buffer
    because = "nothing writes it"
    if need.parts:
        because = "it lies outside of what the writer computes"
    for writer in before:
        answer = covers(writer, need.reader, need.region, 0, maps)
        if answer.covers:
            return
        because = answer.because
    alone = not before and not after and not need.parts
    if alone and any(buffer is p for p in func.params):
        return
    if _provided_together(need, before, maps):
        return
    _refuse(func, need.reader, need.region, before[0] if before else None, because)


def _provided_together(need: Need, before: list[Bound], maps: Maps) -> bool:
    """Do several blocks fill the buffer between them, each in time with what it ever writes?"""
    complete = [
        w
        for w in before
        if w.mapped.fills or covers(w, need.reader, need.region, 0, maps, in_domain=True).covers
    ]
    parts = [*need.parts, *complete]
    return len(parts) > 1 and fill_together(parts, need.region.buffer)


def require_written(func: tir.Func, outer: Bound, inside: Sequence[Bound], maps: Maps) -> None:
    """What a block says it writes must be written by the blocks inside of it."""
    place = outer.place
    own = place.block.with_fields(
        bindings=tuple([i.var for i in place.block.iters]), predicate=tir.TRUE
    )
    loops = place.content.loops
    nothing = Mapped([], frozenset(), fills=False, exact=False)
    end = Bound(Place(own, loops, loops, len(inside), place.content), nothing)
    for region in place.block.writes:
        writers = _writing(inside, region.buffer, loops)
        single = [Bound(store, nothing) for store in place.content.stores]
        found = writers + _writing(single, region.buffer, loops)
        if found and not _any_covers(found, end, region, maps):
            because = "the blocks inside do not write all of it"
            _refuse(func, outer, region, found[0][0], because)
        # What has a start value, the blocks of the body take to be prepared.
        starting = [(w, depth) for w, depth in writers if not w.place.inherited]
        if any(region.buffer in w.place.inherited for w, _ in writers) and not (
            _any_covers(starting, end, region, maps) or region in _starts(place.block)
        ):
            because = "the start value is not written to all of it"
            _refuse(func, outer, region, starting[0][0] if starting else None, because)


def _writing(
    blocks: Sequence[Bound], buffer: tir.Buffer, loops: Sequence[tir.For]
) -> list[tuple[Bound, int]]:
    """The blocks that write a buffer, and how many of the loops each is in.

    A start value is in those of the spatial iterators only.
    """
    found = [b for b in blocks if buffer in b.written]
    return [(b, sum(any(p is q for q in loops) for p in b.place.loops)) for b in found]


def _starts(block: tir.Block) -> tuple[tir.Region, ...]:
    """What the init of a block writes."""
    return () if block.init is None else block_regions(block.iters, block.init)[1]


def _any_covers(
    writers: Sequence[tuple[Bound, int]], end: Bound, region: tir.Region, maps: Maps
) -> bool:
    return any(covers(w, end, region, depth, maps).covers for w, depth in writers)


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
