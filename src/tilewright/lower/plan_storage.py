"""Every buffer in memory gets its place: the stack, or an offset in one of two arenas.

What is allocated outside of parallel loops is shared by all threads; what is allocated inside, or
by the part of the program that one thread does alone, belongs to a thread and is on its stack if it
is small. Buffers whose lives do not overlap use the same bytes. In the arena of a thread life is
counted in statements. In the shared one it is counted in barriers that all threads surely pass,
because without a barrier a fast thread may write to the next buffer while a slow one still reads
the last.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.lower import forms
from tilewright.lower.context import Context
from tilewright.lower.lowered import Lowered
from tilewright.lower.place_threads import ALONE
from tilewright.tensor import ir as tir
from tilewright.tensor.regions import sizes
from tilewright.tensor.visit import children, find, free_vars, walk_stmts

__all__ = ["ALIGNMENT", "STACK_BYTES", "plan_storage"]

ALIGNMENT = 64
STACK_BYTES = 4096
"""A buffer of a thread up to this size is on its stack …"""
STACK_TOTAL_BYTES = 1 << 16
"""… as long as all of them together stay below this."""


def plan_storage(func: tir.Func, context: Context) -> Lowered:
    """The program with a place for every buffer."""
    parallel = any(type(s) is tir.For and s.kind is tir.LoopKind.PARALLEL for s in walk_stmts(func))
    plan = _Lives()
    plan.visit(func.body, alone=not parallel, straight=True)
    on_stack = _on_stack(plan)
    shared, shared_bytes = _packed(plan.shared)
    local, local_bytes = _packed({b: life for b, life in plan.local.items() if b not in on_stack})
    return Lowered(
        func,
        shared,
        local,
        shared_bytes,
        local_bytes,
        _sizes(func),
        parallel,
        tuple(context.remarks),
    )


def _sizes(func: tir.Func) -> tuple[tir.Var, ...]:
    """The sizes of the parameters, and those that only loops have left.

    A parameter without elements has lost its sizes when it was made flat.
    """
    told = sizes(func)
    more = sorted(free_vars(func.body) - set(told), key=lambda var: var.name)
    return (*told, *more)


@dataclass(slots=True)
class Life:
    """From the first to the last access, both inclusive."""

    first: int
    last: int

    def overlaps(self, other: Life) -> bool:
        return self.first <= other.last and other.first <= self.last

    def include(self, first: int, last: int) -> None:
        self.first, self.last = min(self.first, first), max(self.last, last)


class _Lives:
    """Walks the program once and notes when each buffer is used."""

    def __init__(self) -> None:
        self.statements = 0
        self.barriers = 0
        self.shared: dict[tir.Buffer, Life] = {}
        self.local: dict[tir.Buffer, Life] = {}

    def visit(self, stmt: tir.Stmt, *, alone: bool, straight: bool) -> set[tir.Buffer]:
        """The buffers used. `alone`: by one thread; `straight`: reached once, by all threads."""
        start = self.statements, self.barriers
        used: set[tir.Buffer] = set()
        match stmt:
            case tir.Barrier():
                self.barriers += straight
                return used
            case tir.Store():
                self.statements += 1
                used = {stmt.buffer, *[load.buffer for load in find(stmt, tir.Load)]}
            case tir.Alloc(buffer=buffer):
                if buffer.scope is tir.Scope.MEMORY:
                    lives = self.local if alone else self.shared
                    lives[buffer] = Life(1 << 62, -1)
                used = self.visit(stmt.body, alone=alone, straight=straight) - {buffer}
            case tir.Seq():
                for part in stmt.body:
                    used |= self.visit(part, alone=alone, straight=straight)
            case _:
                used = self.inside(stmt, alone=alone)
        for buffer in used:
            if type(stmt) in (tir.Store, tir.For, tir.If):
                self.note(buffer, start)
        return used

    def inside(self, stmt: tir.Stmt, *, alone: bool) -> set[tir.Buffer]:
        """A loop or a condition."""
        self.statements += 1
        if type(stmt) is tir.For and stmt.kind is tir.LoopKind.PARALLEL:
            alone = True
        if type(stmt) is tir.If and stmt.cond == ALONE:
            alone = True
        used = {load.buffer for c in _exprs(stmt) for load in find(c, tir.Load)}
        for child in children(stmt):
            if isinstance(child, tir.Stmt):
                used |= self.visit(child, alone=alone, straight=False)
        return used

    def note(self, buffer: tir.Buffer, start: tuple[int, int]) -> None:
        if buffer in self.local:
            self.local[buffer].include(start[0] + 1, self.statements)
        elif buffer in self.shared:
            self.shared[buffer].include(start[1], self.barriers)


def _exprs(stmt: tir.Stmt) -> list[tir.Expr]:
    return [c for c in children(stmt) if isinstance(c, tir.Expr)]


def _bytes(buffer: tir.Buffer) -> tir.Expr:
    total = forms.constant(buffer.dtype.size_bytes)
    for size in buffer.shape:
        total = forms.times(total, forms.form_of(size))
    return forms.expr_of(total)


def _on_stack(plan: _Lives) -> set[tir.Buffer]:
    small: set[tir.Buffer] = set()
    total = 0
    for buffer in plan.local:
        size = tir.int_value(_bytes(buffer))
        if size is not None and size <= STACK_BYTES and total + size <= STACK_TOTAL_BYTES:
            small.add(buffer)
            total += size
    return small


def _packed(lives: dict[tir.Buffer, Life]) -> tuple[dict[tir.Buffer, tir.Expr], tir.Expr]:
    """Offsets of buffers and the size of the arena; those of symbolic size come last."""
    sizes = {buffer: _bytes(buffer) for buffer in lives}
    known = {b: n for b, size in sizes.items() if (n := tir.int_value(size)) is not None}
    numbers, end = _fitted(known, lives)
    offsets: dict[tir.Buffer, tir.Expr] = {b: tir.Const(n) for b, n in numbers.items()}
    total: tir.Expr = tir.Const(end)
    slots: list[tuple[tir.Expr, tir.Expr, list[Life]]] = []
    for buffer, size in sizes.items():
        if buffer in known:
            continue
        life = lives[buffer]
        for wanted, offset, users in slots:
            if wanted == size and not any(life.overlaps(user) for user in users):
                users.append(life)
                offsets[buffer] = offset
                break
        else:
            slots.append((size, total, [life]))
            offsets[buffer] = total
            total = forms.tidy(total + (size + (ALIGNMENT - 1)) // ALIGNMENT * ALIGNMENT)
    return offsets, total


def _fitted(
    known: dict[tir.Buffer, int], lives: dict[tir.Buffer, Life]
) -> tuple[dict[tir.Buffer, int], int]:
    """Each buffer at the lowest offset that is free during its life, large ones first."""
    offsets: dict[tir.Buffer, int] = {}
    placed: list[tuple[int, int, Life]] = []
    for buffer, size in sorted(known.items(), key=lambda item: -item[1]):
        offset = 0
        for begin, end, life in sorted(placed, key=lambda p: p[0]):
            if life.overlaps(lives[buffer]) and begin < offset + size and offset < end:
                offset = end
        placed.append((offset, offset + -(-size // ALIGNMENT) * ALIGNMENT, lives[buffer]))
        offsets[buffer] = offset
    return offsets, max((end for _, end, _ in placed), default=0)
