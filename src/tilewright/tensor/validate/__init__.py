"""Does a scheduled program still mean what it should? Checked after every step of a schedule.

* V101 V105 V108: the loops around a block take the points of its domain, each reduction from zero
* V107: nothing is added twice                                                    (`bindings.py`)
* V104 V110: what a block reads is written before, completely                     (`coverage.py`)
* V102 V103 V106 V109: parallel loops do not race, vector loops have independent lanes (`kinds.py`)

Everything is proved or refused. Nests that a step leaves alone are not looked at again, and what is
asked about parts that it leaves alone is answered once (`memo.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilewright.tensor import ir as tir
from tilewright.tensor.regions import sizes
from tilewright.tensor.validate.bindings import (
    Bound,
    bound,
    require_counted_once,
    require_outputs_filled,
)
from tilewright.tensor.validate.coverage import (
    Need,
    lacking,
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

Sizes = frozenset[tir.Var]


@dataclass(slots=True, eq=False)
class _Nest:
    """One statement at the top of a program, and what is known about it."""

    stmt: tir.Stmt
    blocks: list[Bound]
    partial: list[Bound]
    """Blocks, also inside of others, that leave out points of their domains."""
    touched: frozenset[tir.Buffer]
    writers: list[tuple[tir.Buffer, Bound]]
    needs: list[Need]
    checked: set[frozenset[tir.Buffer]]
    """What was used outside when the kinds of the loops were found to be legal."""


class ValidationCache:
    """Remembers what is valid; shared by the steps of a schedule and by its copies."""

    def __init__(self) -> None:
        self.maps = Maps()
        self._nests: dict[tuple[int, Sizes], _Nest] = {}

    def nest(self, func: tir.Func, stmt: tir.Stmt, known: Sizes) -> _Nest:
        """The nest of a statement, validated as far as it does not depend on others."""
        found = self._nests.get((id(stmt), known))
        if found is None:
            if len(self._nests) >= _MOST:
                self._nests.clear()
            found = self._nests[id(stmt), known] = _nest(func, stmt, self.maps, known)
        return found

    def sizes(self, func: tir.Func) -> Sizes:
        """The symbolic sizes of a program."""
        return self.maps.once("sizes", (func.params,), lambda: frozenset(sizes(func)))

    def carry_over(self, old: tir.Func, new: tir.Func) -> None:
        """What is known of the nests of `old` holds for those of `new`, one by one."""
        known = self.sizes(new)
        for before, after in zip(top_statements(old), top_statements(new), strict=True):
            found = self._nests.get((id(before), known))
            if before is not after and found is not None:
                self._nests[id(after), known] = replace(found, stmt=after)

    def branch(self) -> ValidationCache:
        """One that knows the same now and learns on its own."""
        made = ValidationCache()
        made.maps.share(self.maps)
        made._nests.update(self._nests)
        return made


def validate(func: tir.Func, cache: ValidationCache | None = None) -> None:
    """Raise a `ProgramError` (V1…) unless the schedule of `func` is legal."""
    cache = cache or ValidationCache()
    known = cache.sizes(func)
    nests = [cache.nest(func, stmt, known) for stmt in top_statements(func)]
    params = frozenset(func.params)
    users, writers = _users(nests), _writers(nests)
    for number, nest in enumerate(nests):
        for block in nest.partial:
            require_outputs_filled(func, block)
        outside = frozenset([b for b in nest.touched if b in params or users[b] > 1])
        if outside not in nest.checked:
            require_kinds(func, nest.blocks, outside, cache.maps)
            nest.checked.add(outside)
        _require_final(func, nest, number, writers, cache.maps)
        for need in nest.needs:
            buffer = need.region.buffer
            others = writers.get(buffer, ())
            before = [w for n, w in others if n < number]
            after = [w for n, w in others if n > number]
            if before or after or need.parts or buffer not in params:
                require_ready(func, need, before, after, cache.maps)


Writers = dict[tir.Buffer, list[tuple[int, Bound]]]


def _users(nests: list[_Nest]) -> dict[tir.Buffer, int]:
    """The number of nests that use each buffer."""
    count: dict[tir.Buffer, int] = {}
    for nest in nests:
        for buffer in nest.touched:
            count[buffer] = count.get(buffer, 0) + 1
    return count


def _writers(nests: list[_Nest]) -> Writers:
    """The blocks that write each buffer, with the numbers of their nests, in program order."""
    found: Writers = {}
    for number, nest in enumerate(nests):
        for buffer, block in nest.writers:
            found.setdefault(buffer, []).append((number, block))
    return found


def _require_final(func: tir.Func, nest: _Nest, number: int, writers: Writers, maps: Maps) -> None:
    """Nothing that a nest reads is written by a later one."""
    if not any(writers[b][-1][0] > number for b in nest.touched if b in writers):
        return
    for block in nest.blocks:
        for region in block.reads():
            later = [w for n, w in writers.get(region.buffer, ()) if n > number]
            require_final(func, block, region, later, maps)


def _nest(func: tir.Func, stmt: tir.Stmt, maps: Maps, known: Sizes) -> _Nest:
    places = places_of(stmt, maps)
    blocks, partial, needs = _level(func, places, maps, known)
    touched = [r.buffer for p in places for r in (*p.block.reads, *p.block.writes)]
    writers = [(buffer, block) for block in blocks for buffer in block.written]
    return _Nest(stmt, blocks, partial, frozenset(touched), writers, needs, set())


def _level(
    func: tir.Func, places: tuple[Place, ...], maps: Maps, known: Sizes
) -> tuple[list[Bound], list[Bound], list[Need]]:
    """Check the blocks of one nest, or of the body of one block, among each other."""
    blocks = [bound(func, place, maps, known) for place in places]
    partial = [block for block in blocks if not block.mapped.fills]
    for block in blocks:
        if block.place.inner or block.place.content.stores:
            more, lacks = _inside(func, block, maps, known)
            partial += more
            block.lacks |= lacks
    needs, depths = unready(func, blocks, maps)
    for block in blocks:
        place = block.place
        if block.lacks:
            require_counted_once(func, block, depths.get(place.number, 0), maps)
        elif place.reduce:
            folded = place.driven_by(place.reduce)
            depth = next(
                (n for n, p in enumerate(place.loops) if p.var in folded), len(place.loops)
            )
            require_counted_once(func, block, depth, maps)
    return blocks, partial, needs


def _inside(
    func: tir.Func, outer: Bound, maps: Maps, known: Sizes
) -> tuple[list[Bound], frozenset[tir.Buffer]]:
    """Check the body of a block: the blocks in it that leave out points, and what it lacks."""
    place = outer.place
    block, around = place.block, parallel_around(place)

    def check() -> tuple[list[Bound], frozenset[tir.Buffer]]:
        inside, partial, needs = _level(func, place.inner, maps, known)
        # Whatever the block's signature names may be in use outside of it.
        seen = frozenset([r.buffer for r in (*block.reads, *block.writes)])
        require_kinds(func, inside, seen, maps, around=around)
        require_written(func, outer, inside, maps)
        return partial, lacking(func, outer, needs)

    about = (block.iters, block.body, block.init, block.reads, block.writes)
    return maps.once(("inside", known, around is None), about, check)
