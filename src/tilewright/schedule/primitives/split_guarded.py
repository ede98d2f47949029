"""Cut a loop into tiles of one size, of which the last asks for its iterations."""

from __future__ import annotations

from tilewright.schedule.checks import require_blocks, require_serial
from tilewright.schedule.handles import fresh, names_of
from tilewright.schedule.primitive import Edit, primitive
from tilewright.schedule.primitives.split import is_multiple, require_one_extent, require_tiles
from tilewright.tensor import ir as tir
from tilewright.tensor.node import Node
from tilewright.tensor.visit import map_children, replace_node, substitute

__all__ = ["split_guarded"]


@primitive
def split_guarded(func: tir.Func, loop: tir.For, tile: int) -> Edit:
    """Cut one loop into tiles of one size; a predicate keeps the last one inside of the extent.

    For vectors along a symbolic size: `split` would leave tiles of one, which have no lanes, while
    lowering ends a loop whose body has a condition with vectors in part, or with narrower ones.
    Where the tiles fill the extent for sure, there is no predicate. The new loops are called `i_0`
    (tiles) and `i_1` (inside a tile).

    Before:  for i in range(n): S(i)
    After:   for t in range((n + 7) // 8): for j in range(8): S(t*8 + j) where t*8 + j < n
    Requires: S101 the loop is serial; S103 the tile is not empty; S104 the extent does not differ
        from tile to tile; S111 the loop is around blocks
    Example: s.split_guarded("i", 8)
    """
    require_serial(func, loop)
    require_tiles(func, loop, tile, (tile,))
    require_one_extent(func, loop, tile)
    require_blocks(func, loop)
    names = names_of(func)
    outer = tir.Var(fresh(names, f"{loop.var.name}_0"))
    inner = tir.Var(fresh(names, f"{loop.var.name}_1", outer.name))
    at = outer * tile + inner
    body = substitute(loop.body, {loop.var: at})
    count = (loop.extent + (tile - 1)) // tile
    if is_multiple(loop.extent, tile):
        count = loop.extent // tile
    else:
        body = _guarded(body, at < loop.extent)
    nest = tir.For(outer, count, tir.For(inner, tir.Const(tile), body), notes=loop.notes)
    return Edit(replace_node(func, loop, nest), (outer.name, inner.name))


def _guarded(stmt: tir.Stmt, cond: tir.Expr) -> tir.Stmt:
    """The blocks of a statement run only where the condition holds."""

    def visit(part: Node) -> Node:
        if type(part) is tir.Block:
            whole = part.predicate == tir.TRUE
            return part.with_fields(predicate=cond if whole else part.predicate & cond)
        return map_children(part, visit) if isinstance(part, tir.Stmt) else part

    made = visit(stmt)
    assert isinstance(made, tir.Stmt)
    return made
