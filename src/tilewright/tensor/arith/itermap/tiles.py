"""A tile of a cover with its inside, `start(t) + j` with `j < size(t)`, acts as one loop.

The inside may be longer than the tile by the same everywhere: windows that overlap.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tilewright.tensor.arith.itermap.digits import source_extent
from tilewright.tensor.arith.itermap.result import Reason, Refusal
from tilewright.tensor.arith.itermap.system import Leaf, System, Tiled, contains
from tilewright.tensor.arith.linear import Atom, Kind, Linear, constant, plus, scaled
from tilewright.tensor.arith.tiles import start_of, tile_normal, tiling
from tilewright.tensor.ir import Cover, Var

__all__ = ["Tile", "absorb_tile", "absorb_tiles", "tiles_in", "window_fault"]


def absorb_tiles(system: System) -> Refusal | None:
    """Replace tiles with their insides, innermost first, until none is left."""
    while found := list(_tiles(system)):
        leaf, tile = max(found, key=lambda pair: pair[1].inside.depth)
        reason = window_fault(system, tile.more)
        if reason is not None:
            loops = system.loops_in(plus(tile.start, Linear(0, {tile.inside: 1})))
            return Refusal(reason, system.binding_of(leaf.owner), loops)
        absorb_tile(system, tile)
    return None


class Tile(NamedTuple):
    """`start + inside` with an inside as long as a tile of the cover, and `more`."""

    inside: Atom
    start: Linear
    cover: Cover
    tile: Linear
    more: Linear


def absorb_tile(system: System, found: Tile) -> None:
    """Replace a tile with its inside by a variable."""
    tiles = tiling(system.space, found.cover)
    place, length = Linear(0, {found.inside: 1}), _extent(system, found.inside)
    assert length is not None

    def make(var: Var) -> Tiled:
        tile, inside = Leaf(found.tile, tiles.count, var), Leaf(place, length, var)
        return Tiled(found.cover, tile, inside, found.more)

    group = system.group(plus(tiles.total, found.more), make)
    system.replace(plus(found.start, place), group)


def _tiles(system: System) -> Iterator[tuple[Leaf, Tile]]:
    """Each tile with its inside in the system, and the leaf that it is in."""
    for leaf, form in system.forms():
        for tile in tiles_in(system, form):
            yield leaf, tile


def tiles_in(system: System, form: Linear) -> Iterator[Tile]:
    """Each tile with its inside in a form."""
    for inside, k in form.terms.items():
        if k <= 0 or inside.depth < system.first:
            continue
        length = _extent(system, inside)
        size = None if length is None else _only_size(length)
        if length is None or size is None:
            continue
        factor, (tiles, tile) = length.terms[size], size.parts
        # The sizes are in normal form, so what they are multiplied with is their factor.
        start = tile_normal(system.space, scaled(start_of(system.space, size), factor))
        if contains(form, start) == k:
            more = plus(length, Linear(0, {size: factor}), -1)
            cover = Cover(tuple((s * factor, n) for s, n in tiles.cover.segments))
            yield Tile(inside, start, cover, tile, more)


def _extent(system: System, atom: Atom) -> Linear | None:
    """The number of values of a variable or of its upper digits."""
    space = system.space
    if isinstance(atom.expr, Var):
        return source_extent(space, atom.expr)
    if atom.kind is Kind.DIV and isinstance(atom.parts[1], int):
        single = atom.parts[0].single()
        if single is not None and single[1] == 1 and isinstance(single[0].expr, Var):
            whole = source_extent(space, single[0].expr)
            up = space.floor_div(plus(whole, constant(atom.parts[1] - 1)), atom.parts[1])
            return tile_normal(space, up)
    return None


def _only_size(length: Linear) -> Atom | None:
    sizes = [a for a, k in length.terms.items() if a.kind is Kind.SIZE and k > 0]
    return sizes[0] if len(sizes) == 1 else None


def window_fault(system: System, more: Linear) -> Reason | None:
    """Insides must reach the next tile, and be longer than it by the same everywhere."""
    if any(a.depth >= system.first for a in more.terms):
        return Reason.UNKNOWN
    if system.space.never_negative(more):
        return None
    shorter = system.space.never_negative(plus(constant(-1), more, -1))
    return Reason.GAP if shorter else Reason.UNKNOWN
