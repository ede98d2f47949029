"""The box that index expressions touch while inner loops run and outer variables stand still.

    region_bounds((t * 4 + x, j), [(x, 6), (j, 16)], analyzer)      # [4·t, 4·t + 6), [0, 16)

Inner variables are eliminated one by one, innermost first, at the end of their range that makes an
index least or greatest. Exact where an index only grows or only falls with each of its terms (sums,
quotients, starts of tiles), else a box that is large enough. A tile with its inside ends where the
next one begins, so `start(t) + j` over the inside is `[start(t), start(t) + size(t))`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.tensor.arith.analyzer import Analyzer
from tilewright.tensor.arith.linear import Atom, Kind, Linear, constant, high, plus
from tilewright.tensor.arith.min_max import extreme
from tilewright.tensor.arith.rebuild import expression
from tilewright.tensor.arith.recombine import recombine
from tilewright.tensor.arith.rules import law
from tilewright.tensor.arith.space import NotAffine
from tilewright.tensor.arith.tiles import start_of, tile_size, tile_start
from tilewright.tensor.ir import Expr, Range, Var
from tilewright.tensor.visit import free_vars

__all__ = ["region_bounds"]


def region_bounds(
    indices: Sequence[Expr],
    inner: Sequence[tuple[Var, Expr | int]],
    analyzer: Analyzer,
    *,
    constant_extents: bool = False,
) -> tuple[Range | None, ...]:
    """The range of each index over the inner loops (outermost first); None if it depends on data.

    `analyzer` knows the outer variables. With `constant_extents`, an extent that varies is replaced
    by the largest that it can be, if there is such a number.
    """
    space = analyzer
    for var, extent in inner:
        if var not in space.extents:
            space = space.bind(var, extent)
    sweep = _Sweep(space, frozenset(var for var, _ in inner))
    return tuple([sweep.range_of(index, constant_extents) for index in indices])


class _Unbounded(Exception):  # noqa: N818 (an answer, not an error)
    """Nothing bounds the index while the inner loops run."""


class _Sweep:
    def __init__(self, space: Analyzer, inner: frozenset[Var]) -> None:
        self.space, self.inner = space, inner
        self._depends: dict[Atom, bool] = {}

    def range_of(self, index: Expr, constant_extents: bool) -> Range | None:  # noqa: FBT001
        try:
            form = self.space.linear(index)
            first, last = self.extreme(form, upper=False), self.extreme(form, upper=True)
        except (NotAffine, _Unbounded):
            return None
        length = self._distributed(plus(plus(last, constant(1)), first, -1))
        if constant_extents and length.terms:
            most = self._most(length)
            length = length if most is None else constant(most)
        start = self.space.simplify(expression(first, index))
        return Range(start, self.space.simplify(expression(length)))

    def _distributed(self, length: Linear) -> Linear:
        """A minimum or maximum with the rest of the sum inside, where it may cancel."""
        for atom, k in length.terms.items():
            if k == 1 and (atom.kind is Kind.MIN or atom.kind is Kind.MAX):
                rest = plus(length, Linear(0, {atom: 1}), -1)
                return extreme(self.space, atom.kind, [plus(rest, part) for part in atom.parts])
        return recombine(self.space, length)

    @law("(x + a) // c - x // c <= (a + c - 1) // c", "True", "c > 0")
    def _most(self, length: Linear) -> int | None:
        """The greatest value of an extent; quotients a fixed distance apart are taken together."""
        for up, k in length.terms.items():
            for down, m in length.terms.items():
                if k > 0 and m == -k and up.kind is Kind.DIV and down.kind is Kind.DIV:
                    c = up.parts[1]
                    apart = plus(up.parts[0], down.parts[0], -1)
                    if isinstance(c, int) and down.parts[1] == c and not apart.terms:
                        rest = {a: q for a, q in length.terms.items() if a not in (up, down)}
                        steps = -(-apart.const // c)
                        return self._most(Linear(length.const + k * steps, rest))
        return high(length.const, length.terms)

    def depends(self, atom: Atom) -> bool:
        """Whether an inner variable is inside."""
        found = self._depends.get(atom)
        if found is None:
            if not atom.parts or isinstance(atom.expr, Var):
                # Also inside of what is read from a buffer: then data says where the index goes.
                found = not self.inner.isdisjoint(free_vars(atom.expr))
            else:
                atoms = (
                    inside
                    for part in atom.parts
                    for inside in (part.terms if isinstance(part, Linear) else (part,))
                    if isinstance(inside, Atom)
                )
                found = any(self.depends(inside) for inside in atoms)
            self._depends[atom] = found
        return found

    def extreme(self, form: Linear, *, upper: bool) -> Linear:
        """`form` at the place of the inner loops where it is greatest (or least)."""
        while True:
            atoms = [atom for atom in form.terms if self.depends(atom)]
            if not atoms:
                return form
            atom = max(atoms, key=lambda a: (a.depth, a.kind))
            k = form.terms[atom]
            ended = self._tile_end(form, atom, upper=upper)
            if ended is not None:
                form = ended
                continue
            rest = plus(form, Linear(0, {atom: k}), -1)
            form = plus(rest, self._atom(atom, upper=upper == (k > 0)), k)

    def _tile_end(self, form: Linear, atom: Atom, *, upper: bool) -> Linear | None:
        """start(t) + size(t) with t inside: it grows with t, so the last tile decides."""
        if atom.kind is not Kind.SIZE:
            return None
        k, (tiles, tile) = form.terms[atom], atom.parts
        start = start_of(self.space, atom)
        if not all(form.terms.get(a) == q * k for a, q in start.terms.items()):
            return None
        last = self.extreme(tile, upper=upper == (k > 0))
        rest = plus(plus(form, Linear(0, {atom: k}), -1), start, -k)
        if last.same(plus(tiles.count, constant(-1))):
            return plus(rest, tiles.total, k)
        cover = tiles.cover
        end = plus(tile_start(self.space, cover, last), tile_size(self.space, cover, last))
        return plus(rest, end, k)

    def _atom(self, atom: Atom, *, upper: bool) -> Linear:
        """The greatest (or least) value of an atom, in outer variables."""
        kind, parts = atom.kind, atom.parts
        if kind is Kind.VAR:
            if not upper:
                return constant(0)
            if parts:
                return parts[0]  # type: ignore[no-any-return]
            if atom.hi is None:
                raise _Unbounded
            return constant(atom.hi)
        if kind is Kind.DIV and not self._in_divisor(parts[1]):
            return self.space.floor_div(self.extreme(parts[0], upper=upper), parts[1])
        if kind is Kind.MOD and not self._in_divisor(parts[1]):
            return self._remainder(parts[0], parts[1], upper=upper)
        if kind is Kind.START:
            last = self.extreme(parts[1], upper=upper)
            return tile_start(self.space, parts[0].cover, last)
        if kind is Kind.SIZE:
            return constant(parts[0].largest if upper else parts[0].smallest)
        if kind is Kind.MIN or kind is Kind.MAX:
            return extreme(self.space, kind, [self.extreme(p, upper=upper) for p in parts])
        if kind is Kind.SELECT:
            both = [self.extreme(p, upper=upper) for p in parts]
            return extreme(self.space, Kind.MAX if upper else Kind.MIN, both)
        if kind is Kind.PRODUCT:
            return self._product(atom, upper=upper)
        raise _Unbounded

    def _in_divisor(self, divisor: int | Linear) -> bool:
        return isinstance(divisor, Linear) and any(self.depends(a) for a in divisor.terms)

    def _remainder(self, x: Linear, divisor: int | Linear, *, upper: bool) -> Linear:
        """The whole range of remainders, or less if the dividend stays in one period."""
        least, most = self.extreme(x, upper=False), self.extreme(x, upper=True)
        first = self.space.floor_div(least, divisor)
        if first.same(self.space.floor_div(most, divisor)):
            by = divisor if isinstance(divisor, Linear) else constant(divisor)
            return plus(most if upper else least, self.space.multiply(first, by), -1)
        if not upper:
            return constant(0)
        return plus(divisor if isinstance(divisor, Linear) else constant(divisor), constant(-1))

    def _product(self, atom: Atom, *, upper: bool) -> Linear:
        swept = [f for f in atom.parts if self.depends(f)]
        others = [f for f in atom.parts if not self.depends(f)]
        if len(swept) != 1 or any(f.lo is None or f.lo < 0 for f in others):
            raise _Unbounded
        return self.space.multiply(self._atom(swept[0], upper=upper), self.space.product(others))
