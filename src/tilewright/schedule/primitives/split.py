"""Cut a loop into tiles of one or several sizes, exactly: no guard is ever needed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.checks import require_serial
from tilewright.schedule.handles import fresh, names_of
from tilewright.schedule.primitive import Edit, primitive
from tilewright.tensor import cover as covers
from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.regions import sizes
from tilewright.tensor.visit import free_vars, replace_node, substitute

__all__ = ["Tiles", "is_multiple", "require_one_extent", "require_tiles", "split"]

Tiles = int | tuple[int, ...] | tuple[tuple[int, int], ...]
"""A tile size, tile sizes from large to small, or (tile size, number of tiles) pairs in order."""

S102 = Code("S102", "the tiles do not fill loop `{loop}`")
S103 = Code("S103", "loop `{loop}` cannot be cut into tiles of {found}")
S104 = Code("S104", "the extent of loop `{loop}` differs from tile to tile")


@primitive
def split(func: tir.Func, loop: tir.For, tiles: Tiles) -> Edit:
    """Cut one loop into tiles; a list of (tile size, count) fills the extent exactly.

    A tile size that does not divide the extent leaves one shorter tile at the end, or tiles of one
    where the extent is symbolic. A list of sizes takes as many of each as fit in what is left: `n`
    by [8, 4, 1], or `n * 4` by [8, 4]. The new loops are called `i_0` (tiles) and `i_1` (inside a
    tile).

    Before:  for i in range(128): S(i)
    After:   for t in range(22): for j in range(size(t)): S(start(t) + j)     (20×6 + 2×4)
    Requires: S101 the loop is serial; S102 the tiles fill the extent; S103 tiles are not empty;
        S104 the extent does not differ from tile to tile, unless the tile divides every size
    Example: s.split("i", 8); s.split("i", [(6, 20), (4, 2)]); s.split("i", [8, 4, 1])
    """
    require_serial(func, loop)
    names = names_of(func)
    outer = tir.Var(fresh(names, f"{loop.var.name}_0"))
    inner = tir.Var(fresh(names, f"{loop.var.name}_1", outer.name))
    count, start, size = _tiling(func, loop, tiles, outer)
    body = substitute(loop.body, {loop.var: start + inner})
    nest = tir.For(outer, count, tir.For(inner, size, body), notes=loop.notes)
    return Edit(replace_node(func, loop, nest), (outer.name, inner.name))


def _tiling(
    func: tir.Func, loop: tir.For, tiles: Tiles, tile: tir.Var
) -> tuple[tir.Expr, tir.Expr, tir.Expr]:
    """The number of tiles, where tile number `tile` starts, and how long it is."""
    lengths = tuple(_numbers(tiles))
    require_tiles(func, loop, tiles, lengths)
    extent = tir.int_value(loop.extent)
    if isinstance(tiles, int):
        if extent is None and not free_vars(loop.extent) <= set(sizes(func)):
            return _split_of_tile(func, loop, tiles, tile)
        cover = _multiple(loop.extent, tiles) or _tidy(covers.uniform(loop.extent, tiles))
    elif isinstance(tiles[0], int):
        cover = _descending(func, loop, lengths)
    else:
        cover = covers.of(*zip(lengths[::2], lengths[1::2], strict=True))
        if covers.total(cover) != loop.extent:
            raise _does_not_fill(func, loop, cover)
    return covers.count(cover), covers.start(cover, tile), covers.size(cover, tile)


def require_tiles(func: tir.Func, loop: tir.For, tiles: Tiles, lengths: tuple[int, ...]) -> None:
    """S103: there are tiles, and none is empty."""
    if not lengths or min(lengths) < 1:
        facts = {"expected": "positive tile sizes and counts", "found": tiles}
        hint = (
            "give a tile size of 1 or more, or (tile size, number of tiles) pairs of such numbers"
        )
        raise ScheduleError(S103, facts, program=func, marks={"loop": loop}, hint=hint)


def require_one_extent(func: tir.Func, loop: tir.For, size: int) -> None:
    """S104: the extent is a number or a size."""
    if not free_vars(loop.extent) <= set(sizes(func)):
        raise _differs(func, loop, size)


def _numbers(tiles: Tiles) -> Iterator[int]:
    for part in (tiles,) if isinstance(tiles, int) else tiles:
        yield from (part,) if isinstance(part, int) else part


def _descending(func: tir.Func, loop: tir.For, lengths: tuple[int, ...]) -> tir.Cover:
    """The cover by sizes from large to small, of an extent that is a number or a size."""
    extent = tir.int_value(loop.extent)
    if any(small >= large for large, small in pairwise(lengths)):
        facts = {"expected": "tile sizes from large to small", "found": lengths}
        hint = f"say {sorted(set(lengths), reverse=True)}"
        raise ScheduleError(S103, facts, program=func, marks={"loop": loop}, hint=hint)
    require_one_extent(func, loop, lengths[0])
    cover = _tidy(covers.descending(loop.extent, lengths))
    if extent is None:
        fills = is_multiple(loop.extent, lengths[-1])
    else:
        fills = covers.total(cover) == loop.extent
    if not fills:
        raise _does_not_fill(func, loop, cover)
    return cover


def is_multiple(extent: tir.Expr, size: int) -> bool:
    """Whether tiles of this size surely fill the extent: `(n + 7) // 8 * 8` by 8."""
    return size == 1 or Analyzer().prove((extent % size).eq(0)) is True


def _tidy(cover: tir.Cover) -> tir.Cover:
    """The cover in its simplest form, which it keeps: `n * 4` by 6, 4, 2 and 1 has no odd tile."""
    if all(type(count) is tir.Const for _, count in cover.segments):
        return cover
    simplify = Analyzer().simplify
    return covers.of(*((size, simplify(count)) for size, count in cover.segments))


def _multiple(extent: tir.Expr, size: int) -> tir.Cover | None:
    """The cover of an extent that is plainly a multiple of the tile: `n * 16` by 8."""
    if type(extent) is tir.Mul:
        factor = tir.int_value(extent.b)
        if factor is not None and factor % size == 0:
            return covers.of((size, extent.a * (factor // size)))
    return None


def _split_of_tile(
    func: tir.Func, loop: tir.For, size: int, tile: tir.Var
) -> tuple[tir.Expr, tir.Expr, tir.Expr]:
    """Cut a loop that runs inside tiles of several sizes, where `size` divides all of them."""
    extent = loop.extent
    if type(extent) is tir.TileSize:
        segments = extent.cover.segments
        if all(length % size == 0 for length, _ in segments):
            halves = tir.Cover(tuple((length // size, n) for length, n in segments))
            return tir.TileSize(halves, extent.tile), tile * size, tir.Const(size)
        if all(length <= size for length, _ in segments):
            return tir.Const(1), tir.Const(0), extent
    raise _differs(func, loop, size)


def _differs(func: tir.Func, loop: tir.For, size: int) -> ScheduleError:
    facts = {
        "expected": "one extent for all tiles",
        "found": _sizes_text(loop.extent),
        "tile": size,
    }
    hint = "split the micro tile first, then the tile loop: covers are built from the inside out"
    return ScheduleError(S104, facts, program=func, marks={"loop": loop}, hint=hint)


def _sizes_text(extent: tir.Expr) -> str:
    if type(extent) is tir.TileSize:
        lengths = dict.fromkeys(str(length) for length, _ in extent.cover.segments)
        return f"tiles of {' and '.join(lengths)}"
    return "an extent that depends on other loops"


def _does_not_fill(func: tir.Func, loop: tir.For, cover: tir.Cover) -> ScheduleError:
    extent, filled = tir.int_value(loop.extent), tir.int_value(covers.total(cover))
    if extent is None or filled is None:
        found = " and ".join(str(length) for length, _ in cover.segments)
        facts = {"expected": "tiles that fill any extent", "found": f"tiles of {found}"}
        hint = (
            "give one tile size, or sizes from large to small whose last fills any rest, as 1 does"
        )
    else:
        rest = extent - filled
        parts = [f"{tir.int_value(n)}×{length}" for length, n in cover.segments]
        found = f"{' + '.join(parts)} = {filled}"
        facts = {"expected": f"tiles that fill {extent}", "found": found}
        hint = f"add a tile of {rest}" if rest > 0 else f"take {-rest} away from the tiles"
    return ScheduleError(S102, facts, program=func, marks={"loop": loop}, hint=hint)
