"""Use what a loop has computed right where it was computed."""

from __future__ import annotations

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.accesses import Ranges
from tilewright.schedule.copies import names_without
from tilewright.schedule.dataflow import Outline, Place, edited, insert_after
from tilewright.schedule.domains import iterations, matched
from tilewright.schedule.footprints import Span, swept
from tilewright.schedule.handles import names_of
from tilewright.schedule.moves import (
    Spans,
    cannot_pass,
    moved_nest,
    require_loop_of_blocks,
    require_unchanged_inputs,
)
from tilewright.schedule.nests import vars_by_kind
from tilewright.schedule.primitive import Edit, primitive
from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.visit import free_vars, substitute

__all__ = ["reverse_compute_at"]

ONE = tir.Const(1)

S210 = Code("S210", "nothing inside loop `{loop}` computes what block `{block}` reads")
S211 = Code("S211", "`{producer}` is not finished inside loop `{loop}`: `{outer}` reduces")
S212 = Code(
    "S212", "what one iteration of loop `{loop}` computes is not what block `{block}` reads"
)
S213 = Code("S213", "loop `{outer}` would repeat steps of the reduction of block `{block}`")


@primitive
def reverse_compute_at(func: tir.Func, block: tir.Block, loop: tir.For) -> Edit:
    """Move a consumer into a loop of its producers, where it uses what they have just computed.

    The block gets fresh loops over the part of its domain that reads what one iteration of `loop`
    has finished, behind the last producer.

    Before:  for i_0 in range(4): for i_1 in range(16): B[i_0 * 16 + i_1] = f(A[i_0 * 16 + i_1])
             for i in range(64): C[i] = g(B[i])
    After:   for i_0 in range(4):
                 for i_1 in range(16): B[i_0 * 16 + i_1] = f(A[i_0 * 16 + i_1])
                 for C_i in range(16): C[i_0 * 16 + C_i] = g(B[i_0 * 16 + C_i])
    Requires: S201 the block is not inside another block; S203 it is the only writer of its buffers;
        S204 the loop is not around it; S205 the loop is around blocks; S208 nothing in between
        writes what it reads, or reads what it overwrites; S209 it does not update in place; S210
        something inside the loop writes what it reads; S211 no loop around the new place belongs to
        the reduction of a producer; S212 the part that is computed is a box that the block reads
        one to one; S213 every loop around takes part in its reduction, if only a part of that is
        done at a time
    Example: s.reverse_compute_at("C", "i_0")
    """
    outline = Outline(func)
    place = outline.place(block)
    require_loop_of_blocks(outline, place, loop)
    for region in block.writes:
        outline.require_sole_writer(place, region.buffer)
    producers, last = _producers(outline, place, loop)
    require_unchanged_inputs(outline, place, last)
    _require_unread_outputs(outline, place, loop)
    around = last.loops_to(loop)
    _require_finished(outline, producers, around, loop)
    ready = _ready(outline, place, producers, around, loop)
    _require_reduction_once(outline, place, ready, around)
    own = outline.own(place)
    names = names_without(names_of(func), own)
    nest, made = moved_nest(names, block, ready, around, last.analyzer, exact=True)
    body = insert_after(loop.body, last.child_of(loop), nest)
    new = edited(func, (own, ()), (loop, (loop.with_fields(body=body),)))
    return Edit(new, made)


def _producers(outline: Outline, place: Place, loop: tir.For) -> tuple[list[Place], Place]:
    """The writers of what the block reads that share a loop with its new place; the last in it."""
    inside = outline.inside(loop)
    around = {id(part) for part in inside[0].loops_to(loop)}
    found: dict[int, Place] = {}
    for region in place.block.reads:
        for writer in outline.writers(region.buffer):
            if any(id(part) in around for part in writer.loops):
                found[writer.number] = writer
    producers = [found[number] for number in sorted(found)]
    ours = [p for p in producers if p.is_inside(loop)]
    if not ours:
        loops = {
            part.var.name: None
            for region in place.block.reads
            for writer in outline.writers(region.buffer)
            for part in writer.loops
        }
        raise ScheduleError(
            S210,
            {"expected": "a loop around a block whose results it reads"},
            program=outline.func,
            marks={"block": place.block, "loop": loop},
            hint=f"such loops are {', '.join(loops)}" if loops else "it reads inputs only",
        )
    return producers, ours[-1]


def _require_unread_outputs(outline: Outline, place: Place, loop: tir.For) -> None:
    """S208: no block between the old and the new place needs what the block overwrites."""
    first = outline.inside(loop)[0].loops[0]
    start = outline.inside(first)[0].number
    for region in place.block.writes:
        for reader in outline.readers(region.buffer):
            if start <= reader.number < place.number:
                raise cannot_pass(outline, place, region.buffer, reader, "write to another buffer")


def _require_finished(
    outline: Outline, producers: list[Place], around: tuple[tir.For, ...], loop: tir.For
) -> None:
    """S211: after one iteration, what the producers have written there is final."""
    for producer in producers:
        _, reduce = vars_by_kind(producer.block)
        for outer in around:
            if outer.var in reduce:
                raise ScheduleError(
                    S211,
                    {"outer": outer.var.name, "producer": producer.block.name},
                    program=outline.func,
                    marks={"loop": loop, "producing block": producer.block, "reduces": outer},
                    hint=f"name a loop outside of `{outer.var.name}`",
                )


def _ready(
    outline: Outline,
    place: Place,
    producers: list[Place],
    around: tuple[tir.For, ...],
    loop: tir.For,
) -> Spans:
    """The iterator values that read exactly what has been written while `around` stands still."""
    iters = {it.var: it.extent for it in place.block.iters}
    ready: Spans = {}
    for producer in producers:
        for write in producer.block.writes:
            for read in place.block.reads:
                if read.buffer is not write.buffer:
                    continue
                spans = _spans_of(iters, read, producer, write, around)
                scope = producer.analyzer
                if spans is None or not all(
                    _is_same(ready.setdefault(var, span), span, scope)
                    for var, span in spans.items()
                ):
                    raise ScheduleError(
                        S212,
                        {"producer": producer.block.name, "buffer": read.buffer.name},
                        program=outline.func,
                        marks={"block": place.block, "loop": loop, "from": producer.block},
                        hint="name a loop further out, or move the producer with `compute_at`",
                    )
    return ready


def _is_same(a: Span | None, b: Span, scope: Analyzer) -> bool:
    """Are two spans equal, however their ends are written?"""
    if a is None or a == b:
        return a is not None
    return bool(scope.prove_equal(a.lo, b.lo) and scope.prove_equal(a.length, b.length))


def _spans_of(
    iters: dict[tir.Var, tir.Expr],
    read: tir.Region,
    producer: Place,
    write: tir.Region,
    around: tuple[tir.For, ...],
) -> dict[tir.Var, Span] | None:
    """The values of `iters` whose reads one producer has just written; None if they are no box."""
    outer = {part.var for part in around}
    inner = [part for part in producer.loops if part.var not in outer]
    scope = producer.analyzer
    values = matched(iters, read, write, Ranges.of_block(producer.block).analyzer)
    if values is not None:
        exact: dict[tir.Var, Span] = {}
        for var, value in values.items():
            bound = substitute(value, producer.values)
            if not outer & free_vars(bound):
                continue  # the producer has written all that it ever writes along this iterator
            span = producer.span_of(value, iters[var], inner)
            if span is None or not _is_gapless(span.length, bound, inner, scope):
                return None
            exact[var] = span
        return exact
    box: list[Span | None] = []
    for index in write.ranges:
        value = scope.simplify(substitute(index.start, producer.values))
        if not outer & free_vars(value):
            box.append(None)
            continue
        span = swept(value, inner, scope)
        if span is not None and index.extent != ONE:
            span = Span(span.lo, scope.simplify(span.length + index.extent - 1))
        if span is None or not _is_gapless(span.length, value, inner, scope, index.extent):
            return None
        box.append(span)
    parts, understood = iterations(iters, read, box, scope)
    if not understood or not all(part.exact for part in parts.values()):
        return None
    return {var: part.span for var, part in parts.items()}


def _is_gapless(
    numbers: tir.Expr,
    value: tir.Expr,
    inner: list[tir.For],
    scope: Analyzer,
    length: tir.Expr = ONE,
) -> bool:
    """Do the inner loops leave out none of the numbers, `length` of which begin at each `value`?

    Bindings are one to one, so it is enough that there are as many iterations as numbers.
    """
    steps = length
    used = free_vars(value)
    for part in inner:
        if part.var in used:
            steps = steps * part.extent
    return steps == numbers or bool(scope.prove_equal(steps, numbers))


def _require_reduction_once(
    outline: Outline, place: Place, ready: Spans, around: tuple[tir.For, ...]
) -> None:
    """S213: a reduction that is done part by part must meet each of its points once."""
    kinds = {it.var: it.kind for it in place.block.iters}
    if not any(span and kinds[var] is tir.IterKind.REDUCE for var, span in ready.items()):
        return
    used = {v for span in ready.values() if span is not None for v in free_vars(span.lo)}
    for outer in around:
        if outer.var not in used and tir.int_value(outer.extent) != 1:
            raise ScheduleError(
                S213,
                {"outer": outer.var.name},
                program=outline.func,
                marks={"block": place.block, "repeated": outer},
                hint="name a loop at which the whole reduction is ready",
            )
