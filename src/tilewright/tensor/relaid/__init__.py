"""Programs over stored data: parameters get layouts, and loops follow them.

    Y[n, h, w, o] = Σ X[n, h, w, c]·W[o, c]                for n, h, w, o, c:
    Y[n, o_0, h, w, o_1] = Σ X[n, c_0, h, w, c_1]·W[…]     for n, o_0, h, w, o_1, c_0, c_1:

Here X and Y are stored in blocks of channels. Every access goes through the layout of its buffer
(`moving`). A block that writes element by element is written anew over the dimensions that are
stored, and a sum over a dimension that an operand stores in blocks is taken block by block. Buffers
inside of the program get the layouts that suit their readers (`inner_buffers`), and where data or
results had better be turned as a whole (`turned_parameters`), a stage does that (`stages`). All of
that is only for speed: whatever cannot be written anew keeps its loops, and finds its elements by
the layout.

A layout that stores more than the elements (a border inside of blocks, copies) is written by a
stage of its own behind the program's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from tilewright.tensor import ir as tir
from tilewright.tensor.relaid.inner_buffers import spread
from tilewright.tensor.relaid.moving import Relaying
from tilewright.tensor.relaid.stages import with_buffers, with_copy, with_packing
from tilewright.tensor.relaid.turned_parameters import copied_for, needs_packing
from tilewright.tensor.stored import Layout
from tilewright.tensor.visit import walk_stmts

__all__ = ["relaid", "with_buffers", "with_packing"]


def relaid(
    func: tir.Func,
    layouts: Mapping[tir.Buffer, Layout],
    bordered: Collection[tir.Buffer] = (),
) -> tir.Func:
    """The program with these parameters stored by layouts; the others stay as they are.

    `bordered` will be stored with zeros around them.
    """
    wanted = {buffer: layout for buffer, layout in layouts.items() if layout}
    if not wanted:
        return func
    written = {s.buffer for s in walk_stmts(func) if isinstance(s, tir.Store)}
    for buffer in [b for b in wanted if b in written]:
        if needs_packing(func, buffer, wanted):
            func = with_packing(func, buffer, wanted.pop(buffer))
    for block, load in list(copied_for(func, wanted, bordered)):
        func = with_copy(func, block, load)
    return Relaying(func, spread(func, wanted, bordered)).run()
