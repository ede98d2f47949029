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
    return stores is not None and stores == _elements(result)


def _stores(stmt: tir.Stmt, result: tir.Buffer) -> Form | None:
    """How many elements of a buffer a statement writes, on all threads together; None: unknown."""
    match stmt:
        case tir.Store(buffer=buffer, indices=indices):
            if buffer is not result:
                return {}
            moved_by_data = any(holds(index, tir.Load) for index in indices)
            return None if moved_by_data else forms.constant(indices[0].dtype.lanes)
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
            return found if found == other or (cond == ALONE and otherwise is None) else None
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
        case tir.Seq(body=parts):
            return _sum(_stores_between(part, result, var, first, end) for part in parts)
        case tir.Alloc(body=body):
            return _stores_between(body, result, var, first, end)
        case tir.If(cond=tir.Lt(a=a, b=b), then=then, otherwise=otherwise) if a is var:
            border = forms.form_of(b)
            low = _stores_between(then, result, var, first, border)
            high = _stores_between(otherwise or tir.Seq(()), result, var, border, end)
            return _sum((low, high))
    found = _stores(stmt, result)
    if not found:
        return found
    count = forms.expr_of(forms.minus(end, first))
    if forms.mentions(found, var) or not _is_count(count):
        return None
    return forms.times(found, counted(count))


def _stores_by_case(loop: tir.For, result: tir.Buffer) -> Form | None:
    """Elements that a loop of known length writes, if its conditions follow from its variable.

    Loops that threads share are fused, and ask `i // 3 < 1` and `i % 3 < 1` for what is left over.
    """
    count = tir.int_value(loop.extent)
    asked = [stmt.cond for stmt in walk_stmts(loop.body) if isinstance(stmt, tir.If)]
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


def _at(expr: tir.Expr, var: tir.Var, value: int) -> tir.Expr:
    """An expression of one variable, where that has this value."""

    def of_part(part: Node) -> Node:
        return _at(part, var, value) if isinstance(part, tir.Expr) else part

    return tir.Const(value, var.dtype) if expr is var else fold(map_children(expr, of_part))


def _decided(stmt: tir.Stmt, conditions: Mapping[tir.Expr, tir.Expr]) -> tir.Stmt:
    """A statement with the branches that are taken, where conditions are known."""

    def taken(node: Node) -> Node | None:
        match node:
            case tir.If(cond=cond, then=then, otherwise=otherwise):
                match conditions.get(cond):
                    case tir.Const(value=value):
                        return then if value else otherwise or tir.Seq(())
        return None

    return rewrite(stmt, taken)


def _sum(counts: Iterable[Form | None]) -> Form | None:
    total: Form = {}
    for count in counts:
        if count is None:
            return None
        total = forms.plus(total, count)
    return linearised(total)


def _is_count(extent: tir.Expr) -> bool:
    """Whether an extent is plainly not negative, as sizes and variables of loops are not."""
    match extent:
        case tir.Const(value=number):
            return number >= 0
        case tir.Var():
            return True
        case tir.Add(a=a, b=b) | tir.Mul(a=a, b=b) | tir.FloorDiv(a=a, b=b) | tir.Min(a=a, b=b):
            return _is_count(a) and _is_count(b)
        case tir.FloorMod(b=b):
            return _is_count(b)
        case tir.Max(a=a, b=b):
            return _is_count(a) or _is_count(b)
    return False


def counted(expr: tir.Expr) -> Form:
    """A form in which equal counts are equal: remainders are gone, quotients are reduced.

    `n//8%4` is `n//8 - n//32*4`, and `n//4*4 + n%4` is `n`.
    """
    total: Form = {}
    for key, k in forms.form_of(expr).items():
        product = forms.constant(k)
        for atom in key:
            product = forms.times(product, _atom(atom))
        total = forms.plus(total, product)
    return linearised(total)


def _atom(atom: tir.Expr) -> Form:
    match atom:
        case tir.FloorDiv(a=a, b=tir.Const(value=int(c))) if c > 0:
            return _quotient(counted(a), c)
        case tir.FloorMod(a=a, b=tir.Const(value=int(c))) if c > 0:
            whole = counted(a)
            return forms.minus(whole, forms.scaled(_quotient(whole, c), c))
    return {(atom,): 1}


def _quotient(form: Form, divisor: int) -> Form:
    """`form // divisor`, where a quotient inside of it becomes one division with it."""
    for key, k in form.items():
        match key:
            case (tir.FloorDiv(a=a, b=tir.Const(value=int(c))),) if k == 1:
                rest = {other: n for other, n in form.items() if other != key}
                return _quotient(forms.plus(counted(a), forms.scaled(rest, c)), c * divisor)
    whole = {key: k // divisor for key, k in form.items() if k // divisor}
    rest = {key: k % divisor for key, k in form.items() if k % divisor}
    if forms.const_of(rest) is not None:  # less than the divisor
        return whole
    return forms.plus(whole, {(forms.expr_of(rest) // divisor,): 1})
