"""Starts and sizes of tiles: `TileStart(cover, t)` and `TileSize(cover, t)`.

A cover of several sizes is piecewise linear in the tile number. Where the bounds put the tile into
one segment the node becomes plain arithmetic; elsewhere it stays, with bounds from both ends. The
number of tiles of a segment is never negative; beyond the last tile the last size goes on.
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
from tilewright.tensor.arith.space import Space
from tilewright.tensor.expr import Cover, Expr, TileSize, TileStart

__all__ = ["divisible_start", "start_bounds", "tile_end", "tile_size", "tile_start", "total"]


def _segments(space: Space, cover: Cover) -> list[tuple[int, Linear]]:
    """(size, count) with simplified counts, empty segments left out."""
    pairs = [(size, space.linear(count)) for size, count in cover.segments]
    return [(size, n) for size, n in pairs if n.terms or n.const > 0]


def total(space: Space, cover: Cover) -> Linear:
    """The extent that the tiles fill."""
    result = constant(0)
    for size, count in _segments(space, cover):
        result = plus(result, count, size)
    return result


def _simplified(space: Space, cover: Cover) -> Cover:
    """The cover with simplified counts; the same object if they are simple."""
    parts: list[tuple[int, Expr]] = []
    for size, count in cover.segments:
        form = space.linear(count)
        if form.terms or form.const > 0:
            parts.append((size, expression(form, count)))
    same = len(parts) == len(cover.segments) and all(
        new is old for (_, new), (_, old) in zip(parts, cover.segments, strict=True)
    )
    return cover if same else Cover(tuple(parts))


def tile_start(space: Space, cover: Cover, tile: Linear, like: Expr | None = None) -> Linear:
    """Where tile number `tile` begins."""
    found = _segment_of(space, cover, tile, slack=1)
    if found is not None:
        size, first, position = found
        return plus(position, plus(tile, first, -1), size)
    cover = _simplified(space, cover)

    def build() -> Expr:
        return _rebuilt(TileStart, cover, tile, like)

    def bounds() -> tuple[int | None, int | None]:
        sizes = [size for size, _ in cover.segments]
        lo, hi = low(tile.const, tile.terms), high(tile.const, tile.terms)
        return _start_at(space, cover, lo, min(sizes)), _start_at(space, cover, hi, max(sizes))

    return space.atom(Kind.START, (cover, tile), (cover, tile.key()), bounds, build)


def tile_size(space: Space, cover: Cover, tile: Linear, like: Expr | None = None) -> Linear:
    """How long tile number `tile` is."""
    found = _segment_of(space, cover, tile, slack=0)
    if found is not None:
        return constant(found[0])
    cover = _simplified(space, cover)

    def build() -> Expr:
        return _rebuilt(TileSize, cover, tile, like)

    def bounds() -> tuple[int | None, int | None]:
        sizes = _reachable_sizes(space, cover, tile)
        return min(sizes), max(sizes)

    return space.atom(Kind.SIZE, (cover, tile), (cover, tile.key()), bounds, build)


def _rebuilt(
    kind: type[TileStart | TileSize], cover: Cover, tile: Linear, like: Expr | None
) -> Expr:
    old = like if isinstance(like, kind) else None
    number = expression(tile, None if old is None else old.tile)
    if old is not None and old.cover == cover and old.tile is number:
        return old
    return kind(cover, number)


def _segment_of(
    space: Space, cover: Cover, tile: Linear, *, slack: int
) -> tuple[int, Linear, Linear] | None:
    """(size, number of its first tile, its position) of the segment that holds `tile`, if known.

    With `slack` 1 the tile may be one past the segment's end: starts agree there.
    """
    first, position = constant(0), constant(0)
    segments = _segments(space, cover)
    if not segments:
        return 1, first, position
    for n, (size, count) in enumerate(segments):
        end = plus(first, count)
        last = n == len(segments) - 1
        if last or space.never_negative(plus(plus(end, constant(slack - 1)), tile, -1)):
            starts_here = n == 0 or space.never_negative(plus(tile, first, -1))
            if starts_here:
                return size, first, position
            return None
        first, position = end, plus(position, count, size)
    return None


def _reachable_sizes(space: Space, cover: Cover, tile: Linear) -> list[int]:
    """Sizes of the segments that `tile` may be in, by constant bounds."""
    lo, hi = low(tile.const, tile.terms), high(tile.const, tile.terms)
    first: Linear = constant(0)
    sizes: list[int] = []
    segments = _segments(space, cover)
    for n, (size, count) in enumerate(segments):
        end = plus(first, count)
        most, least = high(end.const, end.terms), low(first.const, first.terms)
        before = lo is not None and most is not None and most <= lo and n < len(segments) - 1
        behind = hi is not None and least is not None and hi < least and n > 0
        if not before and not behind:
            sizes.append(size)
        first = end
    return sizes or [size for size, _ in segments]


def _start_at(space: Space, cover: Cover, tile: int | None, size: int) -> int | None:
    """The start of a known tile; for symbolic counts the bound that `size` per tile gives."""
    if tile is None:
        return None
    position = 0
    segments = _segments(space, cover)
    if any(count.terms for _, count in segments):
        return tile * size if tile >= 0 else None
    left = tile
    for n, (length, count) in enumerate(segments):
        if left < count.const or n == len(segments) - 1:
            return position + left * length
        position, left = position + count.const * length, left - count.const
    return position


def start_bounds(space: Space, atom: Atom, *, upper: bool) -> Iterator[Linear]:
    """Symbolic bounds of a tile's start: by the tile's number, and by the whole extent."""
    cover, tile = atom.parts
    assert isinstance(cover, Cover)
    assert isinstance(tile, Linear)
    sizes = [size for size, _ in cover.segments]
    if space.never_negative(tile):
        yield scaled(tile, max(sizes) if upper else min(sizes))
    if upper and _is_a_tile(space, cover, tile):
        yield plus(total(space, cover), constant(-min(sizes)))


def _is_a_tile(space: Space, cover: Cover, tile: Linear) -> bool:
    count = constant(0)
    for _, n in _segments(space, cover):
        count = plus(count, n)
    return space.never_negative(plus(plus(count, constant(-1)), tile, -1))


def tile_end(space: Space, form: Linear) -> Linear | None:
    """Replace −k·(start + size) of one tile by −k·total: no tile ends behind the extent."""
    for atom, k in form.terms.items():
        if atom.kind is not Kind.START or k >= 0:
            continue
        cover, tile = atom.parts
        assert isinstance(cover, Cover)
        assert isinstance(tile, Linear)
        size = tile_size(space, cover, tile).single()
        if size is None or form.terms.get(size[0]) != k or not _is_a_tile(space, cover, tile):
            continue
        rest = {a: q for a, q in form.terms.items() if a is not atom and a is not size[0]}
        return plus(Linear(form.const, rest), total(space, cover), k)
    return None


def divisible_start(space: Space, atom: Atom, k: int, c: int) -> Linear | None:
    """`k · start / c` as a form, if the sizes of the cover make it whole."""
    cover, tile = atom.parts
    assert isinstance(cover, Cover)
    assert isinstance(tile, Linear)
    g = gcd(*(size for size, _ in cover.segments))
    if k * g % c:
        return None
    g = gcd(g, c)
    smaller = Cover(tuple((size // g, count) for size, count in cover.segments))
    return scaled(tile_start(space, smaller, tile), k * g // c)
