"""Digits: the parts of loops that bindings are made of.

A digit is `(source // lower) % extent`, where the source is a loop or a group of loops that acts
as one. A binding is a sum of digits times scales. It is a mixed radix number if each scale is the
product of the extents below it; then every value in `[0, reach)` is taken exactly once. If a scale
is smaller than that, values repeat (windows that overlap); if it is larger, values are skipped.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.tensor.arith.compare import decide
from tilewright.tensor.arith.itermap.result import Reason
from tilewright.tensor.arith.linear import Atom, Kind, Linear, constant, plus, scaled
from tilewright.tensor.arith.space import Space
from tilewright.tensor.arith.tiles import tile_normal
from tilewright.tensor.ir import Eq, Var

__all__ = ["Chain", "Digit", "Sum", "chain", "equal", "read", "source_extent"]

ONE = constant(1)


@dataclass(frozen=True, slots=True)
class Digit:
    """`scale · ((source // lower) % extent)`; reversed, it counts down from its extent."""

    source: Var
    lower: Linear
    extent: Linear
    scale: Linear
    reversed: bool = False
    is_whole: bool = False  # all of the source


@dataclass(frozen=True, slots=True)
class Sum:
    """Digits and what does not depend on the loops."""

    digits: tuple[Digit, ...]
    base: Linear


def equal(space: Space, a: Linear, b: Linear) -> bool:
    """Whether two forms are provably equal."""
    if a.same(b):
        return True
    if not a.terms and not b.terms:
        return False
    # Thirty symbolic extents are asked for in pairs, and nearly all of these differ.
    return not space.tells_from_zero(plus(a, b, -1)) and decide(space, Eq, a, b) is True


def read(space: Space, form: Linear, first: int) -> Sum | None:
    """The digits of a form; None if something else depends on the loops (ranks from `first`)."""
    digits: list[Digit] = []
    base = Linear(form.const, {a: k for a, k in form.terms.items() if a.depth < first})
    for atom, k in form.terms.items():
        if atom.depth < first:
            continue
        inner, scale = _loop_factor(space, atom, first)
        digit = None if inner is None else _digit(space, inner)
        if inner is None or digit is None:
            return None
        source, lower, extent = digit
        scale = scaled(scale, abs(k))
        if k < 0:
            base = plus(base, space.multiply(scale, plus(extent, constant(-1))), -1)
        whole = inner.kind is Kind.VAR
        digits.append(Digit(source, lower, extent, scale, k < 0, whole))
    return Sum(tuple(digits), base)


def _loop_factor(space: Space, atom: Atom, first: int) -> tuple[Atom | None, Linear]:
    """The one factor that depends on the loops, and the product of the others."""
    if atom.kind is not Kind.PRODUCT:
        return atom, ONE
    inner = [f for f in atom.parts if f.depth >= first]
    others = [f for f in atom.parts if f.depth < first]
    positive = all(f.lo is not None and f.lo > 0 for f in others)
    return (inner[0], space.product(others)) if len(inner) == 1 and positive else (None, ONE)


def source_extent(space: Space, source: Var) -> Linear:
    """How many values a loop or group has."""
    found = space.lengths.get(source)
    if found is None:
        extent = space.extents[source]
        whole = constant(extent) if isinstance(extent, int) else space.linear(extent)
        found = space.lengths[source] = tile_normal(space, whole)
    return found


def _digit(space: Space, atom: Atom) -> tuple[Var, Linear, Linear] | None:
    """(source, lower, extent) of an atom."""
    if atom.kind is Kind.VAR:
        assert isinstance(atom.expr, Var)
        return atom.expr, ONE, source_extent(space, atom.expr)
    if atom.kind is not Kind.DIV and atom.kind is not Kind.MOD:
        return None
    single = atom.parts[0].single()
    if single is None or single[1] != 1:
        return None
    inner, divisor = single[0], atom.parts[1]
    digit = _digit(space, inner)
    if digit is None or inner.kind is Kind.MOD:
        return None
    source, lower, extent = digit
    by = divisor if isinstance(divisor, Linear) else constant(divisor)
    if atom.kind is Kind.MOD:
        return source, lower, by
    above = space.floor_div(plus(plus(extent, by), constant(-1)), divisor)
    return source, space.multiply(lower, by), above


@dataclass(frozen=True, slots=True)
class Chain:
    """Digits in order of their scales, and how far the values reach from zero without a hole."""

    digits: tuple[Digit, ...]
    reach: Linear
    exact: bool


def chain(space: Space, digits: tuple[Digit, ...]) -> Chain | Reason:
    """Order digits as a mixed radix number."""
    left = sorted(digits, key=lambda d: d.scale.const)
    ordered: list[Digit] = []
    reach, exact = ONE, True
    while left:
        found = next((d for d in left if equal(space, d.scale, reach)), None)
        if found is not None:
            reach = space.multiply(reach, found.extent)
        else:
            found = next((d for d in left if space.never_negative(plus(reach, d.scale, -1))), None)
            if found is None:
                return _hole(space, left, reach)
            steps = space.multiply(found.scale, plus(found.extent, constant(-1)))
            reach, exact = plus(reach, steps), False
        ordered.append(found)
        left.remove(found)
    return Chain(tuple(ordered), reach, exact)


def _hole(space: Space, left: list[Digit], reach: Linear) -> Reason:
    beyond = (plus(plus(d.scale, reach, -1), constant(-1)) for d in left)
    return Reason.GAP if all(space.never_negative(b) for b in beyond) else Reason.UNKNOWN
