"""Blocks become plain statements: bindings take the place of iterators, inits and predicates guard.

First of the lowering passes: behind it there are only loops, conditions and stores, in the
variables of loops. An init is guarded by one comparison per loop (`k0 == 0 and k1 == 0`, not
`k0*4 + k1 == 0`), so that `cut_loops` can take each of them out on its own. All index arithmetic is
simplified with the ranges of the loops around it; loops of one iteration vanish.
"""

from __future__ import annotations

from tilewright.lower import fold, forms
from tilewright.lower.context import Context
from tilewright.lower.simplify import simplified
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import walk_stmts

__all__ = ["lower_blocks"]


def lower_blocks(func: tir.Func, context: Context) -> tir.Func:
    """Replace every block by its body."""
    del context
    if not any(type(s) is tir.Block for s in walk_stmts(func)):
        return func
    return func.with_fields(body=simplified(_lowered(func.body), func))


def _lowered(stmt: tir.Stmt) -> tir.Stmt:
    match stmt:
        case tir.Block():
            return _opened(stmt)
        case tir.For():
            return stmt.with_fields(body=_lowered(stmt.body))
        case tir.Seq():
            return fold.seq(*(_lowered(part) for part in stmt.body))
        case tir.If():
            other = None if stmt.otherwise is None else _lowered(stmt.otherwise)
            return stmt.with_fields(then=_lowered(stmt.then), otherwise=other)
        case tir.Alloc():
            return stmt.with_fields(body=_lowered(stmt.body))
    return stmt


def _opened(block: tir.Block) -> tir.Stmt:
    values = {i.var: b for i, b in zip(block.iters, block.bindings, strict=True)}
    body = fold.substitute(_lowered(block.body), values)
    if block.init is not None:
        starts = [
            condition
            for it, bound in zip(block.iters, block.bindings, strict=True)
            if it.kind is tir.IterKind.REDUCE
            for condition in _is_zero(bound)
        ]
        init = fold.substitute(_lowered(block.init), values)
        body = fold.seq(fold.branch(_all_of(starts), init, None), body)
    return fold.branch(block.predicate, body, None)


def _all_of(conditions: list[tir.Expr]) -> tir.Expr:
    result: tir.Expr = tir.TRUE
    for condition in dict.fromkeys(conditions):
        result = fold.fold_binary(tir.BitAnd, result, condition)
    return result


def _is_zero(expr: tir.Expr) -> list[tir.Expr]:
    """When `expr` is zero, as comparisons of single variables where that is the same."""
    form = forms.form_of(expr)
    number = forms.const_of(form)
    if number is not None:
        return [tir.TRUE if number == 0 else fold.FALSE]
    if any(k < 0 or not key for key, k in form.items()):
        return [expr.eq(0)]
    found: list[tir.Expr] = []
    for key in form:
        atom = key[0]
        if len(key) == 1 and isinstance(atom, tir.Var):
            found.append(atom.eq(0))
        elif len(key) == 1 and type(atom) is tir.TileStart:
            found += _is_zero(atom.tile)
        else:
            return [expr.eq(0)]
    return found
