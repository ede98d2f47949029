"""The space that interns atoms: variables with their ranges, and everything built from them.

The order of atoms decides how sums are written. It follows the binding order of the variables
(outer loops first), then the sizes in order of first mention, and only then names, so that the
same program with other names simplifies to the same shape. It never depends on hashes or ids.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Final

from tilewright.tensor.expr import Const, Cover, Expr, Mul, TileSize, TileStart, Var
from tilewright.tensor.arith.linear import Atom, Kind, Linear, add_into, constant, high, plus, scaled
from tilewright.tensor.node import Node
from tilewright.tensor.visit import children

__all__ = ["NotAffine", "Space", "order_of"]

_SIZES_FROM: Final = 1 << 20  # ranks of sizes, behind all bound variables
_UNKNOWN_RANK: Final = 1 << 30  # variables that the space knows nothing about: ordered by name


class NotAffine(Exception):
    """The expression depends on data (a `Load`, a `Call`, …) that index arithmetic cannot see."""


def order_of(form: Linear) -> tuple[object, ...]:
    """A key that orders forms of one space deterministically."""
    return tuple(sorted((atom.key, k) for atom, k in form.terms.items())), form.const


def _lead(form: Linear) -> tuple[object, object]:
    """Rank and name of the first variable in a form."""
    return min((a.key[:2] for a in form.terms), default=(_UNKNOWN_RANK, ""))  # type: ignore[return-value]


class Space:
    """Variables with ranges `0 ≤ var < extent`, and the atoms made from them."""

    __slots__ = ("_atoms", "_size_ranks", "extents", "ranks")

    def __init__(self, extents: Mapping[Var, Expr | int]) -> None:
        self.extents = extents
        self.ranks = {var: rank for rank, var in enumerate(extents)}
        self._atoms: dict[Hashable, Atom | int] = {}
        self._size_ranks: dict[Var, int] | None = None

    def linear(self, expr: Expr) -> Linear:
        """The linear form of an index expression; raises `NotAffine` if it depends on data."""
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

    def _make_var(self, var: Var) -> Atom | int:
        extent = self.extents.get(var)
        if extent is None:
            size_rank = self.sizes.get(var)
            rank = _UNKNOWN_RANK if size_rank is None else size_rank
            low = None if size_rank is None else 1
            return Atom(Kind.VAR, (), (low, None), (rank, var.name, 0), -1, var)
        depth = self.ranks[var]
        key = (depth, var.name, 0)
        if isinstance(extent, int):
            return 0 if extent == 1 else Atom(Kind.VAR, (), (0, extent - 1), key, depth, var)
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
        parts: tuple[object, ...],
        ident: Hashable,
        bounds: Callable[[], tuple[int | None, int | None]],
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
                found = Atom(kind, parts, (lo, hi), _key(kind, parts, made), _depth(parts), made)
            self._atoms[name] = found
        return constant(found) if isinstance(found, int) else Linear(0, {found: 1})

    def product(self, factors: list[Atom]) -> Atom | int:
        """The product of atoms as one atom; products inside are flattened."""
        flat: list[Atom] = []
        for factor in factors:
            flat.extend(factor.parts if factor.kind is Kind.PRODUCT else (factor,))  # type: ignore[arg-type]
        flat.sort(key=lambda a: a.key)  # type: ignore[arg-type, return-value]
        name = (Kind.PRODUCT, tuple(flat))
        found = self._atoms.get(name)
        if found is None:
            lo, hi = flat[0].lo, flat[0].hi
            expr = flat[0].expr
            for factor in flat[1:]:
                lo, hi = _times((lo, hi), (factor.lo, factor.hi))
                expr = Mul(expr, factor.expr)
            if len(flat) % 2 == 0 and all(a is b for a, b in zip(flat[::2], flat[1::2], strict=True)):
                lo = max(lo or 0, 0)  # a square
            key = (*flat[0].key[:2], int(Kind.PRODUCT), *(f.key for f in flat))
            found = lo if lo is not None and lo == hi else None
            if found is None:
                found = Atom(Kind.PRODUCT, tuple(flat), (lo, hi), key, _depth(tuple(flat)), expr)
            self._atoms[name] = found
        return found


    def product_of(self, factors: list[Atom]) -> Linear:
        """The product of atoms as a form."""
        found = self.product(factors)
        return constant(found) if isinstance(found, int) else Linear(0, {found: 1})

    def multiply(self, a: Linear, b: Linear) -> Linear:
        """`a · b`, multiplied out."""
        if not a.terms or not b.terms:
            return scaled(b, a.const) if not a.terms else scaled(a, b.const)
        result = plus(scaled(a, b.const), Linear(0, b.terms), a.const)
        terms, const = dict(result.terms), a.const * b.const
        for p, k in a.terms.items():
            for q, m in b.terms.items():
                part = self.product_of([p, q])
                add_into(terms, part.terms, k * m)
                const += part.const * k * m
        return Linear(const, terms)


def _times(
    a: tuple[int | None, int | None], b: tuple[int | None, int | None]
) -> tuple[int | None, int | None]:
    """The bounds of a product."""
    (al, ah), (bl, bh) = a, b
    if al is not None and bl is not None and al >= 0 and bl >= 0:
        return al * bl, None if ah is None or bh is None else ah * bh
    if al is None or ah is None or bl is None or bh is None:
        return None, None
    corners = (al * bl, al * bh, ah * bl, ah * bh)
    return min(corners), max(corners)


def _depth(parts: tuple[object, ...]) -> int:
    """The rank of the innermost bound variable in a form or among atoms; -1 without any."""
    depth = -1
    for part in parts:
        if isinstance(part, Atom):
            depth = max(depth, part.depth)
        elif isinstance(part, Linear):
            depth = max(depth, _depth(tuple(part.terms)))
    return depth


def _key(kind: Kind, parts: tuple[object, ...], expr: Expr) -> tuple[object, ...]:
    forms = [p for p in parts if isinstance(p, Linear)]
    rank, name = min((_lead(f) for f in forms), default=(_UNKNOWN_RANK, ""))
    detail: list[object] = []
    for part in parts:
        if isinstance(part, Linear):
            detail.append((1, order_of(part)))
        elif isinstance(part, int):
            detail.append((0, part))
        elif isinstance(part, Cover):
            detail.append((2, repr(part)))
    return rank, name, int(kind), *detail, repr(expr) if not forms else ""
