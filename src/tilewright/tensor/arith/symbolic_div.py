"""Floor division and remainder by a divisor that is not a constant: `f // n`, `f % n`.

Only a divisor that is provably positive is taken apart; any other stays as it is written, because
division by zero gives zero. Terms that hold the divisor as a factor leave the quotient, and a rest
that is provably in `[0, divisor)` vanishes: this is what undoes a fused loop of symbolic extent.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import NamedTuple

from tilewright.tensor.arith.linear import (
    Atom,
    Kind,
    Linear,
    constant,
    high,
    low,
    plus,
    scaled,
)
from tilewright.tensor.arith.rebuild import expression
from tilewright.tensor.arith.rules import RuleTable
from tilewright.tensor.arith.space import Space
from tilewright.tensor.ir import Expr, FloorDiv, FloorMod

__all__ = ["SYMBOLIC_DIV_RULES", "SYMBOLIC_MOD_RULES", "divide", "modulo"]

SymbolicRule = Callable[[Space, Linear, Linear], Linear | None]
SYMBOLIC_DIV_RULES: RuleTable[SymbolicRule] = RuleTable("symbolic_div")
SYMBOLIC_MOD_RULES: RuleTable[SymbolicRule] = RuleTable("symbolic_mod")


def divide(space: Space, x: Linear, divisor: Linear) -> Linear:
    """`x // divisor`."""
    if not space.never_negative(plus(divisor, constant(-1))):
        return _opaque(space, FloorDiv, x, divisor)
    for rule in SYMBOLIC_DIV_RULES.rules:
        found = rule.apply(space, x, divisor)
        if found is not None:
            return found

    def bounds() -> tuple[int | None, int | None]:
        return 0 if space.never_negative(x) else None, None

    def build() -> Expr:
        return FloorDiv(expression(x), expression(divisor))

    return space.atom(Kind.DIV, (x, divisor), (x.key(), divisor.key()), bounds, build)


def modulo(space: Space, x: Linear, divisor: Linear) -> Linear:
    """`x % divisor`."""
    if not space.never_negative(plus(divisor, constant(-1))):
        return _opaque(space, FloorMod, x, divisor)
    for rule in SYMBOLIC_MOD_RULES.rules:
        found = rule.apply(space, x, divisor)
        if found is not None:
            return found

    def build() -> Expr:
        return FloorMod(expression(x), expression(divisor))

    ident = (x.key(), divisor.key())
    return space.atom(Kind.MOD, (x, divisor), ident, lambda: (0, None), build)


def _opaque(space: Space, kind: type[FloorDiv | FloorMod], x: Linear, divisor: Linear) -> Linear:
    """The division as it is written; its divisor may be zero or negative."""

    def build() -> Expr:
        return kind(expression(x), expression(divisor))

    ident = (kind, x.key(), divisor.key())
    return space.atom(Kind.OTHER, (x, divisor), ident, lambda: (None, None), build)


@SYMBOLIC_DIV_RULES.rule("(x*y + z) // y", "x + z // y", "y > 0")
def take_out_factors(space: Space, x: Linear, divisor: Linear) -> Linear | None:
    """Terms that hold the divisor as a factor leave the quotient."""
    out, rest = _split(space, x, divisor)
    if not out.terms and not out.const:
        return None
    return plus(out, divide(space, rest, divisor))


@SYMBOLIC_DIV_RULES.rule("x // y", "0", "0 <= x and x < y")
def quotient_is_zero(space: Space, x: Linear, divisor: Linear) -> Linear | None:
    """A dividend below the divisor has quotient zero."""
    return constant(0) if _is_below(space, x, divisor) else None


@SYMBOLIC_DIV_RULES.rule("x // y", "-1", "-y <= x and x < 0")
def quotient_is_minus_one(space: Space, x: Linear, divisor: Linear) -> Linear | None:
    """One period below zero the quotient is minus one."""
    if space.never_negative(plus(constant(-1), x, -1)) and space.never_negative(plus(x, divisor)):
        return constant(-1)
    return None


@SYMBOLIC_DIV_RULES.rule("(x // z) // y", "x // (y*z)", "y > 0 and z > 0")
def nest_quotients(space: Space, x: Linear, divisor: Linear) -> Linear | None:
    """A quotient of a quotient is one quotient."""
    inner = _only(x, Kind.DIV)
    if inner is None:
        return None
    dividend, lower = inner.parts
    return divide(space, dividend, space.multiply(divisor, _form(lower)))


@SYMBOLIC_DIV_RULES.rule("(x % (y*z)) // y", "(x // y) % z", "y > 0 and z > 0")
def digit_of_remainder(space: Space, x: Linear, divisor: Linear) -> Linear | None:
    """Digits are written with the division inside."""
    inner = _only(x, Kind.MOD)
    if inner is None:
        return None
    dividend, modulus = inner.parts
    upper, rest = _split(space, _form(modulus), divisor)
    if rest.terms or rest.const:
        return None
    return space.floor_mod(divide(space, dividend, divisor), _plain(upper))


@SYMBOLIC_DIV_RULES.rule("(x*c + w) // (y*c)", "x // y", "y > 0 and c > 0 and 0 <= w and w < c")
def divide_both(space: Space, x: Linear, divisor: Linear) -> Linear | None:
    """A number in all terms of the divisor and, but for a small rest, of the dividend."""
    shared = _shared_number(x, divisor)
    return None if shared is None else space.floor_div(shared.dividend, shared.divisor)


@SYMBOLIC_MOD_RULES.rule("(x*y + z) % y", "z % y", "y > 0")
def drop_factors(space: Space, x: Linear, divisor: Linear) -> Linear | None:
    """Terms that hold the divisor as a factor vanish."""
    out, rest = _split(space, x, divisor)
    if not out.terms and not out.const:
        return None
    return modulo(space, rest, divisor)


@SYMBOLIC_MOD_RULES.rule("x % y", "x", "0 <= x and x < y")
def remainder_is_dividend(space: Space, x: Linear, divisor: Linear) -> Linear | None:
    """A dividend below the divisor is its own remainder."""
    return x if _is_below(space, x, divisor) else None


@SYMBOLIC_MOD_RULES.rule("x % y", "x + y", "-y <= x and x < 0")
def remainder_wraps_once(space: Space, x: Linear, divisor: Linear) -> Linear | None:
    """One period below zero the remainder is the dividend plus the divisor."""
    if space.never_negative(plus(constant(-1), x, -1)) and space.never_negative(plus(x, divisor)):
        return plus(x, divisor)
    return None


@SYMBOLIC_MOD_RULES.rule(
    "(x*c + w) % (y*c)", "(x % y)*c + w", "y > 0 and c > 0 and 0 <= w and w < c"
)
def take_out_number(space: Space, x: Linear, divisor: Linear) -> Linear | None:
    """The remainder of what both have in common, as often; the small rest stays."""
    shared = _shared_number(x, divisor)
    if shared is None:
        return None
    digit = space.floor_mod(shared.dividend, shared.divisor)
    return plus(scaled(digit, shared.number), shared.rest)


@SYMBOLIC_MOD_RULES.rule("(x % (y*z)) % y", "x % y", "y > 0 and z > 0")
def remainder_of_remainder(space: Space, x: Linear, divisor: Linear) -> Linear | None:
    """A remainder by a multiple of the divisor is as good as its dividend."""
    inner = _only(x, Kind.MOD)
    if inner is None:
        return None
    dividend, modulus = inner.parts
    _, rest = _split(space, _form(modulus), divisor)
    return None if rest.terms or rest.const else modulo(space, dividend, divisor)


class _Shared(NamedTuple):
    """x = number · dividend + rest with 0 <= rest < number, and the divisor of x by the number."""

    number: int
    dividend: Linear
    divisor: int | Linear
    rest: Linear


def _shared_number(x: Linear, divisor: Linear) -> _Shared | None:
    """The largest number above one that x, but for a small rest, and its divisor share."""
    content = gcd(divisor.const, *divisor.terms.values())
    candidates = {gcd(content, k) for k in x.terms.values()}
    for c in sorted(candidates - {1}, reverse=True):
        rest = Linear(x.const % c, {a: k for a, k in x.terms.items() if k % c})
        least, most = low(rest.const, rest.terms), high(rest.const, rest.terms)
        if least is not None and most is not None and least >= 0 and most < c:
            return _Shared(c, _shrunk(plus(x, rest, -1), c), _plain(_shrunk(divisor, c)), rest)
    return None


def _shrunk(form: Linear, c: int) -> Linear:
    """A form of which every part is a multiple of c, divided by it."""
    return Linear(form.const // c, {atom: k // c for atom, k in form.terms.items()})


def _only(x: Linear, kind: Kind) -> Atom | None:
    """The atom that a form is, if it is of this kind."""
    single = x.single()
    return single[0] if single is not None and single[1] == 1 and single[0].kind is kind else None


def _form(value: int | Linear) -> Linear:
    return constant(value) if isinstance(value, int) else value


def _plain(form: Linear) -> int | Linear:
    """The number that a form is, if it is one."""
    return form if form.terms else form.const


def _is_below(space: Space, x: Linear, divisor: Linear) -> bool:
    return space.never_negative(x) and space.never_negative(
        plus(plus(divisor, constant(-1)), x, -1)
    )


def _split(space: Space, x: Linear, divisor: Linear) -> tuple[Linear, Linear]:
    """(out, rest) with x = out·divisor + rest."""
    lead = max(divisor.terms, key=lambda a: (len(a.parts) if a.kind is Kind.PRODUCT else 1, a.key))
    c = divisor.terms[lead]
    out, rest = constant(0), x
    for atom, k in x.terms.items():
        others = _without(atom, lead)
        q = k // c if k * c >= 0 else -(-k // c)
        if others is not None and q:
            part = scaled(space.product(others), q)
            out, rest = plus(out, part), plus(rest, space.multiply(part, divisor), -1)
    if len(divisor.terms) > 1 or divisor.const:
        simpler = len(rest.terms) < len(x.terms)
        return (out, rest) if simpler else (constant(0), x)
    return out, rest


def _without(atom: Atom, wanted: Atom) -> list[Atom] | None:
    """The factors of `atom` besides those of `wanted`; None if some are missing."""
    have = list(atom.parts) if atom.kind is Kind.PRODUCT else [atom]
    needed = list(wanted.parts) if wanted.kind is Kind.PRODUCT else [wanted]
    for factor in needed:
        if factor not in have:
            return None
        have.remove(factor)
    return have
