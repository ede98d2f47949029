"""Writer and reader that run through the same loops, named differently: nothing to compute.

However irregular the indices are (tiles of several sizes inside tiles), if they are the same but
for the names of loops with the same extents, each iteration of the reader has one of the writer
that writes exactly what it reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.tensor import ir as tir
from tilewright.tensor.node import Node
from tilewright.tensor.validate.places import Place
from tilewright.tensor.visit import free_vars

__all__ = ["walk_alike"]


def walk_alike(
    writer: Place, written: tir.Region, reader: Place, region: tir.Region, depth: int
) -> bool:
    """Is `region` what the writer writes, with its own loops renamed to loops of the reader?

    The first `depth` loops stand still. A loop of the writer that does not appear in the indices
    must run at least once.
    """
    if writer.block.predicate != tir.TRUE:
        return False
    own = {loop.var: loop.extent for loop in writer.loops[depth:]}
    there = {loop.var: loop.extent for loop in reader.loops[depth:]}
    renamed: dict[tir.Var, tir.Var] = {}
    if not _alike(writer.at(written).ranges, reader.at(region).ranges, own, there, renamed):
        return False
    for var, extent in reversed(own.items()):  # extents mention loops further out
        other = renamed.get(var)
        if other is None:
            if (tir.int_value(extent) or 0) < 1:
                return False
        elif not _alike(extent, there[other], own, there, renamed):
            return False
    return True


Extents = Mapping[tir.Var, tir.Expr]


def _alike(
    made: Any, needed: Any, own: Extents, there: Extents, renamed: dict[tir.Var, tir.Var]
) -> bool:
    """Are the two the same but for loops of their own, each renamed to one?"""
    kind = type(made)
    if kind is tir.Var:
        if made not in own:
            return made is needed
        return needed in there and renamed.setdefault(made, needed) is needed
    if kind is tuple:
        pairs = zip(made, needed, strict=True)
        return all(_alike(a, b, own, there, renamed) for a, b in pairs)
    if kind is tir.Const or not isinstance(made, Node):
        return bool(made == needed)
    if made is needed:
        return own.keys().isdisjoint(free_vars(made))
    return kind is type(needed) and all(
        _alike(getattr(made, name), getattr(needed, name), own, there, renamed)
        for name in made.fields
    )
