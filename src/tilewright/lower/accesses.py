"""Where a program reads and writes its buffers: indices as forms, with loops and conditions around.

Used by the passes that place and shrink buffers. A vector index counts as a small loop over its
lanes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tilewright.lower import forms
from tilewright.lower.forms import Form
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import children, find

__all__ = ["Access", "accesses_of", "conjuncts", "loads_in"]


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """One load or store. `number` grows in program order; a statement reads before it writes.

    `loops` are those around it, outermost first; `conditions` hold wherever it is executed.
    """

    buffer: tir.Buffer
    indices: tuple[Form, ...]
    writes: bool
    number: int
    loops: tuple[tuple[tir.Var, tir.Expr], ...]
    conditions: tuple[tir.Expr, ...]


def accesses_of(root: tir.Stmt, buffers: Iterable[tir.Buffer]) -> dict[tir.Buffer, list[Access]]:
    """All accesses of `buffers` inside `root`."""
    found: dict[tir.Buffer, list[Access]] = {b: [] for b in buffers}
    if found:
        _Collector(found).visit(root, (), ())
    return found


class _Collector:
    def __init__(self, found: dict[tir.Buffer, list[Access]]) -> None:
        self.found = found
        self.number = 0
        self.forms: dict[tir.Expr, Form] = {}

    def visit(
        self,
        stmt: tir.Stmt,
        loops: tuple[tuple[tir.Var, tir.Expr], ...],
        conditions: tuple[tir.Expr, ...],
    ) -> None:
        match stmt:
            case tir.Store():
                self.reads((*stmt.indices, stmt.value), loops, conditions)
                self.number += 1
                if stmt.buffer in self.found:
                    self.add(stmt.buffer, stmt.indices, loops, conditions, writes=True)
                self.number += 1
            case tir.For():
                self.reads((stmt.extent,), loops, conditions)
                self.visit(stmt.body, (*loops, (stmt.var, stmt.extent)), conditions)
            case tir.If():
                self.reads((stmt.cond,), loops, conditions)
                self.visit(stmt.then, loops, (*conditions, *conjuncts(stmt.cond)))
                if stmt.otherwise is not None:
                    self.visit(stmt.otherwise, loops, (*conditions, ~stmt.cond))
            case _:
                for child in children(stmt):
                    if isinstance(child, tir.Stmt):
                        self.visit(child, loops, conditions)

    def reads(
        self,
        exprs: Iterable[tir.Expr],
        loops: tuple[tuple[tir.Var, tir.Expr], ...],
        conditions: tuple[tir.Expr, ...],
    ) -> None:
        for load in dict.fromkeys(loads_in(exprs)):  # what is read twice is one access
            if load.buffer in self.found:
                self.add(load.buffer, load.indices, loops, conditions, writes=False)

    def add(
        self,
        buffer: tir.Buffer,
        indices: tuple[tir.Expr, ...],
        loops: tuple[tuple[tir.Var, tir.Expr], ...],
        conditions: tuple[tir.Expr, ...],
        *,
        writes: bool,
    ) -> None:
        where: list[Form] = []
        for index in indices:
            if type(index) is tir.Ramp:
                lane = tir.Var("lane")
                loops = (*loops, (lane, tir.Const(index.lanes)))
                moving = forms.times(forms.form_of(index.stride), {(lane,): 1})
                where.append(forms.plus(forms.form_of(index.base), moving))
                continue
            form = self.forms.get(index)
            if form is None:
                form = self.forms[index] = forms.form_of(index)
            where.append(form)
        access = Access(buffer, tuple(where), writes, self.number, loops, conditions)
        self.found[buffer].append(access)


def loads_in(exprs: Iterable[tir.Expr]) -> Iterator[tir.Load]:
    """All loads inside expressions, also those in the indices of others."""
    for expr in exprs:
        yield from find(expr, tir.Load)


def conjuncts(cond: tir.Expr) -> tuple[tir.Expr, ...]:
    """`a & b & c` as (a, b, c)."""
    if type(cond) is tir.BitAnd and cond.dtype.is_bool:
        return (*conjuncts(cond.a), *conjuncts(cond.b))
    return (cond,)
