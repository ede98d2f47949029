"""Index arithmetic as polynomials: `Σ coefficient · product of atoms`.

A form is a dictionary from the factors of a product (sorted, `()` for the constant) to its integer
coefficient. An atom is a variable or anything that is not a sum or a product: a floor division, a
minimum, the start of a tile. Forms make the questions of lowering cheap (how does this index move
with that loop? by how much do two indices differ?); `expr_of` turns them back into a sum whose
terms go from outer to inner loops, so that constants put in for inner variables fold at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from tilewright.dtypes import index
from tilewright.tensor import cover as covers
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import free_vars

__all__ = [
    "Form",
    "constant",
    "const_of",
    "expr_of",
    "form_of",
    "minus",
    "mentions",
    "plus",
    "put",
    "scaled",
    "split",
    "tidy",
    "times",
]

Factors = tuple[tir.Expr, ...]
Form = dict[Factors, int]

MAX_TERMS: Final = 16
"""Terms of a product that is multiplied out: that of ten borders, n + 2, would have a thousand."""


def constant(value: int) -> Form:
    """A number."""
    return {(): value} if value else {}


def const_of(form: Form) -> int | None:
    """The number, if the form is one."""
    if not form:
        return 0
    return form.get(()) if len(form) == 1 else None


def form_of(expr: tir.Expr) -> Form:
    """The form of an index expression; operands of atoms are tidied too."""
    kind = type(expr)
    if kind is tir.Const:
        return constant(int(expr.value))  # type: ignore[attr-defined]
    if isinstance(expr, tir.Var):
        return {(expr,): 1}
    if kind is tir.Add or kind is tir.Sub:
        total: Form = {}
        if _collect(expr, 1, total):
            return total
        sign = 1 if kind is tir.Add else -1
        return plus(form_of(expr.a), form_of(expr.b), sign)  # type: ignore[attr-defined]
    if kind is tir.Mul:
        return times(form_of(expr.a), form_of(expr.b))  # type: ignore[attr-defined]
    return _ATOMS.get(kind, _atom)(expr)


def _collect(expr: Any, k: int, total: Form) -> bool:
    """Add `k · expr` to `total`, term by term; False, to begin again, if something cancels.

    The order of the terms is then that of sums of forms, which leave out what is zero.
    """
    kind = type(expr)
    if kind is tir.Add:
        return _collect(expr.a, k, total) and _collect(expr.b, k, total)
    if kind is tir.Sub:
        return _collect(expr.a, k, total) and _collect(expr.b, -k, total)
    for key, n in form_of(expr).items():
        new = total.get(key, 0) + k * n
        if not new:
            return False
        total[key] = new
    return True


def _atom(expr: tir.Expr) -> Form:
    return {(expr,): 1}


def _floor_div(expr: tir.FloorDiv) -> Form:
    a, b = form_of(expr.a), form_of(expr.b)
    divisor = const_of(b)
    if divisor is None or divisor <= 0:
        return _atom(tir.FloorDiv(expr_of(a), expr_of(b)))
    whole = {key: k // divisor for key, k in a.items() if key and k % divisor == 0}
    rest = {key: k for key, k in a.items() if not key or k % divisor}
    if const_of(rest) is not None:
        return plus(whole, constant((const_of(rest) or 0) // divisor))
    number = rest.pop((), 0)  # (x + 7) // 4 is (x + 3) // 4 + 1
    whole = plus(whole, constant(number // divisor))
    rest = plus(rest, constant(number % divisor))
    return plus(whole, _atom(expr_of(rest) // divisor))


def _floor_mod(expr: tir.FloorMod) -> Form:
    a, b = form_of(expr.a), form_of(expr.b)
    divisor = const_of(b)
    if divisor is None or divisor <= 0:
        return _atom(tir.FloorMod(expr_of(a), expr_of(b)))
    # A factor larger than the divisor stays, as in the quotient: the two may meet again.
    rest = {key: k if key and k > 0 else k % divisor for key, k in a.items() if k % divisor}
    number = const_of(rest)
    return constant(number) if number is not None else _atom(expr_of(rest) % divisor)


def _extreme(expr: tir.Min | tir.Max) -> Form:
    a, b = form_of(expr.a), form_of(expr.b)
    distance = const_of(plus(a, b, -1))
    if distance is None:
        return _atom(type(expr)(expr_of(a), expr_of(b)))
    return a if (distance < 0) == (type(expr) is tir.Min) else b


def _tile(expr: tir.TileStart | tir.TileSize) -> Form:
    make = covers.start if type(expr) is tir.TileStart else covers.size
    made = make(expr.cover, tidy(expr.tile))
    return _atom(made) if type(made) is type(expr) else form_of(made)


def _select(expr: tir.Select) -> Form:
    if type(expr.cond) is tir.Const:
        return form_of(expr.if_true if expr.cond.value else expr.if_false)
    return _atom(tir.Select(expr.cond, tidy(expr.if_true), tidy(expr.if_false)))


_ATOMS: Final[dict[type[tir.Expr], Callable[[Any], Form]]] = {
    tir.FloorDiv: _floor_div,
    tir.FloorMod: _floor_mod,
    tir.Min: _extreme,
    tir.Max: _extreme,
    tir.TileStart: _tile,
    tir.TileSize: _tile,
    tir.Select: _select,
}


def plus(a: Form, b: Form, factor: int = 1) -> Form:
    """`a + factor · b`."""
    if not b:
        return a
    total = dict(a)
    for key, k in b.items():
        new = total.get(key, 0) + factor * k
        if new:
            total[key] = new
        else:
            total.pop(key, None)
    return total


def minus(a: Form, b: Form) -> Form:
    """`a - b`."""
    return plus(a, b, -1)


def scaled(a: Form, factor: int) -> Form:
    """`factor · a`."""
    if factor == 1:
        return a
    return {key: k * factor for key, k in a.items()} if factor else {}


def times(a: Form, b: Form) -> Form:
    """`a · b`, multiplied out, unless that takes very many terms: it is then an atom of its own."""
    number = const_of(b)
    if number is not None:
        return scaled(a, number)
    number = const_of(a)
    if number is not None:
        return scaled(b, number)
    if _stays_closed(a, b):
        return _atom(tir.Mul(expr_of(a), expr_of(b), index))
    total: Form = {}
    for x, k in a.items():
        for y, n in b.items():
            key = tuple(sorted(x + y, key=hash)) if x and y else x or y
            total[key] = total.get(key, 0) + k * n
    return {key: k for key, k in total.items() if k}


def _stays_closed(a: Form, b: Form) -> bool:
    """Whether a product has many terms, or several with a product that is not multiplied out."""
    if len(a) == len(b) == 1:
        return False
    if min(len(a), len(b)) > 1 and len(a) * len(b) > MAX_TERMS:
        return True
    return any(type(atom) is tir.Mul for form in (a, b) for key in form for atom in key)


def mentions(form: Form, var: tir.Var) -> bool:
    """Does `var` occur, also inside an atom?"""
    for key in form:
        for atom in key:
            if atom is var or (not isinstance(atom, tir.Var) and var in free_vars(atom)):
                return True
    return False


def split(form: Form, var: tir.Var) -> tuple[Form, Form] | None:
    """(c, rest) with form = c · var + rest and no `var` in either; None if it is not so."""
    factor: Form = {}
    rest: Form = {}
    for key, k in form.items():
        at = next((n for n, atom in enumerate(key) if atom is var), None)
        if at is None:
            rest[key] = k
        else:
            factor[key[:at] + key[at + 1 :]] = k
    if mentions(factor, var) or mentions(rest, var):
        return None
    return factor, rest


def put(form: Form, values: Mapping[tir.Var, Form]) -> Form:
    """The form with variables replaced; atoms that contain them are rebuilt."""
    total: Form = {}
    for key, k in form.items():
        if not any(_touched(atom, values) for atom in key):
            total = plus(total, {key: k})
            continue
        product = constant(k)
        for atom in key:
            product = times(product, _put_atom(atom, values))
        total = plus(total, product)
    return total


def _touched(atom: tir.Expr, values: Mapping[tir.Var, Form]) -> bool:
    if isinstance(atom, tir.Var):
        return atom in values
    return not values.keys().isdisjoint(free_vars(atom))


def _put_atom(atom: tir.Expr, values: Mapping[tir.Var, Form]) -> Form:
    if isinstance(atom, tir.Var):
        return values.get(atom) if atom in values else {(atom,): 1}  # type: ignore[return-value]
    if not _touched(atom, values):
        return {(atom,): 1}
    from tilewright.lower.fold import substitute  # folding is built on forms

    return form_of(substitute(atom, {v: expr_of(f) for v, f in values.items()}))


def expr_of(form: Form, order: Mapping[tir.Var, int] | None = None) -> tir.Expr:
    """The sum as an expression: positive terms first, ordered by `order` of their variables."""
    if not form:
        return tir.Const(0)
    terms = [(key, k) for key, k in form.items() if key]
    if order and len(terms) > 1:
        terms.sort(key=lambda term: _rank(term[0], order))
    result: tir.Expr | None = None
    for key, k in terms:
        if k > 0:
            term = _product(key, k, order)
            result = term if result is None else tir.Add(result, term, index)
    number = form.get((), 0)
    if result is None:  # 8 - i rather than 0 - i + 8
        result, number = tir.Const(number), 0
    for key, k in terms:
        if k < 0:
            result = tir.Sub(result, _product(key, -k, order), index)
    if number == 0:
        return result
    kind, size = (tir.Add, number) if number > 0 else (tir.Sub, -number)
    return kind(result, tir.Const(size), index)


def _product(key: Factors, k: int, order: Mapping[tir.Var, int] | None) -> tir.Expr:
    if len(key) > 1:  # the order of a key depends on hashes, that of the text must not
        key = tuple(sorted(key, key=lambda a: (-_rank((a,), order or {}), _text(a))))
    product = key[0]
    for atom in key[1:]:
        product = tir.Mul(product, atom, index)
    return product if k == 1 else tir.Mul(product, tir.Const(k), index)


def _text(atom: tir.Expr) -> str:
    """Orders atoms of the same loops: variables first."""
    return atom.name if isinstance(atom, tir.Var) else f"~{atom!r}"


def _rank(key: Iterable[tir.Expr], order: Mapping[tir.Var, int]) -> int:
    rank = -1
    for atom in key:
        for var in (atom,) if isinstance(atom, tir.Var) else free_vars(atom):
            rank = max(rank, order.get(var, -1))
    return rank


def tidy(expr: tir.Expr, order: Mapping[tir.Var, int] | None = None) -> tir.Expr:
    """The expression in normal form; the same object if it is a variable or a number."""
    if isinstance(expr, (tir.Var, tir.Const)):
        return expr
    return expr_of(form_of(expr), order)
