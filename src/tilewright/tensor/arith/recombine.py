"""Quotients and remainders of one dividend meet again: `(x // c)·c + x % c` is `x`.

Each rule leaves fewer quotients and remainders, or fewer terms, than it found, so repeating them
ends. They are tried on every sum.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.tensor.arith.linear import (
    Atom,
    Kind,
    Linear,
    Terms,
    add_into,
    constant,
    plus,
    scaled,
)
from tilewright.tensor.arith.rules import RuleTable, law
from tilewright.tensor.arith.space import Space

__all__ = ["SUM_RULES", "recombine", "without_remainders"]

SumRule = Callable[[Space, Linear, Atom, int], Linear | None]
SUM_RULES: RuleTable[SumRule] = RuleTable("sum")

_MEETING = frozenset({Kind.DIV, Kind.MOD, Kind.PRODUCT})


def recombine(space: Space, form: Linear) -> Linear:
    """`form` with matching quotients and remainders merged; the same object if there are none."""
    changed = len(form.terms) > 1
    while changed:
        changed = False
        for atom, k in form.terms.items():
            if atom.kind in _MEETING:
                found = _first(space, form, atom, k)
                if found is not None:
                    form, changed = found, True
                    break
    return form


def _first(space: Space, form: Linear, atom: Atom, k: int) -> Linear | None:
    for rule in SUM_RULES.rules:
        found = rule.apply(space, form, atom, k)
        if found is not None:
            return found
    return None


def _times_divisor(space: Space, form: Linear, divisor: object) -> Linear:
    if isinstance(divisor, Linear):
        return space.multiply(form, divisor)
    assert isinstance(divisor, int)
    return scaled(form, divisor)


def _holds(terms: Terms, part: Terms, factor: int) -> bool:
    """Whether `terms` has every term of `factor · part`, with exactly that coefficient."""
    return all(terms.get(atom) == k * factor for atom, k in part.items())


def _replaced(form: Linear, old: Linear, atom: Atom, new: Linear, k: int) -> Linear:
    """`form` without `k·old + k·atom` (or what the sign of old says), plus `k·new`."""
    terms = dict(form.terms)
    add_into(terms, old.terms, -k)
    terms.pop(atom, None)
    return plus(Linear(form.const - k * old.const, terms), new, k)


@SUM_RULES.rule("(x // y)*y + x % y", "x", "y > 0")
def merge_digits(space: Space, form: Linear, atom: Atom, k: int) -> Linear | None:
    """k·(x % c) with k·c·(x // c) is k·x."""
    if atom.kind is not Kind.MOD:
        return None
    x, c = atom.parts
    whole = _times_divisor(space, space.floor_div(x, c), c)
    if not whole.terms or not _holds(form.terms, whole.terms, k):
        return None
    return _replaced(form, whole, atom, x, k)


@SUM_RULES.rule("(x // y)*y*z + (x % y)*z", "x*z", "y > 0")
def merge_scaled_digits(space: Space, form: Linear, atom: Atom, k: int) -> Linear | None:
    """k·z·(x % c) with k·z·c·(x // c) is k·z·x: the digits of a fused loop of symbolic extents."""
    if atom.kind is not Kind.PRODUCT:
        return None
    for digit in atom.parts:
        if digit.kind is not Kind.MOD:
            continue
        others = list(atom.parts)
        others.remove(digit)
        z, (x, c) = space.product(others), digit.parts
        whole = space.multiply(_times_divisor(space, space.floor_div(x, c), c), z)
        if whole.terms and _holds(form.terms, whole.terms, k):
            return _replaced(form, whole, atom, space.multiply(x, z), k)
    return None


@SUM_RULES.rule("((x // c) % d)*c + x % c", "x % (c*d)", "c > 0 and d > 0")
def join_digits(space: Space, form: Linear, atom: Atom, k: int) -> Linear | None:
    """k·(x % c) with k·c·((x // c) % d) is k·(x % (c·d))."""
    if atom.kind is not Kind.MOD or not isinstance(atom.parts[1], int):
        return None
    x, c = atom.parts
    for upper, q in form.terms.items():
        if q == k * c and upper.kind is Kind.MOD and isinstance(d := upper.parts[1], int):
            digit = space.floor_mod(space.floor_div(x, c), d)
            if digit.single() == (upper, 1):
                return _replaced(form, scaled(digit, c), atom, space.floor_mod(x, c * d), k)
    return None


@SUM_RULES.rule("((y + x // c) % d)*c + x % c", "(y*c + x) % (c*d)", "c > 0 and d > 0")
def join_part_of_digits(space: Space, form: Linear, atom: Atom, k: int) -> Linear | None:
    """k·(x % c) with k·c·((y + x // c) % d) is k·((y·c + x) % (c·d)).

    A quotient by `c` has given up what `c` divides, which is y.
    """
    if atom.kind is not Kind.MOD or not isinstance(atom.parts[1], int):
        return None
    x, c = atom.parts
    quotient = space.floor_div(x, c).single()
    if quotient is None or quotient[1] != 1:
        return None
    for upper, q in form.terms.items():
        if q == k * c and upper.kind is Kind.MOD and isinstance(d := upper.parts[1], int):
            if upper.parts[0].terms.get(quotient[0]) != 1:
                continue
            rest = plus(upper.parts[0], Linear(0, {quotient[0]: 1}), -1)
            joined = space.floor_mod(plus(scaled(rest, c), x), c * d)
            return _replaced(form, Linear(0, {upper: c}), atom, joined, k)
    return None


@SUM_RULES.rule(
    "(((x // c) % e) % d)*c + x % c", "(x % (c*e)) % (c*d)", "c > 0 and d > 0 and e > 0"
)
def join_digits_of_remainder(space: Space, form: Linear, atom: Atom, k: int) -> Linear | None:
    """k·(x % c) with k·c·((x // c % e) % d) is k·(x % (c·e) % (c·d))."""
    if atom.kind is not Kind.MOD or not isinstance(atom.parts[1], int):
        return None
    x, c = atom.parts
    for upper, q in form.terms.items():
        inner = upper.parts[0].single() if upper.kind is Kind.MOD and q == k * c else None
        if inner is None or inner[1] != 1 or inner[0].kind is not Kind.MOD:
            continue
        (quotient, e), d = inner[0].parts, upper.parts[1]
        whole = isinstance(d, int) and isinstance(e, int)
        if whole and quotient.same(space.floor_div(x, c)):
            joined = space.floor_mod(space.floor_mod(x, c * e), c * d)
            return _replaced(form, Linear(0, {upper: c}), atom, joined, k)
    return None


@SUM_RULES.rule("x - (x // y)*y", "x % y", "y > 0")
def make_remainder(space: Space, form: Linear, atom: Atom, k: int) -> Linear | None:
    """k·x without k·c·(x // c) is k·(x % c)."""
    if atom.kind is not Kind.DIV:
        return None
    x, c = atom.parts
    if isinstance(c, int):
        factor, extra = divmod(-k, c)
        if extra or not _holds(form.terms, x.terms, factor):
            return None
        return _replaced(form, x, atom, space.floor_mod(x, c), factor)
    return None


@SUM_RULES.rule("x - x % y", "(x // y)*y", "y > 0")
def make_multiple(space: Space, form: Linear, atom: Atom, k: int) -> Linear | None:
    """k·x without k·(x % c) is k·c·(x // c)."""
    if atom.kind is not Kind.MOD:
        return None
    x, c = atom.parts
    if not _holds(form.terms, x.terms, -k):
        return None
    whole = _times_divisor(space, space.floor_div(x, c), c)
    return _replaced(form, x, atom, whole, -k)


@law("x % y", "x - (x // y)*y", "y > 0")
def without_remainders(space: Space, form: Linear) -> Linear:
    """Every `x % c` written as `x - (x // c)·c`."""
    result = constant(form.const)
    for atom, k in form.terms.items():
        if atom.kind is not Kind.MOD:
            result = plus(result, Linear(0, {atom: k}))
            continue
        x, c = atom.parts
        whole = _times_divisor(space, space.floor_div(x, c), c)
        result = plus(plus(result, x, k), whole, -k)
    return result
