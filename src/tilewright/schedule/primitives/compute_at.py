"""Compute what a loop needs right where it needs it."""

from __future__ import annotations

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.accesses import Ranges
from tilewright.schedule.copies import names_without
from tilewright.schedule.dataflow import Outline, Place, edited, insert_before
from tilewright.schedule.domains import iterations, matched
from tilewright.schedule.footprints import Span, hull, swept_region
from tilewright.schedule.handles import names_of
from tilewright.schedule.moves import (
    Spans,
    moved_nest,
    require_loop_of_blocks,
    require_unchanged_inputs,
)
from tilewright.schedule.primitive import Edit, primitive
from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.visit import substitute

__all__ = ["compute_at"]

Read = tuple[Place, tir.Region]

S206 = Code("S206", "nothing inside loop `{loop}` reads what block `{block}` computes")
S207 = Code("S207", "`{consumer}` reads `{buffer}` outside of loop `{loop}`")


@primitive
def compute_at(func: tir.Func, block: tir.Block, loop: tir.For) -> Edit:
    """Move a producer into a loop of its consumers, where it computes only what they read there.

    The block gets fresh loops over the part of its domain that one iteration of `loop` needs, in
    front of the first consumer; reduce iterators keep their whole range. Overlapping parts are
    computed more than once. A predicate appears only where that part can leave the domain.

    Before:  for i in range(64): B[i] = f(A[i])
             for i_0 in range(4): for i_1 in range(16): C[i_0 * 16 + i_1] = g(B[i_0 * 16 + i_1])
    After:   for i_0 in range(4):
                 for B_i in range(16): B[i_0 * 16 + B_i] = f(A[i_0 * 16 + B_i])
                 for i_1 in range(16): C[i_0 * 16 + i_1] = g(B[i_0 * 16 + i_1])
    Requires: S201 the block is not inside another block; S202 it writes no output; S203 it is the
        only writer of its buffers; S204 the loop is not around it; S205 the loop is around blocks;
        S206 something inside the loop reads the block's results; S207 nothing outside of the loop
        does; S208 nothing changes its inputs in between; S209 it does not update in place
    Example: s.compute_at("B", "i_0")
    """
    outline = Outline(func)
    place = outline.place(block)
    require_loop_of_blocks(outline, place, loop)
    consumers = _consumers(outline, place, loop)
    target = consumers[0][0]
    require_unchanged_inputs(outline, place, target, loop)
    around = target.loops_to(loop)
    analyzer = target.analyzer
    needed = _needed(place.block, consumers, loop, analyzer)
    own = outline.own(place)
    names = names_without(names_of(func), own)
    nest, made = moved_nest(names, place.block, needed, around, analyzer)
    body = insert_before(loop.body, target.child_of(loop), nest)
    new = edited(func, (own, ()), (loop, (loop.with_fields(body=body),)))
    return Edit(new, made)


def _consumers(outline: Outline, place: Place, loop: tir.For) -> list[Read]:
    """Every read, inside the loop, of what the block writes; refuses reads elsewhere."""
    found: list[Read] = []
    elsewhere: list[Read] = []
    for buffer in dict.fromkeys(r.buffer for r in place.block.writes):
        outline.require_intermediate(buffer)
        outline.require_sole_writer(place, buffer)
        for reader in outline.readers(buffer):
            reads = [(reader, r) for r in reader.block.reads if r.buffer is buffer]
            (found if reader.is_inside(loop) else elsewhere).extend(reads)
    marks = {"block": place.block, "loop": loop}
    if not found:
        facts = {"expected": "a loop around the blocks that read its results"}
        loops = {part.var.name: None for reader, _ in elsewhere for part in reader.loops}
        hint = f"such loops are {', '.join(loops)}" if loops else "nothing reads its results"
        raise ScheduleError(S206, facts, program=outline.func, marks=marks, hint=hint)
    if elsewhere:
        reader, region = elsewhere[0]
        raise ScheduleError(
            S207,
            {"consumer": reader.block.name},
            program=outline.func,
            marks={**marks, "buffer": region.buffer, "reader": reader.block},
            hint=f"name a loop around all readers of `{region.buffer.name}`",
        )
    found.sort(key=lambda read: read[0].number)
    return found


def _needed(block: tir.Block, consumers: list[Read], loop: tir.For, analyzer: Analyzer) -> Spans:
    """The iterator values that compute all that the consumers read while `loop` stands still."""
    iters = {it.var: it.extent for it in block.iters if it.kind is tir.IterKind.SPATIAL}
    needed: Spans = {}
    for place, read in consumers:
        for write in block.writes:
            if write.buffer is not read.buffer:
                continue
            spans = _spans_of(iters, write, place, read, loop)
            for var in iters:
                new, old = spans.get(var), needed.get(var)
                if var in needed and old is not None and new is not None:
                    new = hull(old, new, analyzer)
                needed[var] = None if var in needed and old is None else new
    return needed


def _spans_of(
    iters: dict[tir.Var, tir.Expr],
    write: tir.Region,
    place: Place,
    read: tir.Region,
    loop: tir.For,
) -> dict[tir.Var, Span]:
    """The values of `iters` for which `write` covers what one consumer reads."""
    inner, scope = place.loops_inside(loop), place.analyzer
    values = matched(iters, write, read, Ranges.of_block(place.block).analyzer)
    if values is not None:
        spans = {v: place.span_of(e, iters[v], inner) for v, e in values.items()}
        return {v: span for v, span in spans.items() if span is not None}
    box = swept_region(substitute(read, place.values), inner, scope)
    parts, _ = iterations(iters, write, box, scope)
    return {v: part.span for v, part in parts.items()}
