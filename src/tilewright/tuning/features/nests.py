"""Lowered programs as statements in their loops, each access with its real strides.

Features of loops and stores are computed from this, at the stage `place_threads`, the last one
before vectors are made. Loops are cut there, so that every extent is a number and what is left over
is a loop of its own; indices are offsets into buffers as they lie after layouts were rewritten, so
that packed operands look packed; scopes and annotations are settled, and copies of a kernel's own
are there. One stage later a vector loop has become a statement for each vector, and behind
unrolling no loop of a register tile is left.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Final

from tilewright.lower import lower
from tilewright.schedule.recipes.work import ASSUMED_EXTENT, extent_or_assumed
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.arith.space import NotAffine
from tilewright.tensor.visit import children, find
from tilewright.tuning.features.moves import Moves
from tilewright.tuning.features.operations import Operations, operations_of

__all__ = ["STAGE", "Access", "Loop", "Program", "Statement", "lowered_loops", "program_of"]

STAGE: Final = "place_threads"
"""The stage of the lowering that features look at."""


@dataclass(frozen=True)
class Loop:
    """One loop around a statement."""

    var: tir.Var
    extent: int
    kind: tir.LoopKind


@dataclass(frozen=True)
class Access:
    """A load or a store: elements that each loop moves it by, and where it begins."""

    buffer: tir.Buffer
    slopes: tuple[float, ...]
    """Elements from one iteration to the next of each loop around, outermost first; of several
    steps the least. 0 for a loop that the offset does not depend on."""
    steps: tuple[tuple[tuple[float, int], ...], ...]
    """All steps of each loop: elements apart, and how many places."""
    offset: int
    is_store: bool
    run: tuple[float, int] = (0.0, 1)
    """Step and number of elements that one execution touches, beyond the loops."""

    @property
    def in_memory(self) -> bool:
        return self.buffer.scope is tir.Scope.MEMORY


@dataclass(frozen=True)
class Statement:
    """A store with its loops (outermost first), its accesses (the store last), what it computes."""

    store: tir.Store
    loops: tuple[Loop, ...]
    accesses: tuple[Access, ...]
    operations: Operations
    alloc_depth: int
    """Loops around the allocation of what is stored; 0 for parameters."""

    @cached_property
    def iterations(self) -> int:
        """How often it runs."""
        return prod(loop.extent for loop in self.loops)

    @property
    def target(self) -> Access:
        """What is stored to."""
        return self.accesses[-1]

    @property
    def accumulates(self) -> bool:
        """Whether it reads what it stores to."""
        return any(a.buffer is self.store.buffer for a in self.accesses[:-1])

    @property
    def weight(self) -> float:
        """About how much there is to do; for choosing among statements only."""
        return self.iterations * (self.operations.total + len(self.accesses))

    def of_kind(self, kind: tir.LoopKind) -> list[int]:
        """Places of the loops of a kind, outermost first."""
        return [k for k, loop in enumerate(self.loops) if loop.kind is kind]


@dataclass(frozen=True)
class Program:
    """All statements in order, and the prefetches beside them."""

    statements: tuple[Statement, ...]
    prefetches: int

    @cached_property
    def heaviest(self) -> Statement:
        """The statement with most to do; the first of several."""
        return max(self.statements, key=lambda s: s.weight)

    @cached_property
    def users(self) -> Mapping[tuple[tir.Var, tir.Buffer], int]:
        """How many statements inside of a loop touch a buffer."""
        found: dict[tuple[tir.Var, tir.Buffer], int] = defaultdict(int)
        for statement in self.statements:
            touched = {a.buffer for a in statement.accesses}
            for loop in statement.loops:
                for buffer in touched:
                    found[loop.var, buffer] += 1
        return found


class _ReachedError(Exception):
    """Carries the program of a stage out of the lowering."""

    def __init__(self, func: tir.Func) -> None:
        super().__init__()
        self.func = func


def lowered_loops(scheduled: tir.Func, target: Target) -> tir.Func:
    """A scheduled program, lowered up to the stage that features look at."""

    def observe(stage: str, made: tir.Func, seconds: float) -> None:
        del seconds
        if stage == STAGE:
            raise _ReachedError(made)

    try:
        lower(scheduled, target, observe)
    except _ReachedError as reached:
        return reached.func
    raise AssertionError(f"the lowering passes `{STAGE}`")


def program_of(func: tir.Func) -> Program:
    """The statements of a program of plain loops."""
    walk = _Walk(func)
    return Program(tuple(walk.statement(func.body, ())), walk.prefetches)


class _Walk:
    def __init__(self, func: tir.Func) -> None:
        self.alloc_depth: dict[tir.Buffer, int] = dict.fromkeys(func.params, 0)
        self.prefetches = 0
        self.analyzers: dict[tuple[tir.Var, ...], Analyzer] = {}

    def statement(self, stmt: tir.Stmt, loops: tuple[Loop, ...]) -> Iterator[Statement]:
        match stmt:
            case tir.For():
                extent = self.extent(stmt.extent, loops)
                yield from self.statement(stmt.body, (*loops, Loop(stmt.var, extent, stmt.kind)))
            case tir.Alloc():
                self.alloc_depth[stmt.buffer] = len(loops)
                yield from self.statement(stmt.body, loops)
            case tir.Store():
                yield self.store(stmt, loops)
            case tir.Prefetch():
                self.prefetches += prod(loop.extent for loop in loops)
            case _:
                for child in children(stmt):
                    if isinstance(child, tir.Stmt):
                        yield from self.statement(child, loops)

    def extent(self, extent: tir.Expr, loops: tuple[Loop, ...]) -> int:
        """The number, or the most that it can be, or what stands for an unknown one."""
        known = tir.int_value(extent)
        if known is None:
            known = self.analyzer(loops).bounds(extent).hi
        return max(1, ASSUMED_EXTENT if known is None else known)

    def analyzer(self, loops: tuple[Loop, ...]) -> Analyzer:
        key = tuple(loop.var for loop in loops)
        if key not in self.analyzers:
            self.analyzers[key] = Analyzer({loop.var: loop.extent for loop in loops})
        return self.analyzers[key]

    def store(self, stmt: tir.Store, loops: tuple[Loop, ...]) -> Statement:
        loads = list(find(stmt.value, tir.Load))
        accesses = [self.access(a.buffer, a.indices, loops, is_store=False) for a in loads]
        accesses.append(self.access(stmt.buffer, stmt.indices, loops, is_store=True))
        depth = self.alloc_depth.get(stmt.buffer, 0)
        return Statement(stmt, loops, tuple(accesses), operations_of(stmt.value), depth)

    def access(
        self,
        buffer: tir.Buffer,
        indices: Sequence[tir.Expr],
        loops: tuple[Loop, ...],
        *,
        is_store: bool,
    ) -> Access:
        moves = Moves({loop.var: loop.extent for loop in loops})
        run, offset = (0.0, 1), 0
        for index, stride in zip(indices, _row_major(buffer), strict=True):
            base = index
            if isinstance(index, tir.Ramp | tir.Prefix):
                base = index.base
                step = 1 if isinstance(index, tir.Prefix) else tir.int_value(index.stride) or 1
                run = (float(abs(step) * stride), index.lanes)
            try:
                form = self.analyzer(loops).linear(base)
            except NotAffine:  # data decide: every iteration may be anywhere
                moves.anywhere(base, _elements(buffer))
                continue
            offset += form.const * stride
            moves.add(form, stride)
        each = [moves.steps_of(loop.var) for loop in loops]
        slopes = tuple(moves.slope_of(loop.var) for loop in loops)
        return Access(buffer, slopes, tuple(each), offset, is_store, run)


def _row_major(buffer: tir.Buffer) -> list[int]:
    """Elements from one index of each dimension to the next."""
    sizes = [extent_or_assumed(d) for d in buffer.shape]
    return [prod(sizes[k + 1 :]) for k in range(len(sizes))]


def _elements(buffer: tir.Buffer) -> int:
    return prod(extent_or_assumed(d) for d in buffer.shape)
