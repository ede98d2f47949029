"""Covers: exact tilings of an extent by tiles of a few sizes.

`start` and `size` of a tile are plain arithmetic wherever the cover is regular (one size, or a last
tile that is merely shorter), so that most programs never see a `TileStart`. A cover with several
sizes is a bijection between (tile, position in tile) and position, which is what the iterator-map
algebra relies on; lowering cuts the tile loop at the segment borders.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from tilewright.dtypes import DType, index
from tilewright.tensor.expr import Const, Expr, as_index, int_value
from tilewright.tensor.node import Node, node

__all__ = [
    "Cover",
    "TileSize",
    "TileStart",
    "count",
    "descending",
    "of",
    "regular_size",
    "size",
    "start",
    "total",
    "uneven",
    "uniform",
]


@node
class Cover(Node):
    """Tiles that fill an extent exactly: `segments` of (tile size, number of tiles), in order.

    `128 = 21×6 + 1×2` is `Cover(((6, 21), (2, 1)))` with the counts as expressions, which may
    depend on symbolic sizes.
    """

    segments: tuple[tuple[int, Expr], ...]


@node
class TileStart(Expr):
    """Where tile number `tile` of a cover of several sizes begins."""

    cover: Cover
    tile: Expr
    dtype: ClassVar[DType] = index  # type: ignore[misc]


@node
class TileSize(Expr):
    """How long tile number `tile` of a cover of several sizes is."""

    cover: Cover
    tile: Expr
    dtype: ClassVar[DType] = index  # type: ignore[misc]


def of(*segments: tuple[int, int | Expr]) -> Cover:
    """A cover from (tile size, number of tiles) pairs; empty segments are dropped."""
    kept = tuple((size, as_index(n)) for size, n in segments if int_value(as_index(n)) != 0)
    if any(size <= 0 or (int_value(n) or 0) < 0 for size, n in kept):
        raise ValueError(f"a cover needs positive tile sizes and counts, found {segments}")
    return Cover(_merged(kept))


def uniform(extent: Expr | int, tile: int) -> Cover:
    """Tiles of one size and, if it does not divide a known extent, one shorter tile at the end.

    A symbolic extent is filled up with tiles of size one: every size stays a constant.
    """
    known = int_value(as_index(extent))
    if known is not None:
        return of((tile, known // tile), (max(known % tile, 1), 1 if known % tile else 0))
    return descending(extent, (tile, 1))


def descending(extent: Expr | int, tiles: Sequence[int]) -> Cover:
    """As many tiles of the first size as fit, then of the next one in what is left, and so on.

    `n` by 6, 4 and 1 is n//6 tiles of 6, n%6//4 of 4 and n%6%4 of 1. The last size must divide what
    is left for it, which size one always does.
    """
    rest = as_index(extent)
    segments: list[tuple[int, Expr]] = []
    for tile in tiles:
        segments.append((tile, rest // tile if tile > 1 else rest))
        rest = rest % tile if tile > 1 else Const(0)
    return of(*segments)


def uneven(extent: int, largest: int) -> Cover:
    """The fewest tiles no larger than `largest`, as equal as possible: 10 by 6 is 2×5, not 6+4."""
    tiles = -(-extent // largest)
    small, larger = divmod(extent, tiles) if tiles else (0, 0)
    return of((small + 1, larger), (max(small, 1), tiles - larger if small else 0))


def _merged(segments: Iterable[tuple[int, Expr]]) -> tuple[tuple[int, Expr], ...]:
    merged: list[tuple[int, Expr]] = []
    for tile, n in segments:
        if merged and merged[-1][0] == tile:
            merged[-1] = (tile, merged[-1][1] + n)
        else:
            merged.append((tile, n))
    return tuple(merged)


def count(cover: Cover) -> Expr:
    """The number of tiles."""
    result: Expr = Const(0)
    for _, n in cover.segments:
        result = result + n
    return result


def total(cover: Cover) -> Expr:
    """The extent that the tiles fill."""
    result: Expr = Const(0)
    for tile, n in cover.segments:
        result = result + n * tile
    return result


def regular_size(cover: Cover) -> int | None:
    """The distance of tile starts, if it is the same everywhere; else None."""
    if len(cover.segments) == 0:
        return 1
    first, rest = cover.segments[0], cover.segments[1:]
    if not rest:
        return first[0]
    if len(rest) == 1 and int_value(rest[0][1]) == 1:
        return first[0]
    return None


def start(cover: Cover, tile: Expr) -> Expr:
    """Position of the first element of tile number `tile`."""
    step = regular_size(cover)
    if step is not None:
        return tile * step
    known = int_value(tile)
    return (
        as_index(_numbers(cover, known)[0]) if _is_known(cover, known) else TileStart(cover, tile)
    )


def size(cover: Cover, tile: Expr) -> Expr:
    """Length of tile number `tile`."""
    if len(cover.segments) <= 1:
        return Const(cover.segments[0][0] if cover.segments else 1)
    known = int_value(tile)
    return as_index(_numbers(cover, known)[1]) if _is_known(cover, known) else TileSize(cover, tile)


def _is_known(cover: Cover, tile: int | None) -> bool:
    return tile is not None and all(int_value(n) is not None for _, n in cover.segments)


def _numbers(cover: Cover, tile: int | None) -> tuple[int, int]:
    """(start, size) of a tile of a constant cover; beyond the last tile, the last size goes on."""
    assert tile is not None
    position = 0
    for length, n in cover.segments:
        here = int_value(n)
        assert here is not None
        if tile < here:
            return position + tile * length, length
        position, tile = position + here * length, tile - here
    return position + tile * cover.segments[-1][0], cover.segments[-1][0]
