"""Cut a loop into tiles of one or several sizes, exactly: no guard is ever needed."""

from __future__ import annotations

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.checks import require_serial
from tilewright.schedule.handles import fresh, names_of
from tilewright.schedule.primitive import Edit, primitive
from tilewright.tensor import cover as covers
from tilewright.tensor import ir as tir
from tilewright.tensor.regions import sizes
from tilewright.tensor.visit import free_vars, replace_node, substitute

__all__ = ["Tiles", "split"]

Tiles = int | tuple[tuple[int, int], ...]
"""A tile size, or (tile size, number of tiles) pairs in order."""

S102 = Code("S102", "the tiles do not fill loop `{loop}`")
S103 = Code("S103", "loop `{loop}` cannot be cut into tiles of {found}")
S104 = Code("S104", "the extent of loop `{loop}` differs from tile to tile")


@primitive
def split(func: tir.Func, loop: tir.For, tiles: Tiles) -> Edit:
    """Cut one loop into tiles; a list of (tile size, count) fills the extent exactly.

    A tile size that does not divide the extent leaves one shorter tile at the end, or tiles of one
    where the extent is symbolic. The new loops are called `i_0` (tiles) and `i_1` (inside a tile).

    Before:  for i in range(128): S(i)
    After:   for t in range(22): for j in range(size(t)): S(start(t) + j)     (20×6 + 2×4)
    Requires: S101 the loop is serial; S102 the tiles fill the extent; S103 tiles are not empty;
        S104 the extent does not differ from tile to tile, unless the tile divides every size
    Example: s.split("i", 8); s.split("i", [(6, 20), (4, 2)])
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
    lengths = (tiles,) if isinstance(tiles, int) else tuple(n for pair in tiles for n in pair)
    if not lengths or min(lengths) < 1:
        facts = {"expected": "positive tile sizes and counts", "found": tiles}
        raise ScheduleError(S103, facts, program=func, marks={"loop": loop})
    extent = tir.int_value(loop.extent)
    if isinstance(tiles, int):
        if extent is None and not free_vars(loop.extent) <= set(sizes(func)):
            return _split_of_tile(func, loop, tiles, tile)
        cover = _multiple(loop.extent, tiles) or covers.uniform(loop.extent, tiles)
    else:
        cover = covers.of(*tiles)
        if covers.total(cover) != loop.extent:
            raise _does_not_fill(func, loop, tiles)
    return covers.count(cover), covers.start(cover, tile), covers.size(cover, tile)


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
    raise ScheduleError(
        S104,
        {"expected": "one extent for all tiles", "found": _sizes_text(extent), "tile": size},
        program=func,
        marks={"loop": loop},
        hint="split the micro tile first, then the tile loop: covers are built from the inside out",
    )


def _sizes_text(extent: tir.Expr) -> str:
    if type(extent) is tir.TileSize:
        lengths = dict.fromkeys(str(length) for length, _ in extent.cover.segments)
        return f"tiles of {' and '.join(lengths)}"
    return "an extent that depends on other loops"


def _does_not_fill(
    func: tir.Func, loop: tir.For, tiles: tuple[tuple[int, int], ...]
) -> ScheduleError:
    extent = tir.int_value(loop.extent)
    filled = sum(length * n for length, n in tiles)
    if extent is None:
        facts = {"expected": "one tile size, for an extent that is not a constant"}
        hint = "give one tile size: the cover of a symbolic extent is made from it"
    else:
        facts = {"expected": f"tiles that fill {extent}"}
        rest = extent - filled
        hint = f"add a tile of {rest}" if rest > 0 else f"take {-rest} away from the tiles"
    facts["found"] = f"{' + '.join(f'{n}×{length}' for length, n in tiles)} = {filled}"
    return ScheduleError(S102, facts, program=func, marks={"loop": loop}, hint=hint)
