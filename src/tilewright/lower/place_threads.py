"""All threads run the whole program: who does what, and where they must wait for each other.

A parallel loop is dealt to the threads; what stands outside of every parallel loop is done by
thread 0 alone; loops and conditions around parallel loops are run by all. Two stages with a
dependence (one writes what the other touches) are separated by a barrier, also around the back edge
of a loop. No barrier is needed between two stages of thread 0, nor between parallel loops of equal
extent that keep to the same slice of each shared buffer: every thread then meets only its own
values.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tilewright.dtypes import index
from tilewright.lower import fold, forms
from tilewright.lower.accesses import Access, accesses_of, loads_in
from tilewright.lower.context import Context
from tilewright.lower.extremes import Loops, extremes
from tilewright.lower.forms import Form
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import walk, walk_stmts

__all__ = ["ALONE", "place_threads"]

ALONE = tir.Call("thread", (), index).eq(0)
"""The condition under which what one thread does is done."""


def place_threads(func: tir.Func, context: Context) -> tir.Func:
    """Guard what one thread does, and put barriers between dependent stages."""
    if not _has_parallel(func.body) or _is_placed(func.body):
        return func
    body = _without_shared_scratch(_outermost_only(func.body), context)
    if _has_parallel(body):
        body, _ = _Placer().place(body, ())
    return func if body == func.body else func.with_fields(body=body)


def _is_placed(stmt: tir.Stmt) -> bool:
    return any(
        type(s) is tir.Barrier or (type(s) is tir.If and s.cond == ALONE) for s in walk_stmts(stmt)
    )


def _has_parallel(stmt: tir.Stmt) -> bool:
    return any(type(s) is tir.For and s.kind is tir.LoopKind.PARALLEL for s in walk_stmts(stmt))


def _outermost_only(stmt: tir.Stmt, *, inside: bool = False) -> tir.Stmt:
    """Parallel loops inside of parallel loops become serial."""
    parallel = type(stmt) is tir.For and stmt.kind is tir.LoopKind.PARALLEL
    new = fold.map_parts(stmt, lambda part: _outermost_only(part, inside=inside or parallel))
    return new.with_fields(kind=tir.LoopKind.SERIAL) if inside and parallel else new


def _without_shared_scratch(body: tir.Stmt, context: Context) -> tir.Stmt:
    """Parallel loops whose iterations may fill the same part of a buffer become serial.

    That is meant to be a buffer of each thread, but `place_allocations` could not show that no
    value outlives an iteration. Buffers that are also used elsewhere are not looked at: that
    iterations write different parts of those has been validated.
    """
    buffers = [s.buffer for s in walk_stmts(body) if type(s) is tir.Alloc]
    everywhere = accesses_of(body, buffers)

    def visit(stmt: tir.Stmt) -> tir.Stmt:
        if type(stmt) is not tir.For or stmt.kind is not tir.LoopKind.PARALLEL:
            return fold.map_parts(stmt, visit)
        own = {s.buffer for s in walk_stmts(stmt) if type(s) is tir.Alloc}
        for buffer, inside in accesses_of(stmt, [b for b in buffers if b not in own]).items():
            if not inside or len(inside) < len(everywhere[buffer]):
                continue
            around = [pair for pair in everywhere[buffer][0].loops if pair[0] is not stmt.var]
            slices = [_slice(access, stmt.var, around) for access in inside]
            if None in slices or any(s != slices[0] for s in slices):
                context.remark(f"loop `{stmt.var.name}` is not parallel: `{buffer.name}` is shared")
                return stmt.with_fields(kind=tir.LoopKind.SERIAL)
        return stmt

    return visit(body)


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """Something that threads do between two barriers. `alone`: by thread 0."""

    reads: frozenset[tir.Buffer]
    writes: frozenset[tir.Buffer]
    alone: bool = False
    loop: tir.For | None = None
    around: Loops = ()


Pending = tuple[Stage, ...]


class _Placer:
    def __init__(self) -> None:
        self.stages: dict[int, Stage] = {}  # by identity of the statement
        self.kept: list[tir.Stmt] = []  # so that identities stay unique
        self.loops: list[tuple[tir.Var, tir.Expr]] = []

    def place(self, stmt: tir.Stmt, pending: Pending) -> tuple[tir.Stmt, Pending]:
        """The statement with guards and barriers, and the stages that still run behind it."""
        if not _has_parallel(stmt):
            guarded = tir.If(ALONE, stmt)
            return self.behind(guarded, self.stage(stmt, alone=True), pending)
        match stmt:
            case tir.Seq():
                return self.sequence(stmt, pending)
            case tir.For(kind=tir.LoopKind.PARALLEL):
                return self.behind(stmt, self.stage(stmt), pending)
            case tir.For():
                return self.loop(stmt, pending)
            case tir.Alloc():
                body, pending = self.place(stmt.body, pending)
                return stmt.with_fields(body=body), pending
            case tir.If():
                return self.branch(stmt, pending)
        raise TypeError(f"{type(stmt).__name__} cannot contain a parallel loop")

    def behind(self, stmt: tir.Stmt, stage: Stage, pending: Pending) -> tuple[tir.Stmt, Pending]:
        if any(_depends(stage, other) for other in pending):
            return fold.seq(tir.Barrier(), stmt), (stage,)
        return stmt, _joined(pending, (stage,))

    def sequence(self, seq: tir.Seq, pending: Pending) -> tuple[tir.Stmt, Pending]:
        parts: list[tir.Stmt] = []
        for part in _grouped(seq.body):
            new, pending = self.place(self.same(part), pending)
            parts.append(new)
        return fold.seq(*parts), pending

    def same(self, part: tir.Stmt) -> tir.Stmt:
        """One object for equal groups of statements, as loops are placed more than once."""
        for kept in self.kept:
            if kept == part:
                return kept
        self.kept.append(part)
        return part

    def loop(self, loop: tir.For, pending: Pending) -> tuple[tir.Stmt, Pending]:
        stage = Stage(_loaded([loop.extent]), frozenset())
        if any(_depends(stage, other) for other in pending):
            new, pending = self.loop(loop, (stage,))
            return fold.seq(tir.Barrier(), new), pending
        before = _joined(pending, (stage,) if stage.reads else ())
        self.loops.append((loop.var, loop.extent))
        while True:  # the stages of one iteration may still run when the next one begins
            body, after = self.place(loop.body, before)
            everything = _joined(before, after)
            if len(everything) == len(before):
                break
            before = everything
        self.loops.pop()
        runs = (tir.int_value(loop.extent) or 0) > 0
        return loop.with_fields(body=body), after if runs else _joined(before, after)

    def branch(self, stmt: tir.If, pending: Pending) -> tuple[tir.Stmt, Pending]:
        stage = Stage(_loaded([stmt.cond]), frozenset())
        if any(_depends(stage, other) for other in pending):
            new, pending = self.branch(stmt, (stage,))
            return fold.seq(tir.Barrier(), new), pending
        pending = _joined(pending, (stage,) if stage.reads else ())
        then, after = self.place(stmt.then, pending)
        if stmt.otherwise is None:
            return stmt.with_fields(then=then), _joined(after, pending)
        other, behind = self.place(stmt.otherwise, pending)
        return stmt.with_fields(then=then, otherwise=other), _joined(after, behind)

    def stage(self, stmt: tir.Stmt, *, alone: bool = False) -> Stage:
        found = self.stages.get(id(stmt))
        if found is None:
            nodes = list(walk(stmt))
            own = {s.buffer for s in nodes if type(s) is tir.Alloc}
            reads = frozenset(n.buffer for n in nodes if type(n) is tir.Load) - own
            writes = frozenset(n.buffer for n in nodes if type(n) is tir.Store) - own
            loop = None if alone or type(stmt) is not tir.For else stmt
            found = Stage(reads, writes, alone, loop, tuple(self.loops))
            self.stages[id(stmt)] = found
            self.kept.append(stmt)
        return found


def _grouped(parts: Iterable[tir.Stmt]) -> list[tir.Stmt]:
    """Neighbours without a parallel loop as one statement."""
    groups: list[list[tir.Stmt]] = []
    for part in parts:
        alone = not _has_parallel(part)
        if alone and groups and not _has_parallel(groups[-1][-1]):
            groups[-1].append(part)
        else:
            groups.append([part])
    return [fold.seq(*group) for group in groups]


def _joined(a: Pending, b: Pending) -> Pending:
    return tuple(dict.fromkeys((*a, *b)))


def _loaded(exprs: Iterable[tir.Expr]) -> frozenset[tir.Buffer]:
    return frozenset(load.buffer for load in loads_in(exprs))


def _depends(a: Stage, b: Stage) -> bool:
    """Must all of one stage be done before the other begins?"""
    if a.alone and b.alone:
        return False
    shared = (a.writes & (b.reads | b.writes)) | (a.reads & b.writes)
    return bool(shared) and not _same_slices(a, b, shared)


def _same_slices(a: Stage, b: Stage, buffers: frozenset[tir.Buffer]) -> bool:
    """Does iteration i of both loops touch only slice i of each of `buffers`?"""
    if a.loop is None or b.loop is None:
        return False
    if forms.form_of(a.loop.extent) != forms.form_of(b.loop.extent):
        return False
    mine, yours = accesses_of(a.loop, buffers), accesses_of(b.loop, buffers)
    for buffer in buffers:
        slices = [_slice(x, a.loop.var, a.around) for x in mine[buffer]]
        slices += [_slice(x, b.loop.var, b.around) for x in yours[buffer]]
        if any(s is None or s != slices[0] for s in slices):
            return False
    return True


def _slice(access: Access, var: tir.Var, around: Loops) -> Form | None:
    """The length c of slice [c·var, c·var + c) if the access stays inside it."""
    if len(access.indices) != 1:
        return None
    parts = forms.split(access.indices[0], var)
    if parts is None or not parts[0]:
        return None
    others = [(v, e) for v, e in (*around, *access.loops) if v is not var]
    bounds = extremes(parts[1], others)
    if bounds is None:
        return None
    below, above = bounds[0], forms.minus(forms.minus(parts[0], bounds[1]), forms.constant(1))
    inside = all((forms.const_of(f) if f else 0) is not None for f in (below, above)) and all(
        f.get((), 0) >= 0 for f in (below, above)
    )
    return parts[0] if inside else None
