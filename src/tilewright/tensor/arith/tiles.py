"""Starts and sizes of tiles: `TileStart(cover, t)` and `TileSize(cover, t)`.

A cover of several sizes is piecewise linear in the tile number. Where the bounds put the tile into
one segment the node becomes plain arithmetic; elsewhere it stays, with bounds from both ends.
Assumed: no count of a segment is negative, and tile numbers are real ones (for a start, the end of
the last tile is allowed too); for other numbers the simplified value may differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

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
from tilewright.tensor.arith.space import Ends, Space, order_of
from tilewright.tensor.ir import Cover, Expr, TileSize, TileStart

__all__ = ["Tiling", "divided", "start_bounds", "start_of"]
__all__ += ["tile_end", "tile_normal", "tile_size", "tile_start", "tile_step", "tiling"]


class Tiling:
    """A cover seen from a space: simplified, without empty segments, and with its sums.

    `ends` are the numbers of the tiles at which segments end, if all counts are constant.
    """

    __slots__ = (
        "_smaller",
        "count",
        "cover",
        "ends",
        "factor",
        "largest",
        "segments",
        "smallest",
        "total",
    )

    def __init__(self, space: Space, cover: Cover) -> None:
        pairs = [(size, space.linear(n), n) for size, n in cover.segments]
        kept = [pair for pair in pairs if pair[1].terms or pair[1].const > 0]
        self.segments = [(size, n) for size, n, _ in kept]
        self.total = self.count = constant(0)
        ends: list[int] = []
        for size, n in self.segments:
            self.count, self.total = plus(self.count, n), plus(self.total, n, size)
            ends.append(self.count.const)
        self.ends = None if self.count.terms else ends
        sizes = [size for size, _ in self.segments] or [1]
        self.smallest, self.largest, self.factor = min(sizes), max(sizes), gcd(*sizes)
        parts = [(size, expression(n, old)) for size, n, old in kept]
        same = len(kept) == len(pairs) and all(
            new is old for (_, new), (*_, old) in zip(parts, pairs, strict=True)
        )
        self.cover = cover if same else Cover(tuple(parts))
        self._smaller: dict[int, Cover] = {}

    def order(self) -> tuple[object, ...]:
        """A key that orders tilings of one space."""
        return tuple((size, order_of(n)) for size, n in self.segments)

    def divided(self, factor: int) -> Cover:
        """The cover with all sizes divided by a common factor of them."""
        found = self._smaller.get(factor)
        if found is None:
            segments = tuple((size // factor, n) for size, n in self.cover.segments)
            found = self._smaller[factor] = Cover(segments)
        return found

    def holds(self, space: Space, tile: Linear) -> bool:
        """Whether `tile` is provably below the number of tiles."""
        return space.never_negative(plus(plus(self.count, constant(-1)), tile, -1))

    def segment_of(
        self, space: Space, tile: Linear, *, slack: int
    ) -> tuple[int, Linear, Linear] | None:
        """(size, number of its first tile, its position) of the one segment that holds `tile`.

        With `slack` 1 the tile may be one past the segment's end: starts agree there.
        """
        if self.ends is not None and self._is_split(space, tile, slack):
            return None
        first, position = constant(0), constant(0)
        if not self.segments:
            return 1, first, position
        final = len(self.segments) - 1
        for n, (size, count) in enumerate(self.segments):
            end = plus(first, count)
            if n == final or space.never_negative(plus(plus(end, constant(slack - 1)), tile, -1)):
                begun = n == 0 or space.never_negative(plus(tile, first, -1))
                return (size, first, position) if begun else None
            first, position = end, plus(position, count, size)
        return None

    def _is_split(self, space: Space, tile: Linear, slack: int) -> bool:
        """Whether independent variables take the tile over the end of a segment, plainly."""
        if space.facts or any(a.kind is not Kind.VAR or a.parts for a in tile.terms):
            return False
        lo, hi = low(tile.const, tile.terms), high(tile.const, tile.terms)
        if lo is None or hi is None or self.ends is None:
            return False
        return any(lo < end < hi + 1 - slack for end in self.ends[:-1])

    def start_at(self, tile: int | None, *, upper: bool) -> int | None:
        """A bound for the start of a tile that is at most (at least) `tile`."""
        if tile is None:
            return None
        if self.ends is None:
            return tile * (self.largest if upper else self.smallest)
        position, left = 0, tile
        for size, count in self.segments:
            if left < count.const:
                return position + left * size
            position, left = position + count.const * size, left - count.const
        return position

    def sizes_between(self, lo: int | None, hi: int | None) -> list[int]:
        """Sizes of the segments that tiles from `lo` to `hi` may be in."""
        first, sizes = constant(0), []
        for size, count in self.segments:
            end = plus(first, count)
            most, least = high(end.const, end.terms), low(first.const, first.terms)
            passed = lo is not None and most is not None and most <= lo
            ahead = hi is not None and least is not None and hi < least
            if not passed and not ahead:
                sizes.append(size)
            first = end
        return sizes or [size for size, _ in self.segments]


def tiling(space: Space, cover: Cover) -> Tiling:
    """The tiling of a cover, made once for each cover of a space."""
    found = space.tilings.get(id(cover))
    if found is None:
        found = space.tilings.get(cover)
        if found is None:
            found = space.tilings[cover] = Tiling(space, cover)
        space.tilings[id(cover)] = found
        space.tilings[id(cover), "alive"] = cover
    assert isinstance(found, Tiling)
    return found


def tile_start(space: Space, cover: Cover, tile: Linear, like: Expr | None = None) -> Linear:
    """Where tile number `tile` begins."""
    return _start(space, tiling(space, cover), tile, like)


def _start(space: Space, tiles: Tiling, tile: Linear, like: Expr | None = None) -> Linear:
    found = tiles.segment_of(space, tile, slack=1)
    if found is not None:
        size, first, position = found
        return plus(position, plus(tile, first, -1), size)

    def bounds() -> Ends:
        least = tiles.start_at(low(tile.const, tile.terms), upper=False)
        most = tiles.start_at(high(tile.const, tile.terms), upper=True)
        whole = high(tiles.total.const, tiles.total.terms)
        ends = [end for end in (most, whole) if end is not None]
        return max(least or 0, 0), min(ends) if ends else None

    def build() -> Expr:
        return _rebuilt(TileStart, tiles.cover, tile, like)

    return space.atom(Kind.START, (tiles, tile), (tiles, tile.key()), bounds, build)


def tile_size(space: Space, cover: Cover, tile: Linear, like: Expr | None = None) -> Linear:
    """How long tile number `tile` is."""
    return _size(space, tiling(space, cover), tile, like)


def _size(space: Space, tiles: Tiling, tile: Linear, like: Expr | None = None) -> Linear:
    found = tiles.segment_of(space, tile, slack=0)
    if found is not None:
        return constant(found[0])

    def bounds() -> Ends:
        lo, hi = low(tile.const, tile.terms), high(tile.const, tile.terms)
        sizes = tiles.sizes_between(lo, hi)
        return min(sizes), max(sizes)

    def build() -> Expr:
        return _rebuilt(TileSize, tiles.cover, tile, like)

    return space.atom(Kind.SIZE, (tiles, tile), (tiles, tile.key()), bounds, build)


def _rebuilt(
    kind: type[TileStart | TileSize], cover: Cover, tile: Linear, like: Expr | None
) -> Expr:
    old = like if isinstance(like, kind) else None
    number = expression(tile, None if old is None else old.tile)
    if old is not None and old.tile is number and (old.cover is cover or old.cover == cover):
        return old
    return kind(cover, number)


def start_bounds(space: Space, atom: Atom, *, upper: bool) -> Iterator[Linear]:
    """Symbolic bounds of a tile's start: by the tile's number, and by the whole extent."""
    tiles, tile = atom.parts
    if space.never_negative(tile):
        yield scaled(tile, tiles.largest if upper else tiles.smallest)
    if upper and tiles.holds(space, tile):
        yield plus(tiles.total, constant(-tiles.smallest))


def start_of(space: Space, size: Atom) -> Linear:
    """Where the tile begins whose size this is."""
    return _start(space, *size.parts)


def tile_end(space: Space, form: Linear) -> Linear | None:
    """Replace −k·(start + size) of one tile by −k·total: no tile ends behind the extent."""
    for atom, k in form.terms.items():
        if atom.kind is not Kind.SIZE or k >= 0:
            continue
        tiles, tile = atom.parts
        start = start_of(space, atom)
        held = all(form.terms.get(a, 0) * q * k >= q * q * k * k for a, q in start.terms.items())
        if held and tiles.holds(space, tile):
            end = plus(start, Linear(0, {atom: 1}))
            return plus(plus(form, end, -k), tiles.total, k)
    return None


def tile_step(space: Space, form: Linear) -> Linear | None:
    """Replace size(t) by start(t + 1) - start(t), if neither start is new in the form."""
    for atom, k in form.terms.items():
        if atom.kind is not Kind.SIZE:
            continue
        tiles, tile = atom.parts
        further, start = _start(space, tiles, plus(tile, constant(1))), start_of(space, atom)
        atoms = (*further.terms, *start.terms)
        if all(a.kind is not Kind.START or a in form.terms for a in atoms):
            length = plus(further, start, -1)
            return plus(plus(form, Linear(0, {atom: k}), -1), length, k)
    return None


def divided(space: Space, atom: Atom, k: int, c: int) -> Linear | None:
    """`k · atom / c` for a start or size, if the sizes of the cover make it whole."""
    tiles, tile = atom.parts
    if k * tiles.factor % c:
        return None
    g = gcd(tiles.factor, c)
    part = tile_start if atom.kind is Kind.START else tile_size
    return scaled(part(space, tiles.divided(g), tile), k * g // c)


def tile_normal(space: Space, form: Linear) -> Linear:
    """Starts and sizes of tiles with the common factor of the tile sizes taken out, everywhere."""
    result = form
    for atom, k in form.terms.items():
        if atom.kind is Kind.VAR:
            continue
        new = _normal_atom(space, atom)
        if new is not None:
            result = plus(plus(result, Linear(0, {atom: k}), -1), new, k)
    return result


def _normal_atom(space: Space, atom: Atom) -> Linear | None:
    """The atom in normal form; None if it is that already."""
    if atom.kind is Kind.START or atom.kind is Kind.SIZE:
        factor = atom.parts[0].factor
        smaller = divided(space, atom, 1, factor) if factor > 1 else None
        return None if smaller is None else scaled(smaller, factor)
    if atom.kind is Kind.DIV or atom.kind is Kind.MOD:
        dividend, divisor = atom.parts
        normal = tile_normal(space, dividend)
        if normal is not dividend:
            divide = space.floor_div if atom.kind is Kind.DIV else space.floor_mod
            return divide(normal, divisor)
    return None
