"""Comparisons of index expressions: decided where possible, else written in one way.

The canonical form has only `<`, `==` and `!=`, positive coefficients on both sides, the constant
on the right, and no common factor.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from tilewright.dtypes import index
from tilewright.tensor.arith.div_mod import low_digits
from tilewright.tensor.arith.fold import FALSE, TRUE
from tilewright.tensor.arith.linear import Atom, Kind, Linear, constant, high, low, plus, scaled
from tilewright.tensor.arith.rebuild import expression, same_tree
from tilewright.tensor.arith.recombine import recombine, without_remainders
from tilewright.tensor.arith.rules import law
from tilewright.tensor.arith.space import NotAffine, Space
from tilewright.tensor.ir import BitAnd, Compare, Eq, Expr, Le, Lt, Not

__all__ = ["decide", "facts_of", "simplify_compare"]


def decide(space: Space, kind: type[Compare], a: Linear, b: Linear) -> bool | None:
    """The truth of `a <kind> b` over the whole space, if it has only one."""
    if kind is Lt or kind is Le:
        gap = plus(b, a, -1)  # a < b is gap ≥ 1
        slack = -1 if kind is Lt else 0
        if space.never_negative(plus(gap, constant(slack))):
            return True
        return False if space.never_negative(plus(constant(-1 - slack), gap, -1)) else None
    equal = _is_zero(space, recombine(space, plus(a, b, -1)))
    return equal if equal is None or kind is Eq else not equal


@law("x*a + b == 0", "False", "b % a > 0")
def _is_zero(space: Space, gap: Linear) -> bool | None:
    """Whether a form is always zero (True), never (False), or it depends (None)."""
    if not gap.terms:
        return gap.const == 0
    lo, hi = low(gap.const, gap.terms), high(gap.const, gap.terms)
    if (lo is not None and lo > 0) or (hi is not None and hi < 0):
        return False
    if gap.const % gcd(*gap.terms.values()):
        return False
    if any(a.kind is Kind.MOD for a in gap.terms):
        expanded = without_remainders(space, gap)
        if not expanded.terms:
            return expanded.const == 0
    below = space.never_negative(scaled(gap, -1))
    if space.never_negative(gap):
        if below:
            return True
        return False if space.never_negative(plus(gap, constant(-1))) else None
    return False if below and space.never_negative(plus(constant(-1), gap, -1)) else None


def simplify_compare(space: Space, expr: Compare) -> Expr:
    """The comparison decided or in canonical form; raises `NotAffine` on data."""
    a, b = space.linear(expr.a), space.linear(expr.b)
    kind = type(expr)
    known = decide(space, kind, a, b)
    if known is not None:
        return TRUE if known else FALSE
    gap = recombine(space, plus(a, b, -1))
    if kind is Le:
        gap, kind = plus(gap, constant(-1)), Lt  # a <= b is a - b - 1 < 0
    if kind is Lt:
        gap = _without_low_digits(space, gap)
    left, right = _sides(kind, gap)
    made = kind(expression(left, expr.a), expression(right, expr.b))
    return expr if same_tree(made, expr) else made


@law("x*c + y < 0", "x + a < 0", "c > 0 and a*c <= y and y < (a + 1)*c")
def _without_low_digits(space: Space, gap: Linear) -> Linear:
    """`i·4 + j < 16` with j in [0, 4) is `i < 4`."""
    found = low_digits(space, gap, 0)
    if found is None:
        return gap
    _, upper, carry, _ = found
    return Linear(upper.const + carry, upper.terms)


@law("x*a + b < 0", "x + b // a < 0", "a > 0")
@law("x*a + y*a == 0", "x + y == 0", "a > 0")
@law("x <= y", "x - y - 1 < 0")
def _sides(kind: type[Compare], gap: Linear) -> tuple[Linear, Linear]:
    """`gap <kind> 0` with the negative terms moved to the right."""
    g = gcd(*gap.terms.values())
    const = gap.const // g  # g·x + c < 0  ⇔  x + c // g < 0; where it is `==`, g divides c
    terms = {a: k // g for a, k in gap.terms.items()}
    if kind is not Lt and min(terms.items(), key=_key_of)[1] < 0:
        terms, const = {a: -k for a, k in terms.items()}, -const
    left = {a: k for a, k in terms.items() if k > 0}
    right = {a: -k for a, k in terms.items() if k < 0}
    if not left:
        return constant(const), Linear(0, right)
    return Linear(0, left), Linear(-const, right)


def _key_of(term: tuple[Atom, int]) -> tuple[object, ...]:
    return term[0].key


@law("x < y", "y - x - 1 >= 0")
@law("x <= y", "y - x >= 0")
@law("y < x", "-1 - (y - x) >= 0")
@law("y <= x", "0 - (y - x) >= 0")
def facts_of(space: Space, cond: Expr) -> Iterator[Linear]:
    """Forms that are ≥ 0 wherever `cond` holds; what is not understood yields nothing."""
    if type(cond) is BitAnd:
        yield from facts_of(space, cond.a)
        yield from facts_of(space, cond.b)
        return
    negated = type(cond) is Not
    inner = cond.value if isinstance(cond, Not) else cond
    if not isinstance(inner, Lt | Le | Eq) or inner.a.dtype != index:
        return
    try:
        gap = plus(space.linear(inner.b), space.linear(inner.a), -1)
    except NotAffine:
        return
    slack = -1 if type(inner) is Lt else 0
    if type(inner) is Eq:
        if not negated:
            yield from (gap, scaled(gap, -1))
    elif negated:
        yield plus(constant(-1 - slack), gap, -1)
    else:
        yield plus(gap, constant(slack))
