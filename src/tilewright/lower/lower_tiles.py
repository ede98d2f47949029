"""Tiles of covers as arithmetic: inside a known segment, and for tiles that no loop was cut for.

Inside segment s the size of a tile is a number and its start is linear in the tile number, which is
what `cut_loops` puts in. Where a serial loop runs over a tile nothing needs to be constant, and the
pass at the end of this file writes

    start(t)  →  min(t, n0)*s0 + max(t - n0, 0)*s1        size(t)  →  s0 if t < n0 else s1
"""

from __future__ import annotations

from tilewright.lower import fold, forms
from tilewright.lower.context import Context
from tilewright.lower.forms import Form
from tilewright.lower.simplify import simplified
from tilewright.tensor import cover as covers
from tilewright.tensor import ir as tir
from tilewright.tensor.node import Node
from tilewright.tensor.visit import holds, rewrite

__all__ = ["lower_tiles", "tile_borders", "tile_facts"]


def tile_borders(cover: tir.Cover) -> list[Form]:
    """The tile numbers at which segments begin, without the first."""
    borders: list[Form] = []
    behind: Form = {}
    for _, count in cover.segments[:-1]:
        behind = forms.plus(behind, forms.form_of(count))
        borders.append(behind)
    return borders


def tile_facts(cover: tir.Cover, tile: tir.Expr) -> tuple[dict[tir.Expr, tir.Expr], ...]:
    """For each segment: what size and start of `tile` are inside it."""
    facts: list[dict[tir.Expr, tir.Expr]] = []
    number = forms.form_of(tile)
    begin: Form = {}
    position: Form = {}
    for size, count in cover.segments:
        inside = forms.scaled(forms.minus(number, begin), size)
        start = forms.expr_of(forms.plus(position, inside))
        facts.append(
            {tir.TileSize(cover, tile): tir.Const(size), tir.TileStart(cover, tile): start}
        )
        begin = forms.plus(begin, forms.form_of(count))
        position = forms.plus(position, forms.scaled(forms.form_of(count), size))
    return tuple(facts)


def lower_tiles(func: tir.Func, context: Context) -> tir.Func:
    """Write what is left of tiles as arithmetic."""
    del context
    if not holds(func.body, tir.TileStart, tir.TileSize):
        return func
    return func.with_fields(body=simplified(rewrite(func.body, _arithmetic), func))


def _arithmetic(node: Node) -> Node | None:
    if type(node) is tir.TileStart:
        return _start(node.cover, node.tile)
    if type(node) is tir.TileSize:
        return _size(node.cover, node.tile)
    return None


def _start(cover: tir.Cover, tile: tir.Expr) -> tir.Expr:
    if covers.regular_size(cover) is not None:
        return covers.start(cover, tile)
    total: tir.Expr = tir.Const(0)
    behind: tir.Expr = tir.Const(0)
    for i, (size, count) in enumerate(cover.segments):
        inside = tile if i == 0 else tir.maximum(tile - behind, 0)
        if i < len(cover.segments) - 1:
            inside = tir.minimum(inside, count)
        total = total + inside * size
        behind = behind + count
    return total


def _size(cover: tir.Cover, tile: tir.Expr) -> tir.Expr:
    borders = [forms.expr_of(b) for b in tile_borders(cover)]
    result: tir.Expr = tir.Const(cover.segments[-1][0])
    for border, (size, _) in zip(reversed(borders), reversed(cover.segments[:-1]), strict=True):
        result = tir.Select(fold.fold_binary(tir.Lt, tile, border), tir.Const(size), result)
    return result
