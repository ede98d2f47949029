"""From linear forms back to expressions, in a fixed order, reusing the nodes of the original.

A sum is written with its first positive term in front, the others in the order of their atoms, the
constant last: `n - i - 1`. Very long sums are sums of shorter ones, so that nothing that follows
them down has to go deep. Where the original already has exactly that shape, its own nodes are
returned, so that simplifying what is simple costs no allocation and returns the same object.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tilewright.tensor.arith.linear import Atom, Linear
from tilewright.tensor.ir import Add, Const, Expr, Mul, Sub, Var

__all__ = ["expression", "same_tree"]

MAX_SPINE: Final = 32
"""Terms of a sum that lean to the left: more than index expressions of kernels have."""


def _key_of(term: tuple[Atom, int]) -> tuple[Any, ...]:
    return term[0].key


def expression(form: Linear, like: Expr | None = None) -> Expr:
    """`form` as an expression; `like` is returned, whole or in part, where it is already that."""
    terms, const = form.terms, form.const
    if not terms:
        return like if type(like) is Const and like.value == const else Const(const)
    if len(terms) == 1:
        ordered = list(terms.items())
    else:
        ordered = sorted(terms.items(), key=_key_of)
        if ordered[0][1] < 0:
            front = next((n for n, (_, k) in enumerate(ordered) if k > 0), 0)
            if front:
                ordered.insert(0, ordered.pop(front))
    if len(ordered) > MAX_SPINE:
        made = _long(ordered, const)
        return like if like is not None and same_tree(made, like) else made
    length = len(ordered) + (const != 0)
    if ordered[0][1] < 0:
        length += const == 0
        return _build([(None, const), *ordered], 0, length, like)
    return _build(ordered, const, length, like)


def _build(
    ordered: Sequence[tuple[Atom | None, int]], const: int, length: int, like: Expr | None
) -> Expr:
    """The left-leaning sum of `ordered` and `const`, along the spine of `like`."""
    spine: list[Expr | None] = [None] * length
    node = like
    for n in range(length - 1, -1, -1):
        spine[n] = node
        if n == 0 or not (type(node) is Add or type(node) is Sub):
            break
        node = node.a
    result: Expr | None = None
    for n, (atom, k) in enumerate(ordered):
        old = spine[n]
        if result is None:
            result = _term(atom, k, old)
            continue
        if k > 0:
            term = _term(atom, k, old.b if type(old) is Add else None)
            reuse = type(old) is Add and old.a is result and old.b is term
            result = old if reuse else Add(result, term)
        else:
            term = _term(atom, -k, old.b if type(old) is Sub else None)
            reuse = type(old) is Sub and old.a is result and old.b is term
            result = old if reuse else Sub(result, term)
    assert result is not None
    if const:
        old = spine[-1]
        kind = Add if const > 0 else Sub
        if type(old) is kind and old.a is result:
            last = old.b
            if type(last) is Const and last.value == abs(const):
                return old
        return kind(result, Const(abs(const)))
    return result


def _long(ordered: Sequence[tuple[Atom, int]], const: int) -> Expr:
    """What is added less what is subtracted, each a sum of sums."""
    added = [_term(atom, k, None) for atom, k in ordered if k > 0]
    taken = [_term(atom, -k, None) for atom, k in ordered if k < 0]
    result = _sum_of_sums(added) if added else Const(0)
    if taken:
        result = Sub(result, _sum_of_sums(taken))
    if const:
        result = (Add if const > 0 else Sub)(result, Const(abs(const)))
    return result


def _sum_of_sums(terms: Sequence[Expr]) -> Expr:
    while len(terms) > MAX_SPINE:
        starts = range(0, len(terms), MAX_SPINE)
        terms = [_sum_of_sums(terms[k : k + MAX_SPINE]) for k in starts]
    total = terms[0]
    for term in terms[1:]:
        total = Add(total, term)
    return total


def _term(atom: Atom | None, k: int, like: Expr | None) -> Expr:
    """`k · atom` for positive k; a bare constant if there is no atom."""
    if atom is None:
        return like if type(like) is Const and like.value == k else Const(k)
    base = atom.expr
    if k == 1:
        if (
            like is not None
            and like is not base
            and type(base) is not Var
            and same_tree(base, like)
        ):
            return like
        return base
    if (
        type(like) is Mul
        and type(like.b) is Const
        and like.b.value == k
        and (like.a is base or (type(base) is not Var and same_tree(base, like.a)))
    ):
        return like
    return Mul(base, Const(k))


def same_tree(a: Any, b: Any) -> bool:
    """Structural equality without hashing; fails fast, for nodes that are used only once."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if type(a) is tuple:
        return len(a) == len(b) and all(same_tree(x, y) for x, y in zip(a, b, strict=True))
    if type(a) is Var or not isinstance(a, Expr) or type(a) is Const:
        return bool(a == b)
    return all(same_tree(getattr(a, n), getattr(b, n)) for n in a.fields)
