"""Finding groups of loops that act as one, and replacing them in a system.

Three patterns: a tile of a cover with its inside, `start(t) + j` with `j < size(t)`; a sum that the
predicate guards, `i0·4 + i1 < n`; a sum that is divided, `(i0·6 + i1) // 4`.
"""

from __future__ import annotations

from collections.abc import Iterator

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

__all__ = ["absorb_dividends", "absorb_guards", "absorb_tiles"]


def absorb_tiles(system: System) -> Refusal | None:
    """Replace tiles with their insides until none is left."""
    while (found := next(_tiles(system), None)) is not None:
        if isinstance(found, Refusal):
            return found
        inside, start, cover, tile, more = found
        tiles = tiling(system.space, cover)
        place = Linear(0, {inside: 1})
        length = _extent(system, inside)
        assert length is not None

        def make(
            var: Var,
            cover: Cover = cover,
            parts: tuple[Linear, Linear, Linear, Linear] = (tile, tiles.count, place, length),
            more: Linear = more,
        ) -> Tiled:
            tile, count, place, length = parts
            return Tiled(cover, Leaf(tile, count, var), Leaf(place, length, var), more)

        group = system.group(plus(tiles.total, more), make)
        system.replace(plus(start, place), group)
    return None


Tile = tuple[Atom, Linear, Cover, Linear, Linear]


def _tiles(system: System) -> Iterator[Tile | Refusal]:
    """(inside, start, cover, tile, more) of each tile with its inside in the system."""
    for leaf, form in system.forms():
        for inside in sorted(form.terms, key=lambda a: -a.depth):
            k = form.terms[inside]
            if k <= 0 or inside.depth < system.first:
                continue
            length = _extent(system, inside)
            size = None if length is None else _only_size(length)
            if length is None or size is None:
                continue
            factor, (tiles, tile) = length.terms[size], size.parts
            # The sizes are in normal form, so what they are multiplied with is their factor.
            start = tile_normal(system.space, scaled(start_of(system.space, size), factor))
            if contains(form, start) != k:
                continue
            more = plus(length, Linear(0, {size: factor}), -1)
            reason = _window_fault(system, more)
            if reason is not None:
                yield Refusal(reason, system.binding_of(leaf.owner), system.loops_in(form))
            cover = Cover(tuple((s * factor, n) for s, n in tiles.cover.segments))
            yield inside, start, cover, tile, more


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


def absorb_guards(system: System) -> Refusal | None:
    """Replace each guarded sum by a variable with the guarded extent."""
    while system.guards:
        # A guard on part of a sum comes before the guard on the whole.
        guard = min(system.guards, key=lambda g: len(_parted(system, g)[0].terms))
        found = _bounds_on_sum(system, guard)
        if isinstance(found, Refusal):
            return found
        total, least, end = found
        digits = read(system.space, total, system.first)
        numbers = None if digits is None else chain(system.space, digits.digits)
        if not isinstance(numbers, Chain):
            return _unguarded(system, total)
        end = _limit(system, end, numbers.reach)
        if end is None:
            return Refusal(Reason.UNKNOWN, None, system.loops_in(total))
        space = system.space
        reach = numbers.reach

        def make(
            var: Var, total: Linear = total, reach: Linear = reach, least: Linear = least
        ) -> Fused:
            return Fused(Leaf(total, reach, var), least)

        group = system.group(plus(end, least, -1), make)
        if not system.replace(total, plus(group, least)):
            return _unguarded(system, total)
        system.guards = [g for g in system.guards if not space.never_negative(g)]
        fault = absorb_tiles(system)
        if fault is not None:
            return fault
    return None


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


@law("x // c <= y", "x <= y*c + c - 1", "c > 0")
@law("x // c >= y", "x >= y*c", "c > 0")
def _parted(system: System, guard: Linear) -> tuple[Linear, Linear, int]:
    """The loops' part of a guard with positive coefficients, the rest, and the part's sign.

    What says how long a tile is belongs to the rest. A guard on `x // c` is one on x.
    """
    own = {a: k for a, k in guard.terms.items() if a.depth >= system.first and not _is_length(a)}
    rest = Linear(guard.const, {a: k for a, k in guard.terms.items() if a not in own})
    if len(own) == 1:
        ((atom, k),) = own.items()
        if abs(k) == 1 and atom.kind is Kind.DIV and isinstance(atom.parts[1], int):
            x, c = atom.parts  # x // c ≤ rest is x ≤ rest·c + c − 1; x // c ≥ −rest is x ≥ −rest·c
            return _parted(
                system, plus(plus(scaled(rest, c), x, k), constant(c - 1 if k < 0 else 0))
            )
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
    while (found := next(_dividends(system), None)) is not None:
        leaf, dividend = found
        refused = system.binding_of(leaf.owner), system.loops_in(leaf.form)
        digits = read(system.space, dividend, system.first)
        if digits is None or digits.base.terms or digits.base.const:
            return Refusal(Reason.NOT_AFFINE, *refused)
        numbers = chain(system.space, digits.digits)
        if not isinstance(numbers, Chain):
            return Refusal(numbers, *refused)

        def make(var: Var, form: Linear = dividend, reach: Linear = numbers.reach) -> Fused:
            return Fused(Leaf(form, reach, var), constant(0))

        system.replace(dividend, system.group(numbers.reach, make))
    return None


def _dividends(system: System) -> Iterator[tuple[Leaf, Linear]]:
    for leaf, form in system.forms():
        for atom in form.terms:
            if (atom.kind is Kind.DIV or atom.kind is Kind.MOD) and atom.depth >= system.first:
                single = atom.parts[0].single()
                if single is None or single[1] != 1:
                    yield leaf, atom.parts[0]
