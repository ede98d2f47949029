"""Iterations of a parallel loop must not meet: one may neither write what another one writes nor
read what another one writes.

Each block writes different elements in different iterations. Of several blocks that write one
buffer, each either stays within what an earlier one wrote in the same iteration, or is apart from
all others; the same goes for what blocks read of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from tilewright.errors import ProgramError
from tilewright.tensor import ir as tir
from tilewright.tensor.validate.apart import stay_apart
from tilewright.tensor.validate.bindings import Bound
from tilewright.tensor.validate.codes import V103, V106
from tilewright.tensor.validate.covering import covers
from tilewright.tensor.validate.elements import determined
from tilewright.tensor.validate.groups import Group, Maps

__all__ = ["require_no_race", "spatial_of"]

Owner = tuple[Bound, tir.Region]


def require_no_race(
    func: tir.Func,
    blocks: Sequence[Bound],
    loop: tir.For,
    outside: frozenset[tir.Buffer],
    maps: Maps,
) -> None:
    """V103 or V106 if iterations of a parallel or vector loop meet in a buffer.

    A buffer that is used nowhere else (`outside` has those of other nests) belongs to the
    iteration of a parallel loop; lanes share all buffers.
    """
    inside = [b for b in blocks if any(loop is p for p in b.place.loops)]
    lanes = loop.kind is tir.LoopKind.VECTOR
    if tir.int_value(loop.extent) == 1 or (lanes and len(inside) == 1):
        return
    shared = None if lanes else _shared(blocks, inside, outside)
    owners: dict[tir.Buffer, list[Owner]] = {}
    for block in inside:
        for region in block.place.block.writes:
            if shared is None or region.buffer in shared:
                found = owners.setdefault(region.buffer, [])
                if not lanes and not _writes_apart(block, region, loop, maps):
                    _refuse(func, block, region, loop)
                if not _is_within(found, block, region, loop, maps):
                    _require_apart(func, found, block, region, loop, maps)
                    found.append((block, region))
    for block in inside:
        for region in block.place.block.reads:
            found = owners.get(region.buffer, [])
            if found and not _is_within(found, block, region, loop, maps):
                _require_apart(func, found, block, region, loop, maps)


def _shared(
    blocks: Sequence[Bound], inside: Sequence[Bound], outside: frozenset[tir.Buffer]
) -> set[tir.Buffer]:
    """Buffers that are used outside of a loop, whose blocks are `inside`."""
    found = set(outside)
    for block in blocks:
        if block not in inside:
            found.update(r.buffer for r in (*block.place.block.reads, *block.place.block.writes))
    return found


def _is_within(
    owners: list[Owner], block: Bound, region: tir.Region, loop: tir.For, maps: Maps
) -> bool:
    """Is the region a part of what an owner wrote in the same iteration?"""
    for owner, _ in owners:
        depth = owner.place.common(block.place)
        together = any(loop is p for p in block.place.loops[:depth])
        if together and covers(owner, block, region, depth, maps).covers:
            return True
    return False


def _require_apart(
    func: tir.Func,
    owners: list[Owner],
    block: Bound,
    region: tir.Region,
    loop: tir.For,
    maps: Maps,
) -> None:
    for owner, written in owners:
        if not stay_apart(owner, written, block, region, loop, maps):
            _refuse(func, block, region, loop)


def _writes_apart(block: Bound, region: tir.Region, loop: tir.For, maps: Maps) -> bool:
    """Does a block write different elements in different iterations of a loop?"""
    return _by_iterators(block, region, loop, maps) or stay_apart(
        block, region, block, region, loop, maps
    )


def _by_iterators(block: Bound, region: tir.Region, loop: tir.For, maps: Maps) -> bool:
    group = block.group_of(loop.var)
    if group is None or not group.fills:
        return False
    if loop.var in group.unused or loop.var in group.overlapping:
        return False
    return spatial_of(group) <= determined(block.place.block.iters, region, maps)


def spatial_of(group: Group) -> set[tir.Var]:
    """The spatial iterators of a group that have more than one value."""
    found = (it for it, _ in group.pairs if it.kind is tir.IterKind.SPATIAL)
    return {it.var for it in found if tir.int_value(it.extent) != 1}


def _refuse(func: tir.Func, block: Bound, region: tir.Region, loop: tir.For) -> NoReturn:
    buffer, inner = region.buffer.name, block.place.block
    if loop.kind is tir.LoopKind.VECTOR:
        facts = {"found": f"lanes that meet in `{buffer}`"}
        marks = {"loop": loop, "inner": inner}
        hint = "let every lane read and write elements of its own, or vectorise the blocks apart"
        raise ProgramError(V106, facts, hint=hint, program=func, marks=marks)
    facts = {"buffer": buffer, "written by" if region in inner.writes else "read by": inner.name}
    hint = "let every iteration write a part of its own, or make another loop parallel"
    marks = {"loop": loop, "block": inner}
    raise ProgramError(V103, facts, hint=hint, program=func, marks=marks)
