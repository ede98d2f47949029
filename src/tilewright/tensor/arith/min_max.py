"""Minimum and maximum of linear forms: operands that can never win are dropped.

What all operands share is taken out, `min(i + 4, i + n)` is `i + min(4, n)`, so that the same
choice is the same atom wherever it occurs.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.tensor.arith.linear import Kind, Linear, Terms, high, low, plus
from tilewright.tensor.arith.rebuild import expression
from tilewright.tensor.arith.rules import law
from tilewright.tensor.arith.space import Space, order_of
from tilewright.tensor.ir import Expr, Max, Min

__all__ = ["extreme"]

Pick = Callable[[list[int]], int]


def extreme(space: Space, kind: Kind, operands: list[Linear], like: Expr | None = None) -> Linear:
    """The least (MIN) or greatest (MAX) of the operands."""
    flat: list[Linear] = []
    for operand in operands:
        flat.extend(_flattened(kind, operand))
    kept = _undominated(space, kind, flat)
    if len(kept) == 1:
        return kept[0]
    shared = _shared(kept)
    rest = [Linear(x.const, {a: k for a, k in x.terms.items() if a not in shared}) for x in kept]
    rest.sort(key=order_of)

    def bounds() -> tuple[int | None, int | None]:
        lows = [low(x.const, x.terms) for x in rest]
        highs = [high(x.const, x.terms) for x in rest]
        if kind is Kind.MIN:
            return _all(min, lows), _any(min, highs)
        return _any(max, lows), _all(max, highs)

    def build() -> Expr:
        return _build(Min if kind is Kind.MIN else Max, rest, like)

    ident = tuple(x.key() for x in rest)
    return plus(space.atom(kind, tuple(rest), ident, bounds, build), Linear(0, shared))


@law("min(min(x, y) + z, v)", "min(min(x + z, y + z), v)")
@law("max(max(x, y) + z, v)", "max(max(x + z, y + z), v)")
def _flattened(kind: Kind, operand: Linear) -> list[Linear]:
    """`min(a, b) + c` inside a minimum is `a + c`, `b + c`."""
    for atom, k in operand.terms.items():
        if atom.kind is kind and k == 1:
            rest = Linear(operand.const, {a: q for a, q in operand.terms.items() if a is not atom})
            return [plus(rest, part) for part in atom.parts]
    return [operand]


def _undominated(space: Space, kind: Kind, operands: list[Linear]) -> list[Linear]:
    kept: list[Linear] = []
    for x in operands:
        if any(_wins(space, kind, y, x) for y in kept):
            continue
        kept = [y for y in kept if not _wins(space, kind, x, y)]
        kept.append(x)
    return kept


@law("min(x, y)", "x", "x <= y")
@law("max(x, y)", "x", "y <= x")
def _wins(space: Space, kind: Kind, a: Linear, b: Linear) -> bool:
    """Whether b never matters beside a."""
    return space.never_negative(plus(b, a, -1) if kind is Kind.MIN else plus(a, b, -1))


@law("min(x + z, y + z)", "min(x, y) + z")
@law("max(x + z, y + z)", "max(x, y) + z")
def _shared(operands: list[Linear]) -> Terms:
    first, *others = operands
    return {a: k for a, k in first.terms.items() if all(x.terms.get(a) == k for x in others)}


def _build(kind: type[Min | Max], operands: list[Linear], like: Expr | None) -> Expr:
    spine: list[Expr | None] = [None] * len(operands)
    node = like
    for n in range(len(operands) - 1, -1, -1):
        spine[n] = node
        if n == 0 or not isinstance(node, kind):
            break
        node = node.a
    result = expression(operands[0], spine[0])
    for x, old in zip(operands[1:], spine[1:], strict=True):
        made = expression(x, old.b if isinstance(old, kind) else None)
        reuse = isinstance(old, kind) and old.a is result and old.b is made
        result = old if reuse and old is not None else kind(result, made)
    return result


def _all(pick: Pick, ends: list[int | None]) -> int | None:
    known = [e for e in ends if e is not None]
    return pick(known) if len(known) == len(ends) else None


def _any(pick: Pick, ends: list[int | None]) -> int | None:
    known = [e for e in ends if e is not None]
    return pick(known) if known else None
