"""Floor division and remainder of a linear form by a positive constant.

Both keep the same reduced dividend, so that `x // c` and `x % c` meet again in `recombine.py`:
terms that c divides are gone and the constant is in `[0, c)`. A coefficient that c does not divide
stays whole, because `8·i + j` read as one fused iterator must remain visible. A digit is written
as `(x // lower) % extent`, never `(x % more) // lower`; iterator maps read digits.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

from tilewright.tensor.arith.linear import (
    Atom,
    Kind,
    Linear,
    Terms,
    add_into,
    constant,
    high,
    low,
    plus,
    scaled,
)
from tilewright.tensor.arith.nonneg import quotient_of_range
from tilewright.tensor.arith.rebuild import expression
from tilewright.tensor.arith.recombine import recombine
from tilewright.tensor.arith.rules import RuleTable, law
from tilewright.tensor.arith.space import Space
from tilewright.tensor.arith.tiles import divided
from tilewright.tensor.ir import Const, Expr, FloorDiv, FloorMod

__all__ = ["DIV_RULES", "MOD_RULES", "floor_div", "floor_mod", "low_digits"]

DivRule = Callable[[Space, Linear, int], Linear | None]
DIV_RULES: RuleTable[DivRule] = RuleTable("floor_div")
MOD_RULES: RuleTable[DivRule] = RuleTable("floor_mod")


def floor_div(space: Space, x: Linear, c: int, like: Expr | None = None) -> Linear:
    """`x // c`; division by zero gives zero."""
    if c <= 0:
        return constant(0) if c == 0 else floor_div(space, scaled(x, -1), -c)
    x = recombine(space, x)
    for rule in DIV_RULES.rules:
        found = rule.apply(space, x, c)
        if found is not None:
            return found

    def bounds() -> tuple[int | None, int | None]:
        lo, hi = low(x.const, x.terms), high(x.const, x.terms)
        return None if lo is None else lo // c, None if hi is None else hi // c

    return space.atom(Kind.DIV, (x, c), (x.key(), c), bounds, lambda: _build(FloorDiv, x, c, like))


def floor_mod(space: Space, x: Linear, c: int, like: Expr | None = None) -> Linear:
    """`x % c` with the sign of `c`; by zero it gives zero."""
    if c <= 0:
        return constant(0) if c == 0 else scaled(floor_mod(space, scaled(x, -1), -c), -1)
    x = recombine(space, x)
    for rule in MOD_RULES.rules:
        found = rule.apply(space, x, c)
        if found is not None:
            return found

    def bounds() -> tuple[int | None, int | None]:
        lo, hi = low(x.const, x.terms), high(x.const, x.terms)
        return 0, c - 1 if lo is None or hi is None or lo < 0 else min(hi, c - 1)

    return space.atom(Kind.MOD, (x, c), (x.key(), c), bounds, lambda: _build(FloorMod, x, c, like))


def _build(kind: type[FloorDiv | FloorMod], x: Linear, c: int, like: Expr | None) -> Expr:
    old = like if isinstance(like, kind) and type(like.b) is Const else None
    dividend = expression(x, None if old is None else old.a)
    if old is not None and dividend is old.a and type(old.b) is Const and old.b.value == c:
        return old
    return kind(dividend, Const(c))


@DIV_RULES.rule("x // 1", "x")
def divide_by_one(_: Space, x: Linear, c: int) -> Linear | None:
    """Nothing to divide."""
    return x if c == 1 else None


@DIV_RULES.rule("(x*c + y) // c", "x + y // c", "c > 0")
def take_out_multiples(space: Space, x: Linear, c: int) -> Linear | None:
    """Multiples of the divisor leave the quotient, coefficient by coefficient."""
    whole, const = divmod(x.const, c)
    out = {atom: k // c for atom, k in x.terms.items() if k % c == 0}
    if not out and not whole:
        return None
    inner = floor_div(space, Linear(const, {a: k for a, k in x.terms.items() if k % c}), c)
    add_into(out, inner.terms, 1)
    return Linear(whole + inner.const, out)


@DIV_RULES.rule("(x*c + y) // c", "x + a", "c > 0 and a*c <= y and y < (a + 1)*c")
def quotient_of_rest_is_constant(space: Space, x: Linear, c: int) -> Linear | None:
    """What remains when every coefficient is reduced has one quotient over its whole range."""
    out, rest = _split(x.terms, c)
    quotient = quotient_of_range(space, Linear(x.const, rest), c)
    return None if quotient is None else Linear(quotient, out)


def _split(terms: Terms, c: int) -> tuple[Terms, Terms]:
    """Coefficients divided by c, rounded toward zero, and what remains of them."""
    out: Terms = {}
    rest: Terms = {}
    for atom, k in terms.items():
        q = k // c if k >= 0 else -(-k // c)
        if q:
            out[atom] = q
        if k != q * c:
            rest[atom] = k - q * c
    return out, rest


@DIV_RULES.rule(
    "(x*d + y) // (d*e)", "(x + a) // e", "d > 0 and e > 0 and a*d <= y and y < (a + 1)*d"
)
def droplow_digits(space: Space, x: Linear, c: int) -> Linear | None:
    """What stays below a common factor of the larger terms does not reach the quotient."""
    found = low_digits(space, x, c)
    if found is None:
        return None
    g, upper, carry, _ = found
    return floor_div(space, Linear(upper.const + carry, upper.terms), c // g)


@DIV_RULES.rule("(x // d + a) // c", "(x + a*d) // (c*d)", "c > 0 and d > 0")
def nest_divisions(space: Space, x: Linear, c: int) -> Linear | None:
    """A quotient of a quotient is one quotient."""
    if len(x.terms) != 1:
        return None
    ((atom, k),) = x.terms.items()
    if k != 1 or atom.kind is not Kind.DIV:
        return None
    inner, d = atom.parts
    if type(d) is int:
        return floor_div(space, Linear(inner.const + x.const * d, inner.terms), c * d)
    return space.floor_div(plus(inner, d, x.const), scaled(d, c))


@DIV_RULES.rule("(x % (c*d)) // c", "(x // c) % d", "c > 0 and d > 0")
def digit_form(space: Space, x: Linear, c: int) -> Linear | None:
    """Digits are written with the division inside."""
    single = x.single()
    if single is None or single[1] != 1 or single[0].kind is not Kind.MOD:
        return None
    inner, modulus = single[0].parts
    d = _exact(modulus, c)
    return None if d is None else space.floor_mod(floor_div(space, inner, c), d)


@law("(x*a*c + b*c) // c", "x*a + b", "c > 0")
@law("(x*a*c + b*c) % c", "0", "c > 0")
def _exact(whole: int | Linear, c: int) -> int | Linear | None:
    """`whole / c` if c divides it, whatever the values of its variables are."""
    if isinstance(whole, int):
        return None if whole % c else whole // c
    if whole.const % c or any(k % c for k in whole.terms.values()):
        return None
    return Linear(whole.const // c, {atom: k // c for atom, k in whole.terms.items()})


@DIV_RULES.rule("(x*c*d + y) // c", "x*d + y // c", "c > 0")
def divide_tiles(space: Space, x: Linear, c: int) -> Linear | None:
    """Starts and sizes of tiles are divided themselves if all tile sizes have the factor."""
    for atom, k in x.terms.items():
        if atom.kind is Kind.START or atom.kind is Kind.SIZE:
            whole = divided(space, atom, k, c)
            if whole is not None:
                rest = {a: q for a, q in x.terms.items() if a is not atom}
                return plus(whole, floor_div(space, Linear(x.const, rest), c))
    return None


@MOD_RULES.rule("x % 1", "0")
def modulo_one(_: Space, __: Linear, c: int) -> Linear | None:
    """Everything is a multiple of one."""
    return constant(0) if c == 1 else None


@MOD_RULES.rule("(x*c + y) % c", "y % c", "c > 0")
def drop_multiples(space: Space, x: Linear, c: int) -> Linear | None:
    """Multiples of the divisor vanish."""
    rest = {atom: k for atom, k in x.terms.items() if k % c}
    if len(rest) == len(x.terms) and 0 <= x.const < c:
        return None
    return floor_mod(space, Linear(x.const % c, rest), c)


@MOD_RULES.rule("(x*c + y) % c", "y - a*c", "c > 0 and a*c <= y and y < (a + 1)*c")
def remainder_is_linear(space: Space, x: Linear, c: int) -> Linear | None:
    """What remains when every coefficient is reduced never wraps."""
    _, rest = _split(x.terms, c)
    quotient = quotient_of_range(space, Linear(x.const, rest), c)
    return None if quotient is None else Linear(x.const - quotient * c, rest)


@MOD_RULES.rule(
    "(x*d + y) % (d*e)",
    "((x + a) % e)*d + y - a*d",
    "d > 0 and e > 0 and a*d <= y and y < (a + 1)*d",
)
def keeplow_digits(space: Space, x: Linear, c: int) -> Linear | None:
    """What stays below a common factor of the larger terms passes through."""
    found = low_digits(space, x, c)
    if found is None:
        return None
    g, upper, carry, lower = found
    top = floor_mod(space, Linear(upper.const + carry, upper.terms), c // g)
    return plus(Linear(lower.const - carry * g, lower.terms), top, g)


@MOD_RULES.rule("((x % d)*e + f) % c", "(x*e + f) % c", "c > 0 and d > 0 and (d*e) % c == 0")
def unwrap_remainder(space: Space, x: Linear, c: int) -> Linear | None:
    """A remainder by a multiple of the divisor is as good as its dividend.

    Not inside of longer sums: there it is a digit of a fused iterator.
    """
    if len(x.terms) != 1:
        return None
    ((atom, k),) = x.terms.items()
    if atom.kind is not Kind.MOD:
        return None
    inner, d = atom.parts
    if _exact(k * d if isinstance(d, int) else scaled(d, k), c) is None:
        return None
    return floor_mod(space, plus(constant(x.const), inner, k), c)


@MOD_RULES.rule("(x*c*d + y) % c", "y % c", "c > 0")
def drop_tiles(space: Space, x: Linear, c: int) -> Linear | None:
    """Starts and sizes of tiles vanish if all tile sizes have the factor."""
    for atom, k in x.terms.items():
        tiled = atom.kind is Kind.START or atom.kind is Kind.SIZE
        if tiled and divided(space, atom, k, c) is not None:
            rest = {a: q for a, q in x.terms.items() if a is not atom}
            return floor_mod(space, Linear(x.const, rest), c)
    return None


def low_digits(space: Space, x: Linear, c: int) -> tuple[int, Linear, int, Linear] | None:
    """Split x = g·upper + lower with g | c, g > 1 and the whole of `lower` in one period of g.

    With c = 0 any g will do. Returns (g, upper, lower // g, lower). The largest such g is taken:
    the terms are tried from the greatest coefficient down.
    """
    ordered = sorted(x.terms.items(), key=_size_then_key)
    g = c
    for n, (_, k) in enumerate(ordered):
        g = gcd(g, k)
        if g == 1:
            return None
        lower = Linear(x.const, dict(ordered[n + 1 :]))
        carry = quotient_of_range(space, lower, g)
        if carry is not None:
            upper = Linear(0, {atom: q // g for atom, q in ordered[: n + 1]})
            return g, upper, carry, lower
    return None


def _size_then_key(term: tuple[Atom, int]) -> tuple[object, ...]:
    return -abs(term[1]), term[0].key
