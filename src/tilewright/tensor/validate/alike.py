"""Writer and reader that run through the same loops, named differently: nothing to compute.

However irregular the indices are (tiles of several sizes inside tiles), if they are the same but
for the names of loops with the same extents, each iteration of the reader has one of the writer
that writes exactly what it reads.
"""

from __future__ import annotations

from tilewright.tensor import ir as tir
from tilewright.tensor.node import Node
from tilewright.tensor.validate.places import Place
from tilewright.tensor.visit import children, substitute

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
    own = {loop.var: loop for loop in writer.loops[depth:]}
    there = {loop.var: loop for loop in reader.loops[depth:]}
    made, needed = writer.at(written), reader.at(region)
    renamed: dict[tir.Var, tir.Expr] = {}
    _pair(made, needed, own, there, renamed)
    if substitute(made, renamed) != needed:
        return False
    for var, loop in own.items():
        if var not in renamed:
            if (tir.int_value(loop.extent) or 0) < 1:
                return False
        elif substitute(loop.extent, renamed) != there[renamed[var]].extent:  # type: ignore[index]
            return False
    return True


def _pair(
    made: Node,
    needed: Node,
    own: dict[tir.Var, tir.For],
    there: dict[tir.Var, tir.For],
    renamed: dict[tir.Var, tir.Expr],
) -> None:
    """Collect which loop of the reader stands where the writer has one of its own."""
    if isinstance(made, tir.Var):
        if made in own and isinstance(needed, tir.Var) and needed in there:
            renamed.setdefault(made, needed)
    elif type(made) is type(needed):
        for mine, theirs in zip(children(made), children(needed), strict=False):
            _pair(mine, theirs, own, there, renamed)
