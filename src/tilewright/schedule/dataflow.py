"""Who reads and writes what, and where: the view that primitives on computations share.

`Outline` lists the blocks of a program with the statements around them, in program order; it is
made once per step, in time linear in the number of statements. Blocks inside other blocks do not
appear: nothing outside may look at them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from tilewright.errors import Code, ScheduleError
from tilewright.schedule.footprints import Span, is_stepping, swept
from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.build import seq
from tilewright.tensor.visit import substitute

__all__ = [
    "FILL",
    "Outline",
    "Place",
    "edited",
    "insert_after",
    "insert_before",
    "is_fill",
    "require_scope",
    "without_alloc",
]

S201 = Code("S201", "block `{block}` lies inside another block")
S202 = Code("S202", "`{buffer}` is an output of the program")
S215 = Code("S215", "there is no scope `{scope}`")
S203 = Code("S203", "block `{block}` is not the only writer of `{buffer}`")


FILL: Final = ("fill", True)
"""The note of a block that writes the zeros around a padded buffer, and nothing else."""


def is_fill(block: tir.Block) -> bool:
    """Does the block only write zeros that surround a padded buffer?"""
    return FILL in block.notes


@dataclass(slots=True, eq=False)
class Place:
    """A block, the statements around it (outermost first), and its number in program order."""

    block: tir.Block
    around: tuple[tir.Stmt, ...]
    number: int
    _analyzer: Analyzer | None = None

    @property
    def loops(self) -> tuple[tir.For, ...]:
        """The loops around the block, outermost first."""
        return tuple([s for s in self.around if type(s) is tir.For])

    def is_inside(self, stmt: tir.Stmt) -> bool:
        """Is the block this statement, or somewhere in it?"""
        return self.block is stmt or any(s is stmt for s in self.around)

    def loops_inside(self, stmt: tir.Stmt) -> tuple[tir.For, ...]:
        """The loops between `stmt` and the block, without `stmt` itself."""
        depth = next(n for n, s in enumerate(self.around) if s is stmt)
        return tuple([s for s in self.around[depth + 1 :] if type(s) is tir.For])

    def loops_to(self, loop: tir.For) -> tuple[tir.For, ...]:
        """The loops around the block from the outermost down to `loop`."""
        loops = self.loops
        return loops[: next(n for n, part in enumerate(loops) if part is loop) + 1]

    def child_of(self, stmt: tir.For) -> tir.Stmt:
        """The direct part of a loop's body that the block is in."""
        depth = next(n for n, s in enumerate(self.around) if s is stmt)
        inside = (*self.around[depth + 1 :], self.block)
        return inside[1] if type(inside[0]) is tir.Seq else inside[0]

    @property
    def analyzer(self) -> Analyzer:
        """Knows the ranges of all loops around the block; made once."""
        if self._analyzer is None:
            self._analyzer = Analyzer({loop.var: loop.extent for loop in self.loops})
        return self._analyzer

    def span_of(self, value: tir.Expr, domain: tir.Expr, inner: Sequence[tir.For]) -> Span | None:
        """The values of an expression in the block's iterators while the inner loops run.

        It is known to stay inside `domain` if it is an iterator with just that domain, and the
        loops step through it without detours.
        """
        found = swept(substitute(value, self.values), inner, self.analyzer)
        if found is None or self.block.predicate != tir.TRUE:
            return found
        for it, binding in zip(self.block.iters, self.block.bindings, strict=True):
            if it.var is value and it.extent == domain and is_stepping(binding, inner):
                return Span(found.lo, found.length, inside=True)
        return found

    @property
    def values(self) -> dict[tir.Var, tir.Expr]:
        """What the iterators of the block are bound to."""
        return {i.var: b for i, b in zip(self.block.iters, self.block.bindings, strict=True)}

    def reads(self, buffer: tir.Buffer) -> bool:
        return any(r.buffer is buffer for r in self.block.reads)

    def writes(self, buffer: tir.Buffer) -> bool:
        return any(r.buffer is buffer for r in self.block.writes)


class Outline:
    """The blocks of a program in order, with their surroundings."""

    __slots__ = ("_by_block", "func", "places")

    def __init__(self, func: tir.Func) -> None:
        self.func = func
        self.places: list[Place] = []
        self._visit(func.body, ())
        self._by_block = {id(p.block): p for p in self.places}

    def _visit(self, stmt: tir.Stmt, around: tuple[tir.Stmt, ...]) -> None:
        match stmt:
            case tir.Block():
                self.places.append(Place(stmt, around, len(self.places)))
            case tir.For() | tir.Alloc():
                self._visit(stmt.body, (*around, stmt))
            case tir.Seq():
                for part in stmt.body:
                    self._visit(part, (*around, stmt))
            case tir.If():
                self._visit(stmt.then, (*around, stmt))
                if stmt.otherwise is not None:
                    self._visit(stmt.otherwise, (*around, stmt))

    def place(self, block: tir.Block) -> Place:
        """Where a block is; refuses one that lies inside another block (S201)."""
        found = self._by_block.get(id(block))
        if found is None:
            hint = "work on the block around it"
            raise ScheduleError(S201, hint=hint, program=self.func, marks={"block": block})
        return found

    def readers(self, buffer: tir.Buffer) -> list[Place]:
        """Blocks that read `buffer` (other than an accumulator of their own), in order."""
        return [p for p in self.places if p.reads(buffer)]

    def writers(self, buffer: tir.Buffer) -> list[Place]:
        """Blocks that write `buffer`, in order."""
        return [p for p in self.places if p.writes(buffer)]

    def inside(self, stmt: tir.Stmt) -> list[Place]:
        """Blocks somewhere in a statement, in order."""
        return [p for p in self.places if p.is_inside(stmt)]

    def top(self, place: Place) -> tir.Stmt:
        """The statement at the top of the program that the block belongs to."""
        for stmt in (*place.around, place.block):
            if type(stmt) is not tir.Alloc and type(stmt) is not tir.Seq:
                return stmt
        return place.block

    def own(self, place: Place) -> tir.Stmt:
        """The largest statement that holds this block and no other."""
        stmt: tir.Stmt = place.block
        for outer in reversed(place.around):
            if type(outer) is tir.Seq or type(outer) is tir.Alloc:
                break
            if type(outer) is tir.If and outer.otherwise is not None:
                break
            stmt = outer
        return stmt

    def require_intermediate(self, buffer: tir.Buffer) -> None:
        """S202 unless the buffer lives inside of the program only."""
        if any(buffer is p for p in self.func.params):
            raise ScheduleError(
                S202,
                {"expected": "an intermediate buffer", "found": "a parameter"},
                program=self.func,
                marks={"buffer": buffer},
                hint="make a copy of it first with `cache_write`",
            )

    def require_sole_writer(self, place: Place, buffer: tir.Buffer) -> None:
        """S203 unless nothing but this block writes the buffer (zeros around it do not count)."""
        others = [p.block for p in self.writers(buffer) if p is not place and not is_fill(p.block)]
        if others:
            raise ScheduleError(
                S203,
                {"also written by": ", ".join(f"`{b.name}`" for b in others)},
                program=self.func,
                marks={"block": place.block, "buffer": buffer, "other writer": others[0]},
                hint="apply this step before the one that made the second writer",
            )


def edited(func: tir.Func, *changes: tuple[tir.Stmt, Iterable[tir.Stmt]]) -> tir.Func:
    """Replace statements, found by identity, by any number of others; empty loops vanish."""
    by_id = {id(stmt): tuple(new) for stmt, new in changes}

    def visit(stmt: tir.Stmt) -> tuple[tir.Stmt, ...]:
        new = by_id.get(id(stmt))
        if new is not None:
            return new
        match stmt:
            case tir.For() | tir.Alloc():
                inner = visit(stmt.body)
                if len(inner) == 1 and inner[0] is stmt.body:
                    return (stmt,)
                return (stmt.with_fields(body=seq(*inner)),) if inner else ()
            case tir.Seq():
                parts = [p for part in stmt.body for p in visit(part)]
                if len(parts) == len(stmt.body) and all(map(_is, parts, stmt.body)):
                    return (stmt,)
                return (seq(*parts),) if parts else ()
            case tir.If():
                then = visit(stmt.then)
                other = visit(stmt.otherwise) if stmt.otherwise is not None else ()
                if not then and not other:
                    return ()
                if not then:
                    return (tir.If(tir.Not(stmt.cond), seq(*other)),)
                otherwise = seq(*other) if other else None
                return (stmt.with_fields(then=seq(*then), otherwise=otherwise),)
        return (stmt,)

    return func.with_fields(body=seq(*visit(func.body)))


def _is(a: object, b: object) -> bool:
    return a is b


def insert_before(body: tir.Stmt, child: tir.Stmt, *new: tir.Stmt) -> tir.Stmt:
    """`body` with statements put in front of one of its direct parts (or of itself)."""
    parts = body.body if type(body) is tir.Seq else (body,)
    at = next(n for n, part in enumerate(parts) if part is child)
    return seq(*parts[:at], *new, *parts[at:])


def insert_after(body: tir.Stmt, child: tir.Stmt, *new: tir.Stmt) -> tir.Stmt:
    """`body` with statements put behind one of its direct parts (or of itself)."""
    parts = body.body if type(body) is tir.Seq else (body,)
    at = next(n for n, part in enumerate(parts) if part is child)
    return seq(*parts[: at + 1], *new, *parts[at + 1 :])


def require_scope(func: tir.Func, scope: str) -> tir.Scope:
    """The scope with this name; S215 if there is none."""
    known = {s.value: s for s in tir.Scope}
    if scope not in known:
        expected = " or ".join(f"`{name}`" for name in known)
        hint = "a buffer that is small and used soon again stays in the caches by itself"
        raise ScheduleError(S215, {"scope": scope, "expected": expected}, program=func, hint=hint)
    return known[scope]


def without_alloc(func: tir.Func, buffer: tir.Buffer) -> tir.Func:
    """The program without the allocation of a buffer that is no longer used."""

    def visit(stmt: tir.Stmt) -> tir.Stmt:
        if type(stmt) is tir.Alloc:
            return stmt.body if stmt.buffer is buffer else stmt.with_fields(body=visit(stmt.body))
        return stmt

    return func.with_fields(body=visit(func.body))
