"""Which results of a lowered program may be written over one of its inputs.

    for i: Y[ramp(i*8, 1, 8)] = max(X[ramp(i*8, 1, 8)] + Z[…], 0)      Y may be the memory of X

That is so if an element of the input is read only by the statement that writes the same element of
the result, and if no element of the result is written twice: whatever is read is then what it was
in the beginning, in any order of the iterations and on any number of threads. Written twice it is
not if there are as many stores as elements, since a result is always filled. Both are looked at
behind all passes, so that neither a schedule nor the lowering of it can be in the way unnoticed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from tilewright.lower import forms
from tilewright.lower.accesses import loads_in
from tilewright.lower.counts import (
    added_up,
    at_most_once,
    counted,
    of_condition,
    of_prefix,
    repeated,
    settled,
)
from tilewright.lower.forms import Form
from tilewright.lower.place_threads import ALONE
from tilewright.lower.quasi_linear import linearised
from tilewright.tensor import ir as tir
from tilewright.tensor.arith.fold import fold
from tilewright.tensor.node import Node
from tilewright.tensor.visit import free_vars, holds, map_children, rewrite, walk_stmts

__all__ = ["in_place"]

MAX_LOOKED_AT: Final = 1 << 12
"""Iterations of a loop that are looked at one by one."""


def in_place(func: tir.Func) -> tuple[tuple[int, int], ...]:
    """Pairs (input, result) of parameters that may be one memory, of a program as it is emitted."""
    written = {s.buffer for s in walk_stmts(func) if type(s) is tir.Store}
    pairs = [
        (x, y)
        for y, result in enumerate(func.params)
        for x, source in enumerate(func.params)
        if result in written and source not in written and _are_alike(source, result)
    ]
    if not pairs:
        return ()
    apart = _read_elsewhere(func)
    good = [(x, y) for x, y in pairs if (func.params[x], func.params[y]) not in apart]
    once = {y for y in {y for _, y in good} if _is_written_once(func, func.params[y])}
    return tuple((x, y) for x, y in good if y in once)


def _are_alike(a: tir.Buffer, b: tir.Buffer) -> bool:
    """As many elements, each of as many bytes."""
    if a.dtype.size_bytes != b.dtype.size_bytes:
        return False
    return _elements(a) == _elements(b)


def _elements(buffer: tir.Buffer) -> Form:
    count = forms.constant(1)
    for extent in buffer.shape:
        count = forms.times(count, counted(extent))
    return count


def _expressions(stmt: tir.Stmt) -> tuple[tir.Expr, ...]:
    match stmt:
        case tir.Store(indices=indices, value=value):
            return (*indices, value)
        case tir.For(extent=extent):
            return (extent,)
        case tir.If(cond=cond):
            return (cond,)
        case tir.Prefetch(indices=indices):
            return indices
    return ()


def _read_elsewhere(func: tir.Func) -> set[tuple[tir.Buffer, tir.Buffer]]:
    """Pairs (input, result): something else is done with the input than to make that element."""
    apart: set[tuple[tir.Buffer, tir.Buffer]] = set()
    for stmt in walk_stmts(func):
        for load in loads_in(_expressions(stmt)):
            match stmt:
                case tir.Store(buffer=made, indices=indices) if indices == load.indices:
                    others = [p for p in func.params if p is not made]
                case _:
                    others = list(func.params)
            apart.update((load.buffer, p) for p in others)
    return apart


def _is_written_once(func: tir.Func, result: tir.Buffer) -> bool:
    stores = _stores(func.body, result)
    return stores is not None and settled(stores) == _elements(result)


def _stores(stmt: tir.Stmt, result: tir.Buffer) -> Form | None:
    """How many elements of a buffer a statement writes, on all threads together; None: unknown."""
    match stmt:
        case tir.Store(buffer=buffer, indices=indices):
            if buffer is not result:
                return {}
            moved_by_data = any(holds(index, tir.Load) for index in indices)
            return None if moved_by_data else _lanes(indices[0])
        case tir.Seq(body=parts):
            return _sum(_stores(part, result) for part in parts)
        case tir.For(var=var, extent=extent, body=body):
            found = _stores_between(body, result, var, {}, forms.form_of(extent))
            return _stores_by_case(stmt, result) if found is None else found
        case tir.Alloc(body=body):
            return _stores(body, result)
        case tir.If(cond=cond, then=then, otherwise=otherwise):
            found = _stores(then, result)
            other: Form | None = {} if otherwise is None else _stores(otherwise, result)
            if found == other or (cond == ALONE and otherwise is None):
                return found
            return None if found is None or other is None else _stores_if(cond, found, other)
        case tir.Barrier() | tir.Prefetch():
            return {}
    return None


def _stores_between(
    stmt: tir.Stmt, result: tir.Buffer, var: tir.Var, first: Form, end: Form
) -> Form | None:
    """Elements that iterations `first` … `end - 1` write: threads share a loop over all tiles.

    for i in parallel(n//32 + n%32//8):
        if i < n//32:
            …  # the large tiles
        else:
            …  # the small ones
    """
    match stmt:
        case tir.If(cond=tir.Lt(a=a, b=b), then=then, otherwise=otherwise) if a is var:
            border = forms.form_of(b)
            low = _stores_between(then, result, var, first, border)
            high = _stores_between(otherwise or tir.Seq(()), result, var, border, end)
            return _sum((low, high))
    found = _stores(stmt, result)
    if found is not None:
        times = counted(forms.expr_of(forms.minus(end, first)))
        found = found if at_most_once(times, found) else added_up(found, var, first, end)
    return _stores_by_part(stmt, result, var, first, end) if found is None else found


def _stores_by_part(
    stmt: tir.Stmt, result: tir.Buffer, var: tir.Var, first: Form, end: Form
) -> Form | None:
    """The same, where the statement has parts of which each can be counted by itself."""
    match stmt:
        case tir.Seq(body=parts):
            return _sum(_stores_between(part, result, var, first, end) for part in parts)
        case tir.Alloc(body=body):
            return _stores_between(body, result, var, first, end)
    return None


def _lanes(where: tir.Expr) -> Form:
    """Elements that an index vector stands for."""
    if type(where) is tir.Prefix:
        return of_prefix(where.count, where.lanes)
    return forms.constant(where.dtype.lanes)


def _stores_if(cond: tir.Expr, found: Form, other: Form) -> Form | None:
    """Elements that a condition writes, where it does so in one way or in another.

    A full vector where all lanes hold, else the lanes that do: that is as many in either way.
    """
    holds_in = of_condition(cond)
    if holds_in is None:
        return None
    if not other:
        return found if at_most_once(holds_in, found) else repeated(found, holds_in)
    lanes = forms.const_of(found)
    if lanes is None or not isinstance(cond, tir.Compare):
        return None
    last = forms.plus(forms.form_of(cond.b), forms.constant(lanes - (type(cond) is tir.Lt)))
    count = forms.expr_of(forms.minus(last, forms.form_of(cond.a)))
    return other if other == of_prefix(count, lanes) else None


def _stores_by_case(loop: tir.For, result: tir.Buffer) -> Form | None:
    """Elements that a loop of known length writes, if its conditions follow from its variable.

    Loops that threads share are fused, and ask `i // 3 < 1` and `i % 3 < 1` for what is left over;
    the last block of tiles may have fewer of them than the others: `range(select(i < 1, 2, 1))`.
    """
    count = tir.int_value(loop.extent)
    asked = [e for s in walk_stmts(loop.body) if isinstance(s, tir.If | tir.For) for e in _asked(s)]
    conditions = [cond for cond in dict.fromkeys(asked) if free_vars(cond) == {loop.var}]
    if count is None or count > MAX_LOOKED_AT or not conditions:
        return None
    cases = Counter(tuple(_at(c, loop.var, k) for c in conditions) for k in range(count))
    total: Form = {}
    for case, times in cases.items():
        found = _stores(_decided(loop.body, dict(zip(conditions, case, strict=True))), result)
        if found is None or forms.mentions(found, loop.var):
            return None
        total = forms.plus(total, forms.times(found, forms.constant(times)))
    return total


def _asked(stmt: tir.If | tir.For) -> tuple[tir.Expr, ...]:
    """What decides how often the parts of a statement run."""
    return (stmt.cond,) if isinstance(stmt, tir.If) else (stmt.extent,)


def _at(expr: tir.Expr, var: tir.Var, value: int) -> tir.Expr:
    """An expression of one variable, where that has this value."""

    def of_part(part: Node) -> Node:
        return _at(part, var, value) if isinstance(part, tir.Expr) else part

    return tir.Const(value, var.dtype) if expr is var else fold(map_children(expr, of_part))


def _decided(stmt: tir.Stmt, conditions: Mapping[tir.Expr, tir.Expr]) -> tir.Stmt:
    """A statement with the branches that are taken and lengths of loops, where they are known."""

    def taken(node: Node) -> Node | None:
        match node:
            case tir.If(cond=cond, then=then, otherwise=otherwise):
                match conditions.get(cond):
                    case tir.Const(value=value):
                        return then if value else otherwise or tir.Seq(())
            case tir.For(extent=extent) if extent in conditions:
                return node.with_fields(extent=conditions[extent])
        return None

    return rewrite(stmt, taken)


def _sum(counts: Iterable[Form | None]) -> Form | None:
    total: Form = {}
    for count in counts:
        if count is None:
            return None
        total = forms.plus(total, count)
    return linearised(total)
