"""Finding groups of loops that act as one, and replacing them in a system.

Three patterns: a tile of a cover with its inside, `start(t) + j` with `j < size(t)`; a sum that the
predicate guards, `i0·4 + i1 < n`; a sum that is divided, `(i0·6 + i1) // 4`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tilewright.tensor.arith.itermap.digits import Chain, chain, read, source_extent
from tilewright.tensor.arith.itermap.result import Reason, Refusal
from tilewright.tensor.arith.itermap.system import (
    Fused,
    Leaf,
    System,
    Tiled,
    contains,
)
from tilewright.tensor.arith.linear import Atom, Kind, Linear, constant, plus, scaled
from tilewright.tensor.arith.rules import law
from tilewright.tensor.arith.tiles import start_of, tile_normal, tiling
from tilewright.tensor.ir import Cover, Var

__all__ = ["absorb_dividends", "absorb_guards", "absorb_tile_guards", "absorb_tiles"]


def absorb_tiles(system: System) -> Refusal | None:
    """Replace tiles with their insides, innermost first, until none is left."""
    while found := list(_tiles(system)):
        leaf, tile = max(found, key=lambda pair: pair[1].inside.depth)
        reason = _window_fault(system, tile.more)
        if reason is not None:
            loops = system.loops_in(plus(tile.start, Linear(0, {tile.inside: 1})))
            return Refusal(reason, system.binding_of(leaf.owner), loops)
        _absorb_tile(system, tile)
    return None


class _Tile(NamedTuple):
    """`start + inside` with an inside as long as a tile of the cover, and `more`."""

    inside: Atom
    start: Linear
    cover: Cover
    tile: Linear
    more: Linear


def _absorb_tile(system: System, found: _Tile) -> None:
    tiles = tiling(system.space, found.cover)
    place, length = Linear(0, {found.inside: 1}), _extent(system, found.inside)
    assert length is not None

    def make(var: Var) -> Tiled:
        tile, inside = Leaf(found.tile, tiles.count, var), Leaf(place, length, var)
        return Tiled(found.cover, tile, inside, found.more)

    group = system.group(plus(tiles.total, found.more), make)
    system.replace(plus(found.start, place), group)


def _tiles(system: System) -> Iterator[tuple[Leaf, _Tile]]:
    """Each tile with its inside in the system, and the leaf that it is in."""
    for leaf, form in system.forms():
        for tile in _tiles_in(system, form):
            yield leaf, tile


def _tiles_in(system: System, form: Linear) -> Iterator[_Tile]:
    for inside, k in form.terms.items():
        if k <= 0 or inside.depth < system.first:
            continue
        length = _extent(system, inside)
        size = None if length is None else _only_size(length)
        if length is None or size is None:
            continue
        factor, (tiles, tile) = length.terms[size], size.parts
        # The sizes are in normal form, so what they are multiplied with is their factor.
        start = tile_normal(system.space, scaled(start_of(system.space, size), factor))
        if contains(form, start) == k:
            more = plus(length, Linear(0, {size: factor}), -1)
            cover = Cover(tuple((s * factor, n) for s, n in tiles.cover.segments))
            yield _Tile(inside, start, cover, tile, more)


def _extent(system: System, atom: Atom) -> Linear | None:
    """The number of values of a variable or of its upper digits."""
    space = system.space
    if isinstance(atom.expr, Var):
        return source_extent(space, atom.expr)
    if atom.kind is Kind.DIV and isinstance(atom.parts[1], int):
        single = atom.parts[0].single()
        if single is not None and single[1] == 1 and isinstance(single[0].expr, Var):
            whole = source_extent(space, single[0].expr)
            up = space.floor_div(plus(whole, constant(atom.parts[1] - 1)), atom.parts[1])
            return tile_normal(space, up)
    return None


def _only_size(length: Linear) -> Atom | None:
    sizes = [a for a, k in length.terms.items() if a.kind is Kind.SIZE and k > 0]
    return sizes[0] if len(sizes) == 1 else None


def _window_fault(system: System, more: Linear) -> Reason | None:
    """Insides must reach the next tile, and be longer than it by the same everywhere."""
    if any(a.depth >= system.first for a in more.terms):
        return Reason.UNKNOWN
    if system.space.never_negative(more):
        return None
    shorter = system.space.never_negative(plus(constant(-1), more, -1))
    return Reason.GAP if shorter else Reason.UNKNOWN


def absorb_tile_guards(system: System) -> Refusal | None:
    """Guards that end at the size of a tile come first: what they guard is the tile's inside."""
    while own := [g for g in system.guards if any(_is_length(a) for a in g.terms)]:
        sums = [_parted(system, g)[0].terms.keys() for g in own]
        within = [
            g for g in system.guards if any(_parted(system, g)[0].terms.keys() <= s for s in sums)
        ]
        refused = _absorb_guard(system, within)
        if refused is not None:
            return refused
    return None


def absorb_guards(system: System) -> Refusal | None:
    """Replace each guarded sum by a variable with the guarded extent."""
    while system.guards:
        refused = _absorb_guard(system, system.guards)
        refused = absorb_tiles(system) if refused is None else refused
        if refused is not None:
            return refused
    return None


def _absorb_guard(system: System, guards: list[Linear]) -> Refusal | None:
    # A guard on part of a sum comes before the guard on the whole.
    guard = min(guards, key=lambda g: len(_parted(system, g)[0].terms))
    if _absorb_within(system, _parted(system, guard)[0]):
        return None
    found = _bounds_on_sum(system, guard)
    if isinstance(found, Refusal):
        return found
    total, least, end = found
    numbers = _numbers(system, total)
    if not isinstance(numbers, Chain):
        return _unguarded(system, total)
    reach = numbers.reach
    end = _limit(system, end, reach)
    if end is None:
        return Refusal(Reason.UNKNOWN, None, system.loops_in(total))
    group = system.group(plus(end, least, -1), lambda v: Fused(Leaf(total, reach, v), least))
    if not system.replace(total, plus(group, least)):
        return _unguarded(system, total)
    system.guards = [g for g in system.guards if not system.space.never_negative(g)]
    return None


def _absorb_within(system: System, total: Linear) -> bool:
    """What is inside of a guarded sum comes before the guard; was there anything?"""
    for tile in _tiles_in(system, total):
        if _window_fault(system, tile.more) is None:
            _absorb_tile(system, tile)
            return True
    for dividend in _dividends(total, system.first):
        numbers = _numbers(system, dividend)
        if isinstance(numbers, Chain):
            _absorb_dividend(system, dividend, numbers)
            return True
    return False


def _unguarded(system: System, total: Linear) -> Refusal:
    return Refusal(Reason.PREDICATE, None, system.loops_in(total))


def _bounds_on_sum(system: System, guard: Linear) -> tuple[Linear, Linear, Linear | None] | Refusal:
    """(sum, least, end) that the guards say about the sum of loops in `guard`; takes them off."""
    total, _, sign = _parted(system, guard)
    if sign == 0:
        return _unguarded(system, guard)
    least, end = constant(0), None
    kept: list[Linear] = []
    for other in system.guards:
        terms, rest, way = _parted(system, other)
        if way == 0 or not terms.same(total):
            kept.append(other)
        elif way < 0:  # rest − total ≥ 0
            end = _tighter(system, end, plus(rest, constant(1)))
            if end is None:
                return _unguarded(system, guard)
        elif not system.space.never_negative(rest):  # total + rest ≥ 0
            least = scaled(rest, -1)
            if not system.space.never_negative(least):
                return Refusal(Reason.UNKNOWN, None, system.loops_in(total))
    system.guards = kept
    return total, least, end


@law("z + x // c <= y", "z*c + x <= y*c + c - 1", "c > 0")
@law("z + x // c >= y", "z*c + x >= y*c", "c > 0")
def _parted(system: System, guard: Linear) -> tuple[Linear, Linear, int]:
    """The loops' part of a guard with positive coefficients, the rest, and the part's sign.

    What says how long a tile is belongs to the rest. A guard on `x // c` is one on x.
    """
    own = {a: k for a, k in guard.terms.items() if a.depth >= system.first and not _is_length(a)}
    rest = Linear(guard.const, {a: k for a, k in guard.terms.items() if a not in own})
    for atom, k in own.items():
        if abs(k) == 1 and atom.kind is Kind.DIV and isinstance(atom.parts[1], int):
            # y + x // c ≤ rest is y·c + x ≤ rest·c + c − 1; y + x // c ≥ −rest is y·c + x ≥ −rest·c
            x, c = atom.parts
            others = scaled(plus(guard, Linear(0, {atom: k}), -1), c)
            return _parted(system, plus(plus(others, x, k), constant(c - 1 if k < 0 else 0)))
    if all(k > 0 for k in own.values()):
        return Linear(0, own), rest, 1 if own else 0
    if all(k < 0 for k in own.values()):
        return Linear(0, {a: -k for a, k in own.items()}), rest, -1
    return guard, rest, 0


def _is_length(atom: Atom) -> bool:
    """Whether an atom is made from sizes of tiles alone."""
    if atom.kind is Kind.DIV or atom.kind is Kind.MOD:
        return all(_is_length(a) for a in atom.parts[0].terms)
    return atom.kind is Kind.SIZE


def _tighter(system: System, a: Linear | None, b: Linear) -> Linear | None:
    """The lesser of two ends, if it is known which it is."""
    if a is None or system.space.never_negative(plus(a, b, -1)):
        return b
    return a if system.space.never_negative(plus(b, a, -1)) else None


def _limit(system: System, end: Linear | None, reach: Linear) -> Linear | None:
    """Where the guarded values end: at the guard or where the sum ends by itself."""
    if end is None or system.space.never_negative(plus(end, reach, -1)):
        return reach
    return end if system.space.never_negative(plus(reach, end, -1)) else None


def absorb_dividends(system: System) -> Refusal | None:
    """Replace sums that are divided by variables, innermost first."""
    while (found := next(_divided(system), None)) is not None:
        leaf, dividend = found
        numbers = _numbers(system, dividend)
        if not isinstance(numbers, Chain):
            where = system.binding_of(leaf.owner)
            return Refusal(numbers, where, system.loops_in(leaf.form))
        _absorb_dividend(system, dividend, numbers)
    return None


def _divided(system: System) -> Iterator[tuple[Leaf, Linear]]:
    for leaf, form in system.forms():
        for dividend in _dividends(form, system.first):
            yield leaf, dividend


def _dividends(form: Linear, first: int) -> Iterator[Linear]:
    """Sums that are divided directly in a form."""
    for atom in form.terms:
        if (atom.kind is Kind.DIV or atom.kind is Kind.MOD) and atom.depth >= first:
            single = atom.parts[0].single()
            if single is None or single[1] != 1:
                yield atom.parts[0]


def _numbers(system: System, form: Linear) -> Chain | Reason:
    """A sum as a mixed radix number from zero."""
    digits = read(system.space, form, system.first)
    if digits is None or digits.base.terms or digits.base.const:
        return Reason.NOT_AFFINE
    return chain(system.space, digits.digits)


def _absorb_dividend(system: System, dividend: Linear, numbers: Chain) -> None:
    reach = numbers.reach
    group = system.group(reach, lambda v: Fused(Leaf(dividend, reach, v), constant(0)))
    system.replace(dividend, group)
    if not numbers.exact:
        return
    # The sum may be hidden: of `i·3 + j`, with j < 3, the quotient by 6 has become `i // 2`.
    for n, digit in enumerate(numbers.digits):
        atom = system.space.var(digit.source)
        if digit.reversed or isinstance(atom, int) or not digit.is_whole:
            continue
        value = system.space.floor_div(group, _number(digit.scale))
        if n + 1 < len(numbers.digits):
            value = system.space.floor_mod(value, _number(digit.extent))
        system.replace(Linear(0, {atom: 1}), value)


def _number(form: Linear) -> int | Linear:
    return form if form.terms else form.const
