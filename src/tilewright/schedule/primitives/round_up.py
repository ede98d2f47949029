"""Let a block compute a few elements more than anyone reads, so that its tiles are full."""

from __future__ import annotations

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.checks import require_serial, require_sole_block
from tilewright.schedule.dataflow import Outline
from tilewright.schedule.nests import loops_around, replace_buffer
from tilewright.schedule.primitive import Edit, primitive
from tilewright.schedule.rounding import clamped, rounded_up
from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.regions import block_regions
from tilewright.tensor.visit import free_vars, replace_node

__all__ = ["round_up"]

S272 = Code("S272", "block `{block}` has no spatial iterator `{iterator}`")
S273 = Code("S273", "`{buffer}` has no dimension that iterator `{iterator}` alone runs along")
S274 = Code("S274", "{multiple} is not a number to round up to")
S275 = Code("S275", "iterator `{iterator}` of block `{block}` is not a loop of its own")
S276 = Code("S276", "the layout of `{buffer}` has been changed already")


@primitive
def round_up(func: tir.Func, block: tir.Block, iterator: str, multiple: int) -> Edit:
    """Enlarge the extent of a spatial iterator, and the result with it, to a multiple.

    Nothing reads the elements that are added. Where an input is too short for them, its last
    element along the iterator is read again, so that no index leaves a buffer and no value appears
    that was not there before. It costs some arithmetic and saves every test and every short tile.

    Before:  for i in range(n): T[i] = f(A[i])
             for i in range(n): C[i] = T[i]
    After:   for i in range((n + 7) // 8 * 8): T[i] = f(A[min(i, n - 1)])
             for i in range(n): C[i] = T[i]                                   (multiple = 8)
    Requires: S201 the block is not inside another block; S202 it writes no output; S203 it is the
        only writer of its buffer; S272 it has this spatial iterator; S273 the iterator is a
        dimension of the result by itself; S274 the multiple is positive; S275 the iterator is a
        loop of its own; S101 this loop is serial; S260 no other block is in it; S276 the result is
        stored as it was written in the program
    Example: s.round_up("T", "vi", 8)
    """
    outline = Outline(func)
    place = outline.place(block)
    it = _iterator(func, block, iterator)
    if multiple < 1:
        facts = {"multiple": multiple, "expected": "1 or more"}
        hint = "give the number of iterations that a tile has"
        raise ScheduleError(S274, facts, program=func, marks={"block": block}, hint=hint)
    buffer, dim = _dimension(func, block, it)
    outline.require_intermediate(buffer)
    outline.require_sole_writer(place, buffer)
    loop = _loop(func, block, it)
    extent = tir.int_value(it.extent)
    if extent is not None and extent % multiple == 0:
        return Edit(func)
    larger = rounded_up(it.extent, multiple)
    iters = tuple([i.with_fields(extent=larger) if i is it else i for i in block.iters])
    grown = Analyzer({i.var: i.extent for i in iters})
    body = clamped(block.body, buffer, it, larger, grown)
    init = None if block.init is None else clamped(block.init, buffer, it, larger, grown)
    reads, writes = block_regions(iters, body, init)
    new = block.with_fields(iters=iters, reads=reads, writes=writes, body=body, init=init)
    nest = replace_node(loop, block, new).with_fields(extent=larger)
    shape = tuple([larger if n == dim else size for n, size in enumerate(buffer.shape)])
    done = replace_node(func, loop, nest)
    return Edit(replace_buffer(done, {buffer: buffer.with_fields(shape=shape)}))


def _iterator(func: tir.Func, block: tir.Block, name: str) -> tir.Iter:
    spatial = [it for it in block.iters if it.kind is tir.IterKind.SPATIAL]
    for it in spatial:
        if it.var.name == name:
            return it
    facts = {"iterator": name, "expected": ", ".join(it.var.name for it in spatial) or "none"}
    hint = "the elements of a reduction all count: only spatial iterators can be rounded up"
    raise ScheduleError(S272, facts, program=func, marks={"block": block}, hint=hint)


def _dimension(func: tir.Func, block: tir.Block, it: tir.Iter) -> tuple[tir.Buffer, int]:
    """The buffer that the block writes, and its dimension along the iterator."""
    buffer = block.writes[0].buffer
    facts = {"iterator": it.var.name}
    marks = {"block": block, "buffer": buffer}
    if buffer.layout:
        hint = "round up first, then change the layout"
        raise ScheduleError(S276, program=func, marks=marks, hint=hint)
    starts = [part.start for part in block.writes[0].ranges]
    found = [n for n, start in enumerate(starts) if start is it.var]
    others = [start for start in starts if start is not it.var and it.var in free_vars(start)]
    plain = type(block.body) is tir.Store
    whole = len(found) == 1 and buffer.shape[found[0]] == it.extent
    if not plain or len(block.writes) != 1 or not whole or others:
        hint = "let the block write one buffer, element by element along its iterators"
        raise ScheduleError(S273, facts, program=func, marks=marks, hint=hint)
    return buffer, found[0]


def _loop(func: tir.Func, block: tir.Block, it: tir.Iter) -> tir.For:
    """The loop that is the iterator, with only this block in it."""
    binding = next(b for i, b in zip(block.iters, block.bindings, strict=True) if i is it)
    uses = [v for b in (*block.bindings, block.predicate) for v in free_vars(b)]
    for loop in loops_around(func, block):
        if loop.var is binding and loop.extent == it.extent and uses.count(loop.var) == 1:
            require_serial(func, loop)
            require_sole_block(func, loop)
            return loop
    hint = "round up before the loops are split or fused"
    facts = {"iterator": it.var.name}
    raise ScheduleError(S275, facts, program=func, marks={"block": block}, hint=hint)
