"""Simpler index arithmetic everywhere in a statement, with the ranges of the loops around it.

Sums and products are put into normal form directly; only what divides, takes remainders or compares
goes to the analyzer, which knows ranges and is slower. Each distinct expression is looked at once,
so the cost is O(n) in the nodes of the program.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.dtypes import index
from tilewright.lower import fold, forms
from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.node import Node
from tilewright.tensor.regions import sizes
from tilewright.tensor.visit import map_children

__all__ = ["analyzer_of", "is_linear", "loop_order", "simplified", "simplified_within"]

_LATE = 1000
_NOT_LINEAR = ~(tir.Add.kinds | tir.Sub.kinds | tir.Mul.kinds | tir.Const.kinds | tir.Var.kinds)


def simplified(stmt: tir.Stmt, func: tir.Func) -> tir.Stmt:
    """The statement with all indices, extents and conditions simplified; it belongs to `func`."""
    return _Simplifier().statement(stmt, analyzer_of(func), 0)


def simplified_within(stmt: tir.Stmt, analyzer: Analyzer) -> tir.Stmt:
    """The same for a statement about whose place the analyzer knows everything."""
    return _Simplifier().statement(stmt, analyzer, len(analyzer.extents))


def analyzer_of(func: tir.Func) -> Analyzer:
    """An analyzer that knows the sizes of a program to be positive."""
    return Analyzer({tir.Var(f"below_{size.name}"): size for size in sizes(func)})


def loop_order(kind: tir.LoopKind, depth: int) -> int:
    """Where the terms of a loop's variable go in a sum: what becomes constant goes last."""
    late = kind is tir.LoopKind.UNROLLED or kind is tir.LoopKind.VECTOR
    return depth + _LATE if late else depth


def is_linear(expr: tir.Expr) -> bool:
    """Only sums and products of variables and numbers, and tiles of covers?"""
    return not expr.inside & _NOT_LINEAR


class _Simplifier:
    def __init__(self) -> None:
        self.known: dict[Node, Node] = {}
        self.order: dict[tir.Var, int] = {}

    def statement(self, stmt: tir.Stmt, analyzer: Analyzer, depth: int) -> tir.Stmt:
        match stmt:
            case tir.For():
                extent = self.index(stmt.extent, analyzer)
                self.order[stmt.var] = loop_order(stmt.kind, depth)
                if tir.int_value(extent) == 1 and stmt.kind is not tir.LoopKind.PARALLEL:
                    zero = {stmt.var: tir.Const(0)}
                    return self.statement(fold.substitute(stmt.body, zero), analyzer, depth)
                inner = analyzer.bind(stmt.var, extent)
                return fold.loop(stmt, extent, self.statement(stmt.body, inner, depth + 1))
            case tir.Store():
                indices = self.indices(stmt.indices, analyzer)
                value = self.value(stmt.value, analyzer)
                return stmt.with_fields(indices=indices, value=value)
            case tir.If():
                return self.branch(stmt, analyzer, depth)
            case tir.Seq():
                parts = [self.statement(part, analyzer, depth) for part in stmt.body]
                same = all(a is b for a, b in zip(parts, stmt.body, strict=True))
                return stmt if same else fold.seq(*parts)
            case tir.Alloc():
                body = self.statement(stmt.body, analyzer, depth)
                return stmt.with_fields(body=body)
        return stmt

    def branch(self, stmt: tir.If, analyzer: Analyzer, depth: int) -> tir.Stmt:
        cond = self.value(stmt.cond, analyzer)
        then = self.statement(stmt.then, analyzer, depth)
        other = stmt.otherwise
        if other is not None:
            other = self.statement(other, analyzer, depth)
        if cond is stmt.cond and then is stmt.then and other is stmt.otherwise:
            return stmt
        return fold.branch(cond, then, other)

    def value(self, expr: tir.Expr, analyzer: Analyzer) -> tir.Expr:
        """An expression of any dtype: indices and conditions in it are simplified."""
        if isinstance(expr, (tir.Const, tir.Var)):
            return expr
        found = self.known.get(expr)
        if found is None:
            found = self.known[expr] = self.new_value(expr, analyzer)
        return found  # type: ignore[return-value]

    def new_value(self, expr: tir.Expr, analyzer: Analyzer) -> tir.Expr:
        match expr:
            case tir.Load():
                return expr.with_fields(indices=self.indices(expr.indices, analyzer))
            case tir.Compare() if expr.a.dtype == index and not _loads(expr):
                return self.condition(expr, analyzer)
            case tir.Select():
                cond = self.value(expr.cond, analyzer)
                if type(cond) is tir.Const:
                    return self.value(expr.if_true if cond.value else expr.if_false, analyzer)
            case tir.BitAnd() | tir.BitOr() if expr.dtype.is_bool:
                a, b = self.value(expr.a, analyzer), self.value(expr.b, analyzer)
                same = a is expr.a and b is expr.b
                return expr if same else fold.fold_binary(type(expr), a, b)
        return map_children(expr, lambda part: self.value(part, analyzer))  # type: ignore[arg-type]

    def condition(self, expr: tir.Compare, analyzer: Analyzer) -> tir.Expr:
        known = analyzer.prove(expr)
        if known is not None:
            return tir.TRUE if known else fold.FALSE
        a, b = self.index(expr.a, analyzer), self.index(expr.b, analyzer)
        return expr if a is expr.a and b is expr.b else fold.fold_binary(type(expr), a, b)

    def indices(self, parts: tuple[tir.Expr, ...], analyzer: Analyzer) -> tuple[tir.Expr, ...]:
        new = tuple([self.index(part, analyzer) for part in parts])
        return parts if all(a is b for a, b in zip(new, parts, strict=True)) else new

    def index(self, expr: tir.Expr, analyzer: Analyzer) -> tir.Expr:
        """An index or extent."""
        if isinstance(expr, (tir.Const, tir.Var)):
            return expr
        found = self.known.get(expr)
        if found is None:
            found = self.new_index(expr, analyzer, self.order)
            found = self.known[expr] = self.known[found] = expr if found == expr else found
        return found  # type: ignore[return-value]

    def new_index(
        self, expr: tir.Expr, analyzer: Analyzer, order: Mapping[tir.Var, int]
    ) -> tir.Expr:
        if expr.dtype.lanes > 1 or _loads(expr):
            return map_children(expr, lambda part: self.value(part, analyzer))  # type: ignore[arg-type]
        if is_linear(expr):
            return forms.tidy(expr, order)
        return forms.tidy(analyzer.simplify(expr), order)


def _loads(expr: tir.Expr) -> bool:
    return bool(expr.inside & tir.Load.bit)
