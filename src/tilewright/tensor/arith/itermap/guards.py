"""A sum that the predicate guards, `i0·4 + i1 < n`, acts as one loop with the guarded extent.

Guards are kept as forms that are ≥ 0. What is inside of a guarded sum is absorbed first, a guard on
part of a sum before the guard on the whole.
"""

from __future__ import annotations

from tilewright.tensor.arith.itermap.digits import Chain
from tilewright.tensor.arith.itermap.dividends import absorb_dividend, dividends_in, numbers_of
from tilewright.tensor.arith.itermap.result import Reason, Refusal
from tilewright.tensor.arith.itermap.system import Fused, Leaf, System, variables
from tilewright.tensor.arith.itermap.tiles import absorb_tile, absorb_tiles, tiles_in, window_fault
from tilewright.tensor.arith.linear import Atom, Kind, Linear, constant, plus, scaled
from tilewright.tensor.arith.rules import law

__all__ = ["absorb_guards", "absorb_tile_guards"]


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
    numbers = numbers_of(system, total)
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
    for tile in tiles_in(system, total):
        if window_fault(system, tile.more) is None:
            absorb_tile(system, tile)
            return True
    for dividend in dividends_in(total, system.first):
        numbers = numbers_of(system, dividend)
        if isinstance(numbers, Chain):
            absorb_dividend(system, dividend, numbers)
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
        if abs(k) != 1 or atom.kind is not Kind.DIV or not isinstance(atom.parts[1], int):
            continue
        # y + x // c ≤ rest is y·c + x ≤ rest·c + c − 1; y + x // c ≥ −rest is y·c + x ≥ −rest·c
        x, c = atom.parts
        others = Linear(0, {a: q for a, q in own.items() if a is not atom})
        if set(variables(x)).isdisjoint(variables(others)):
            outside = scaled(plus(guard, Linear(0, {atom: k}), -1), c)
            return _parted(system, plus(plus(outside, x, k), constant(c - 1 if k < 0 else 0)))
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
