"""What `compute_at` and `reverse_compute_at` share: legality of a move, and the nest it makes."""

from __future__ import annotations

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.copies import nest
from tilewright.schedule.dataflow import Outline, Place
from tilewright.schedule.footprints import Span, is_whole, swept
from tilewright.schedule.handles import Names
from tilewright.schedule.nests import is_bounded
from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.regions import reads_own_output
from tilewright.tensor.visit import free_vars

__all__ = [
    "Spans",
    "cannot_pass",
    "moved_nest",
    "require_loop_of_blocks",
    "require_unchanged_inputs",
]

Spans = dict[tir.Var, Span | None]
"""The values that each iterator of a block takes; None stands for its whole domain."""

S204 = Code("S204", "loop `{loop}` is already around block `{block}`")
S205 = Code("S205", "loop `{loop}` is not around blocks")
S208 = Code("S208", "block `{block}` cannot pass `{other}`: both use `{buffer}`")
S209 = Code("S209", "block `{block}` updates its result in place")

ZERO = tir.Const(0)


def require_loop_of_blocks(outline: Outline, place: Place, loop: tir.For) -> None:
    """S204 and S205: the loop is somewhere else, and it is around blocks, not inside one."""
    marks = {"block": place.block, "loop": loop}
    if place.is_inside(loop):
        hint = "name a loop of the other block"
        raise ScheduleError(S204, program=outline.func, marks=marks, hint=hint)
    if not outline.inside(loop):
        hint = "name a loop whose leaves are blocks"
        raise ScheduleError(S205, program=outline.func, marks=marks, hint=hint)
    if reads_own_output(place.block):
        hint = "move it before `decompose_reduction`, so that it carries its start value along"
        raise ScheduleError(S209, program=outline.func, marks=marks, hint=hint)


def require_unchanged_inputs(
    outline: Outline, place: Place, target: Place, loop: tir.For | None = None
) -> None:
    """S208: nothing writes what the block reads between its old and new place, or in `loop`."""
    first, last = sorted((place.number, target.number))
    for region in place.block.reads:
        for writer in outline.writers(region.buffer):
            repeated = loop is not None and writer.is_inside(loop)
            if writer is not place and (first < writer.number < last or repeated):
                hint = "move the block that writes it first, or choose another loop"
                raise cannot_pass(outline, place, region.buffer, writer, hint)


def cannot_pass(
    outline: Outline, place: Place, buffer: tir.Buffer, other: Place, hint: str
) -> ScheduleError:
    """S208: another block writes what the block reads, or reads what it overwrites."""
    here, there, name = f"block `{place.block.name}`", f"`{other.block.name}`", f"`{buffer.name}`"
    found = f"{there} reads {name}, which {here} overwrites"
    if other.writes(buffer):
        found = f"{there} writes {name}, which {here} reads"
    return ScheduleError(
        S208,
        {"other": other.block.name, "found": found},
        program=outline.func,
        marks={"block": place.block, "buffer": buffer, "other block": other.block},
        hint=hint,
    )


def moved_nest(
    names: Names,
    block: tir.Block,
    needed: Spans,
    around: tuple[tir.For, ...],
    analyzer: Analyzer,
    *,
    exact: bool = False,
) -> tuple[tir.Stmt, tuple[str, ...]]:
    """The block in fresh loops over the values that are needed, inside the loops `around`.

    Unless `exact`, more values than needed may be computed where that keeps an extent constant.
    """
    parts: list[tuple[tir.Expr, tir.Expr]] = []
    guards: list[tuple[int, bool, bool]] = []
    varying = {loop.var for loop in around}
    for number, it in enumerate(block.iters):
        span = needed.get(it.var)
        if span is not None and not exact:
            span = _fixed(span, varying, analyzer)
            if span is not None and _is_longer(span.length, it.extent):
                span = None
        if span is None or is_whole(span, it.extent, analyzer):
            parts.append((ZERO, it.extent))
            continue
        parts.append((span.lo, span.length))
        if span.inside:
            continue
        below = not _is_least(span.lo, ZERO, around, analyzer)
        above = not _is_most(span.lo + span.length, it.extent, around, analyzer)
        if below or above:
            guards.append((number, below, above))
    made, loops = nest(names, block.with_fields(predicate=tir.TRUE), parts)
    return (_guarded(made, guards) if guards else made), loops


def _is_least(
    value: tir.Expr, least: tir.Expr, around: tuple[tir.For, ...], analyzer: Analyzer
) -> bool:
    """Is the value at least this in all iterations?"""
    if analyzer.prove(value >= least):
        return True
    span = swept(value, around, analyzer)
    return span is not None and bool(analyzer.prove(span.lo >= least))


def _is_most(
    value: tir.Expr, most: tir.Expr, around: tuple[tir.For, ...], analyzer: Analyzer
) -> bool:
    """Is the value at most this in all iterations?"""
    if analyzer.prove(value <= most):
        return True
    span = swept(value, around, analyzer)
    return span is not None and bool(analyzer.prove(span.hi <= most))


def _is_fixed(extent: tir.Expr, varying: set[tir.Var]) -> bool:
    """Is the extent the same in all iterations, or at least in all tiles of a segment?"""
    return is_bounded(extent) or not varying & free_vars(extent)


def _without(kind: type[tir.Binary], expr: tir.Expr) -> tir.Expr:
    """Without its limits: what remains of a `min` is never less, of a `max` never more."""
    match expr:
        case tir.Add(a=a, b=tir.Const() as b):
            return _without(kind, a) + b
        case tir.Sub(a=a, b=tir.Const() as b):
            return _without(kind, a) - b
        case tir.Min(a=a, b=b) | tir.Max(a=a, b=b) if type(expr) is kind:
            return _without(kind, b if type(a) is tir.Const else a)
    return expr


def _is_longer(length: tir.Expr, domain: tir.Expr) -> bool:
    """Are there at least as many numbers as in the domain, as far as both are known?"""
    known, whole = tir.int_value(length), tir.int_value(domain)
    return known is not None and whole is not None and known >= whole


def _fixed(span: Span, varying: set[tir.Var], analyzer: Analyzer) -> Span | None:
    """The span, or a larger one whose length is the same in all iterations; None for everything."""
    if _is_fixed(span.length, varying):
        return span
    lo, hi = _without(tir.Max, span.lo), _without(tir.Min, analyzer.simplify(span.hi))
    larger = Span.between(lo, hi, analyzer)
    if _is_fixed(larger.length, varying):
        return larger
    most = analyzer.bounds(larger.length).hi
    return None if most is None else Span(lo, tir.Const(most))


def _guarded(made: tir.Stmt, guards: list[tuple[int, bool, bool]]) -> tir.Stmt:
    """The nest with a predicate that keeps these iterators inside of their domains."""
    if isinstance(made, tir.For):
        return made.with_fields(body=_guarded(made.body, guards))
    assert isinstance(made, tir.Block)
    predicate: tir.Expr = tir.TRUE
    for number, below, above in guards:
        at = made.bindings[number]
        for wanted, test in ((below, at >= 0), (above, at < made.iters[number].extent)):
            if wanted:
                predicate = test if predicate is tir.TRUE else predicate & test
    return made.with_fields(predicate=predicate)
