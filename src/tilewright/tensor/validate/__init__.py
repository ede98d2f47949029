"""Does a scheduled program still mean what it should? Checked after every step of a schedule.

* V101 V105 V108: the loops around a block take the points of its domain, each reduction from zero
* V107: nothing is added twice                                                    (`bindings.py`)
* V104 V110: what a block reads is written before, completely                     (`coverage.py`)
* V102 V103 V106 V109: parallel loops do not race, vector loops have independent lanes (`kinds.py`)

Everything is proved or refused. Nests that a step leaves alone are not looked at again: they are
remembered by identity, and maps of bindings by value (`groups.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilewright.tensor import ir as tir
from tilewright.tensor.regions import sizes
from tilewright.tensor.validate.bindings import Bound, bound, require_counted_once
from tilewright.tensor.validate.coverage import (
    Need,
    require_final,
    require_ready,
    require_written,
    unready,
)
from tilewright.tensor.validate.groups import Maps
from tilewright.tensor.validate.kinds import parallel_around, require_kinds
from tilewright.tensor.validate.places import Place, places_of, top_statements

__all__ = ["ValidationCache", "validate"]

_MOST = 2048  # nests that are remembered


@dataclass(slots=True, eq=False)
class _Nest:
    """One statement at the top of a program, and what is known about it."""

    stmt: tir.Stmt
    blocks: list[Bound]
    touched: frozenset[tir.Buffer]
    written: frozenset[tir.Buffer]
    needs: list[Need]
    checked: set[frozenset[tir.Buffer]]


class ValidationCache:
    """Remembers what is valid; shared by the steps of a schedule and by its copies."""

    def __init__(self) -> None:
        self.maps = Maps()
        self._nests: dict[int, _Nest] = {}

    def nest(self, func: tir.Func, stmt: tir.Stmt, known: frozenset[tir.Var]) -> _Nest:
        """The nest of a statement, validated as far as it does not depend on others."""
        found = self._nests.get(id(stmt))
        if found is None:
            if len(self._nests) >= _MOST:
                self._nests.clear()
            found = self._nests[id(stmt)] = _nest(func, stmt, self.maps, known)
        return found

    def carry_over(self, old: tir.Func, new: tir.Func) -> None:
        """What is known of the nests of `old` holds for those of `new`, one by one."""
        for before, after in zip(top_statements(old), top_statements(new), strict=True):
            found = self._nests.get(id(before))
            if before is not after and found is not None:
                self._nests[id(after)] = replace(found, stmt=after)


def validate(func: tir.Func, cache: ValidationCache | None = None) -> None:
    """Raise a `ProgramError` (V1…) unless the schedule of `func` is legal."""
    cache = cache or ValidationCache()
    known = frozenset(sizes(func))
    nests = [cache.nest(func, stmt, known) for stmt in top_statements(func)]
    params = frozenset(func.params)
    for number, nest in enumerate(nests):
        others = nests[:number] + nests[number + 1 :]
        outside = nest.touched & params.union(*[o.touched for o in others])
        if outside not in nest.checked:
            require_kinds(func, nest.blocks, outside, cache.maps)
            nest.checked.add(outside)
        later = frozenset[tir.Buffer]().union(*[o.written for o in nests[number + 1 :]])
        if not later.isdisjoint(nest.touched):
            _require_final(func, nest, nests[number + 1 :], later)
        for need in nest.needs:
            buffer = need.region.buffer
            before, after = _writers(nests[:number], buffer), _writers(nests[number + 1 :], buffer)
            if before or after or need.inside is not None or buffer not in params:
                require_ready(func, need, before, after, cache.maps)


def _require_final(
    func: tir.Func, nest: _Nest, rest: list[_Nest], later: frozenset[tir.Buffer]
) -> None:
    for block in nest.blocks:
        for region in block.place.reads():
            if region.buffer in later:
                require_final(func, block, region, _writers(rest, region.buffer))


def _writers(nests: list[_Nest], buffer: tir.Buffer) -> list[Bound]:
    return [
        block
        for nest in nests
        if buffer in nest.written
        for block in nest.blocks
        if any(r.buffer is buffer for r in block.place.block.writes)
    ]


def _nest(func: tir.Func, stmt: tir.Stmt, maps: Maps, known: frozenset[tir.Var]) -> _Nest:
    places = places_of(stmt)
    blocks, needs = _level(func, places, maps, known)
    read = {r.buffer for p in places for r in p.block.reads}
    written = frozenset(r.buffer for p in places for r in p.block.writes)
    return _Nest(stmt, blocks, written | read, written, needs, set())


def _level(
    func: tir.Func, places: tuple[Place, ...], maps: Maps, known: frozenset[tir.Var]
) -> tuple[list[Bound], list[Need]]:
    """Check the blocks of one nest, or of the body of one block, among each other."""
    blocks = [bound(func, place, maps, known) for place in places]
    needs, depths = unready(func, blocks, maps)
    for block in blocks:
        place = block.place
        if place.updates:
            require_counted_once(func, block, depths.get(place.number, 0), maps)
        elif place.reduce:
            folded = place.driven_by(place.reduce)
            depth = next(
                (n for n, p in enumerate(place.loops) if p.var in folded), len(place.loops)
            )
            require_counted_once(func, block, depth, maps)
        if place.inner:
            inside, _ = _level(func, place.inner, maps, known)
            # Whatever the block's signature names may be in use outside of it.
            seen = frozenset(r.buffer for r in (*place.block.reads, *place.block.writes))
            require_kinds(func, inside, seen, maps, around=parallel_around(place))
            require_written(func, block, inside, maps)
    return blocks, needs
