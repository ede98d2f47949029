"""The space that interns atoms: variables with their ranges, and everything built from them.

The order of atoms decides how sums are written. It follows the binding order of the variables
(outer loops first), then the sizes in order of first mention, and only then names, so that the
same program with other names simplifies to the same shape. It never depends on hashes or ids.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final

from tilewright.tensor.arith.linear import (
    Atom,
    Kind,
    Linear,
    add_into,
    constant,
    high,
    low,
    plus,
    scaled,
)
from tilewright.tensor.arith.rebuild import expression
from tilewright.tensor.ir import Const, Expr, Mul, TileSize, TileStart, Var
from tilewright.tensor.node import Node
from tilewright.tensor.visit import children

__all__ = ["Ends", "NotAffine", "Space", "order_of"]

Ends = tuple[int | None, int | None]

_SIZES_FROM: Final = 1 << 20  # ranks of sizes, behind all bound variables
_UNKNOWN_RANK: Final = 1 << 30  # variables that the space knows nothing about: ordered by name

MAX_TERMS: Final = 16
"""Terms of a product that is multiplied out: that of ten borders, n + 2, would have a thousand."""


class NotAffine(Exception):  # noqa: N818 (an answer, not an error)
    """The expression depends on data (a `Load`, a `Call`, …) that index arithmetic cannot see."""


def order_of(form: Linear) -> tuple[Any, ...]:
    """A key that orders forms of one space deterministically."""
    return tuple(sorted((atom.key, k) for atom, k in form.terms.items())), form.const


class Space:
    """Variables with ranges `0 ≤ var < extent`, and the atoms made from them.

    The operations that need rules are declared here and defined by the `Analyzer`.
    """

    __slots__ = (
        "_atoms",
        "_size_ranks",
        "extents",
        "facts",
        "lengths",
        "ranks",
        "steps",
        "tilings",
    )

    def __init__(self, extents: Mapping[Var, Expr | int]) -> None:
        self.extents = dict(extents)
        self.ranks = {var: rank for rank, var in enumerate(extents)}
        self.facts: list[Linear] = []
        self.steps = 0  # what is left to the search for a proof, see `nonneg.py`
        self.tilings: dict[Any, Any] = {}  # see `tiles.py`
        self.lengths: dict[Var, Linear] = {}  # see `itermap/digits.py`
        self._atoms: dict[Hashable, Atom | int] = {}
        self._size_ranks: dict[Var, int] | None = None

    def linear(self, expr: Expr) -> Linear:
        """The linear form of an index expression; raises `NotAffine` if it depends on data."""
        raise NotImplementedError

    def atomic(self, expr: Expr) -> Linear:
        """The same for an expression that is not a sum."""
        raise NotImplementedError

    def simplify(self, expr: Expr) -> Expr:
        """An equal expression in canonical form."""
        raise NotImplementedError

    def floor_div(self, x: Linear, divisor: int | Linear) -> Linear:
        """`x // divisor` as a form."""
        raise NotImplementedError

    def floor_mod(self, x: Linear, divisor: int | Linear) -> Linear:
        """`x % divisor` as a form."""
        raise NotImplementedError

    def never_negative(self, form: Linear) -> bool:
        """Whether `form ≥ 0` can be proved."""
        raise NotImplementedError

    def tells_from_zero(self, form: Linear) -> bool:
        """Whether an example is known where `form` is not zero."""
        raise NotImplementedError

    @property
    def sizes(self) -> dict[Var, int]:
        """Variables that extents mention but nothing binds, in order of first mention.

        The tile position of `TileStart` and `TileSize` never holds a size.
        """
        if self._size_ranks is None:
            self._size_ranks = {}
            for extent in self.extents.values():
                if isinstance(extent, Expr):
                    self._note_sizes(extent)
        return self._size_ranks

    def _note_sizes(self, part: Node) -> None:
        if isinstance(part, Var):
            if part not in self.ranks:
                self.sizes.setdefault(part, _SIZES_FROM + len(self.sizes))
        elif isinstance(part, TileStart | TileSize):
            self._note_sizes(part.cover)
        elif type(part) is not Const:
            for child in children(part):
                self._note_sizes(child)

    def var(self, var: Var) -> Atom | int:
        """The atom of a variable; its value if there is only one."""
        found = self._atoms.get(var)
        if found is None:
            found = self._atoms[var] = self._make_var(var)
        return found

    def ends(self) -> list[Linear]:
        """The last values of loops that have atoms and no constant length; none is made for it."""
        atoms = (self._atoms.get(var) for var in self.extents)
        return [atom.parts[0] for atom in atoms if isinstance(atom, Atom) and atom.parts]

    def _make_var(self, var: Var) -> Atom | int:
        extent = self.extents.get(var)
        if extent is None:
            rank = self.sizes.get(var)
            if rank is None:
                return Atom(Kind.VAR, (), (None, None), (_UNKNOWN_RANK, var.name, 0), -1, var)
            return Atom(Kind.VAR, (), (1, None), (rank, var.name, 0), -1, var)
        depth = self.ranks[var]
        key = (depth, var.name, 0)
        if type(extent) is Const:
            extent = extent.value  # type: ignore[assignment]
        if isinstance(extent, int):
            return 0 if extent == 1 else Atom(Kind.VAR, (), (0, extent - 1), key, depth, var)
        assert isinstance(extent, Expr)
        try:
            last = plus(self.linear(extent), constant(-1))
        except NotAffine:
            return Atom(Kind.VAR, (), (0, None), key, depth, var)
        most = high(last.const, last.terms)
        if most == 0:
            return 0
        return Atom(Kind.VAR, (last,) if last.terms else (), (0, most), key, depth, var)

    def atom(
        self,
        kind: Kind,
        parts: tuple[Any, ...],
        ident: Hashable,
        bounds: Callable[[], Ends],
        expr: Callable[[], Expr],
    ) -> Linear:
        """The interned atom with this identity as a form; a constant if its bounds meet."""
        name = (kind, ident)
        found = self._atoms.get(name)
        if found is None:
            lo, hi = bounds()
            if lo is not None and lo == hi:
                found = lo
            else:
                made = expr()
                key = _key(kind, parts, made)
                found = Atom(kind, parts, (lo, hi), key, _depth(parts), made)
            self._atoms[name] = found
        return constant(found) if isinstance(found, int) else Linear(0, {found: 1})

    def product(self, factors: list[Atom]) -> Linear:
        """The product of atoms as a form; products inside are flattened."""
        flat: list[Atom] = []
        for factor in factors:
            flat.extend(factor.parts if factor.kind is Kind.PRODUCT else (factor,))
        if len(flat) <= 1:
            return Linear(0, {flat[0]: 1}) if flat else constant(1)
        flat.sort(key=lambda a: a.key)

        def bounds() -> Ends:
            ends: Ends = (1, 1)
            for factor in flat:
                ends = _times(ends, (factor.lo, factor.hi))
            return ends

        def build() -> Expr:
            expr = flat[0].expr
            for factor in flat[1:]:
                expr = Mul(expr, factor.expr)
            return expr

        return self.atom(Kind.PRODUCT, tuple(flat), tuple(flat), bounds, build)

    def multiply(self, a: Linear, b: Linear) -> Linear:
        """`a · b`, multiplied out, unless that takes very many terms."""
        if not a.terms:
            return scaled(b, a.const)
        if not b.terms:
            return scaled(a, b.const)
        if _stays_closed(a, b):
            return self._closed(a, b)
        terms = scaled(a, b.const).terms.copy() if b.const else {}
        add_into(terms, b.terms, a.const)
        const = a.const * b.const
        for p, k in a.terms.items():
            for q, m in b.terms.items():
                part = self.product([p, q])
                add_into(terms, part.terms, k * m)
                const += part.const * k * m
        return Linear(const, terms)

    def _closed(self, a: Linear, b: Linear) -> Linear:
        """`a · b` as one atom of which nothing is known but its bounds."""
        first, second = sorted((a, b), key=order_of)

        def bounds() -> Ends:
            ends = ((low(x.const, x.terms), high(x.const, x.terms)) for x in (first, second))
            return _times(*ends)

        def build() -> Expr:
            return Mul(expression(first), expression(second))

        ident = (Mul, first.key(), second.key())
        return self.atom(Kind.OTHER, (first, second), ident, bounds, build)


def _stays_closed(a: Linear, b: Linear) -> bool:
    """Whether a product has many terms, or several with a product that is not multiplied out."""
    sizes = [len(form.terms) + (form.const != 0) for form in (a, b)]
    if sizes == [1, 1]:
        return False
    if min(sizes) > 1 and sizes[0] * sizes[1] > MAX_TERMS:
        return True
    return any(_is_closed(atom) for form in (a, b) for atom in form.terms)


def _is_closed(atom: Atom) -> bool:
    if atom.kind is Kind.PRODUCT:
        return any(map(_is_closed, atom.parts))
    return atom.kind is Kind.OTHER and type(atom.expr) is Mul


def _times(a: Ends, b: Ends) -> Ends:
    """The bounds of a product."""
    (al, ah), (bl, bh) = a, b
    if al is not None and bl is not None and al >= 0 and bl >= 0:
        return al * bl, None if ah is None or bh is None else ah * bh
    if al is None or ah is None or bl is None or bh is None:
        return None, None
    corners = (al * bl, al * bh, ah * bl, ah * bh)
    return min(corners), max(corners)


def _depth(parts: tuple[Any, ...]) -> int:
    """The rank of the innermost bound variable in forms or among atoms; -1 without any."""
    depth = -1
    for part in parts:
        if type(part) is Linear:
            for atom in part.terms:
                depth = max(depth, atom.depth)
        elif type(part) is Atom:
            depth = max(depth, part.depth)
    return depth


def _key(kind: Kind, parts: tuple[Any, ...], expr: Expr) -> tuple[Any, ...]:
    """Rank and name of the first variable inside, then the kind, then the parts."""
    lead: tuple[Any, ...] = (_UNKNOWN_RANK, "")
    detail: list[object] = []
    for part in parts:
        if type(part) is Linear:
            detail.append((1, order_of(part)))
            lead = min(lead, *(a.key[:2] for a in part.terms)) if part.terms else lead
        elif type(part) is Atom:
            detail.append((3, part.key))
            lead = min(lead, part.key[:2])
        elif isinstance(part, int):
            detail.append((0, part))
        elif kind is Kind.START or kind is Kind.SIZE:
            detail.append((2, part.order()))
    text = repr(expr) if kind is Kind.SELECT or (kind is Kind.OTHER and not parts) else ""
    return (*lead, int(kind), text, tuple(detail))
