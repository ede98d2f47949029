"""Proving that a linear form is never negative, when interval arithmetic is not enough.

One atom after the other, innermost variable first, is replaced by a bound that mentions only
outer variables and sizes: `n - 1 - i` with `i < n` becomes `n - 1 - (n - 1) = 0`. Every replacement
only lowers the form, so reaching a form whose constant lower bound is ≥ 0 is a proof. A minimum or
maximum in the wrong direction is one of its operands, so both cases are proved. Known facts are
subtracted where that cancels a term. The search is bounded; giving up says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tilewright.tensor.arith.linear import Atom, Kind, Linear, constant, high, low, plus, scaled
from tilewright.tensor.arith.recombine import recombine
from tilewright.tensor.arith.rules import law
from tilewright.tensor.arith.space import Space
from tilewright.tensor.arith.tiles import start_bounds, tile_end, tile_step

__all__ = ["STEPS", "never_negative", "quotient_of_range"]

STEPS: Final = 60  # forms looked at in one search; real programs need about one for each loop
_RIGID: Final = (Kind.VAR, Kind.SIZE, Kind.OTHER)  # kinds whose bounds are numbers alone


def never_negative(space: Space, form: Linear) -> bool:
    """Whether `form ≥ 0` can be proved within the steps that are left to the space."""
    least = low(form.const, form.terms)
    if least is not None and least >= 0:
        return True
    space.steps -= 1
    if space.steps < 0 or not form.terms:
        return False
    if not space.facts and all(a.kind in _RIGID and not a.parts for a in form.terms):
        return False
    joined = recombine(space, form)
    joined = tile_step(space, joined) or joined
    if joined is not form:
        return never_negative(space, joined)
    if any(never_negative(space, rest) for rest in _without_facts(space, form)):
        return True
    ended = tile_end(space, form)
    if ended is not None:
        return never_negative(space, ended)
    rounded = _rounded_up(space, form)
    if rounded is not None and never_negative(space, rounded):
        return True
    for atom in sorted(form.terms, key=_innermost_first):
        k = form.terms[atom]
        rest = _without(form, atom)
        cases = _cases(atom, upper=k < 0)
        if cases:
            return all(never_negative(space, plus(rest, case, k)) for case in cases)
        options = list(_bounds(space, atom, upper=k < 0))
        if options:
            return any(never_negative(space, plus(rest, bound, k)) for bound in options)
    return False


def _without(form: Linear, atom: Atom) -> Linear:
    return Linear(form.const, {a: q for a, q in form.terms.items() if a is not atom})


def _innermost_first(atom: Atom) -> tuple[int, int]:
    return -atom.depth, -atom.kind


@law("x >= 0", "True", "x - y*a >= 0 and y >= 0 and a > 0")
def _without_facts(space: Space, form: Linear) -> Iterator[Linear]:
    """`form − k·fact` with k > 0 such that a term cancels: enough to show that it is ≥ 0."""
    for fact in space.facts:
        factors = set()
        for atom, f in fact.terms.items():
            k = form.terms.get(atom, 0)
            if k * f > 0 and k % f == 0:
                factors.add(k // f)
        for factor in sorted(factors):
            yield plus(form, fact, -factor)


@law("x + y >= (x*c + y*d + c - 1) // c", "True", "c >= d and d > 0 and x >= 0 and y >= 0")
def _rounded_up(space: Space, form: Linear) -> Linear | None:
    """Quotients with their remainder, `n // 6 + n % 6`, as symbolic extents count their tiles.

    With each quotient times its divisor the sum is n: it is at least n divided by the largest.
    """
    for factor in sorted({k for a, k in form.terms.items() if a.kind is Kind.MOD and k > 0}):
        parts = {a: _weight(a) for a, k in form.terms.items() if k == factor}
        parts = {a: weight for a, weight in parts.items() if weight}
        whole = recombine(space, Linear(0, parts)) if len(parts) > 1 else None
        if whole is None or len(whole.terms) >= len(parts):
            continue
        largest = max(parts.values())
        least = space.floor_div(plus(whole, constant(largest - 1)), largest)
        rest = plus(form, Linear(0, dict.fromkeys(parts, factor)), -1)
        return plus(rest, least, factor)
    return None


def _weight(atom: Atom) -> int:
    """How much a digit that is never negative stands for: 6 for `x // 6` and `x // 6 % 4`."""
    if atom.lo is None or atom.lo < 0:
        return 0
    while atom.kind is Kind.MOD:
        inner = atom.parts[0].single()
        if inner is None or inner[1] != 1:
            return 1
        atom = inner[0]
    if atom.kind is Kind.DIV:
        return atom.parts[1] if isinstance(atom.parts[1], int) else 0
    return 1


def _cases(atom: Atom, *, upper: bool) -> tuple[Linear, ...]:
    """What the atom may be equal to, if a bound of one operand alone does not bound it."""
    if atom.kind is (Kind.MAX if upper else Kind.MIN) or atom.kind is Kind.SELECT:
        return tuple(p for p in atom.parts if isinstance(p, Linear))
    return ()


@law("x // c <= z // c", "True", "x <= z and c > 0")
@law("x % c <= c - 1", "True", "c > 0")
@law("min(x, y) <= x", "True")
@law("max(x, y) >= x", "True")
def _bounds(space: Space, atom: Atom, *, upper: bool) -> Iterator[Linear]:
    """Forms that bound the atom from one side and do not mention it."""
    kind, parts = atom.kind, atom.parts
    if kind is Kind.VAR:
        if upper and parts:
            yield parts[0]
    elif kind is Kind.DIV:
        dividend, divisor = parts
        for further in _relaxed(space, dividend, upper=upper):
            yield space.floor_div(further, divisor)
    elif kind is Kind.MOD:
        if upper and isinstance(parts[1], Linear):
            yield plus(parts[1], constant(-1))
    elif kind is (Kind.MIN if upper else Kind.MAX):
        yield from parts
    elif kind is Kind.PRODUCT:
        yield from _product_bounds(space, atom, upper=upper)
    elif kind is Kind.START:
        yield from start_bounds(space, atom, upper=upper)


def _relaxed(space: Space, form: Linear, *, upper: bool) -> Iterator[Linear]:
    """Forms above (or below) `form`, by replacing its innermost atom that has a bound."""
    if upper:
        ended = tile_end(space, scaled(form, -1))
        if ended is not None:
            yield scaled(ended, -1)
    else:
        rounded = _rounded_up(space, form)
        if rounded is not None:
            yield rounded
    for atom in sorted(form.terms, key=_innermost_first):
        k = form.terms[atom]
        options = list(_bounds(space, atom, upper=upper == (k > 0)))
        if options:
            yield from (plus(_without(form, atom), bound, k) for bound in options)
            return


@law("x*a <= z*a", "True", "x <= z and a >= 0")
def _product_bounds(space: Space, atom: Atom, *, upper: bool) -> Iterator[Linear]:
    """Replace one factor by its bound where the other factors are not negative."""
    factors: list[Atom] = list(atom.parts)
    for n in sorted(range(len(factors)), key=lambda n: _innermost_first(factors[n])):
        others = factors[:n] + factors[n + 1 :]
        if all(f.lo is not None and f.lo >= 0 for f in others):
            bounds = list(_bounds(space, factors[n], upper=upper))
            end = factors[n].hi if upper else factors[n].lo
            for bound in bounds or ([] if end is None else [constant(end)]):
                yield space.multiply(bound, space.product(others))


@law("x // c", "a", "c > 0 and a*c <= x and x < (a + 1)*c")
def quotient_of_range(space: Space, x: Linear, c: int) -> int | None:
    """The one value of `x // c` (c > 0) over all of x's range, if there is only one."""
    lo, hi = low(x.const, x.terms), high(x.const, x.terms)
    if lo is None or hi is None:
        return None
    first, last = lo // c, hi // c
    if first == last:
        return first
    if space.facts or any(a.kind is Kind.START or a.kind is Kind.SIZE for a in x.terms):
        if space.never_negative(plus(constant((first + 1) * c - 1), x, -1)):
            return first
        if space.never_negative(plus(x, constant(-last * c))):
            return last
    return None
