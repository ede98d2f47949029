"""Sizes as a kernel sees them: what only ever occurs together is one size.

A product over `batch·seq` rows does not care what they are made of: inside of its kernel they are
`n0`, and every model with rows of any kind shares the kernel.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence

from tilewright.graph.ir import Node, Shape
from tilewright.graph.ops import Op
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import rewrite, walk

__all__ = ["SizeNames", "abstract_sizes", "expressions"]


@dataclasses.dataclass(frozen=True)
class SizeNames:
    """Which dimensions have become sizes of their own: `meaning[var]` is the dimension."""

    meaning: dict[tir.Var, tir.Expr]

    def expr(self, value: tir.Expr) -> tir.Expr:
        """An expression with these dimensions replaced."""
        if not self.meaning:
            return value
        names = {dim: var for var, dim in self.meaning.items()}
        return rewrite(value, lambda part: names.get(part) if isinstance(part, tir.Expr) else None)

    def shape(self, dims: Shape) -> Shape:
        return tuple(self.expr(d) for d in dims)

    def op(self, op: Op) -> Op:
        """An operator with these dimensions replaced in its attributes."""
        if not self.meaning or next(expressions(op), None) is None:
            return op
        changes = {
            f.name: _mapped(getattr(op, f.name), self.expr)
            for f in dataclasses.fields(op)
            if f.init
        }
        return dataclasses.replace(op, **changes)

    def of(self, size: tir.Var) -> tir.Expr:
        """What a size of the kernel is in the graph."""
        return self.meaning.get(size, size)


def abstract_sizes(nodes: Sequence[Node]) -> SizeNames:
    """The names for a group of nodes."""
    dims = dict.fromkeys(
        dim for node in nodes for v in (*node.inputs, *node.outputs) for dim in v.shape
    )
    wholes = [d for d in dims if not isinstance(d, tir.Const | tir.Var)]
    attributes = [e for node in nodes for e in expressions(node.op)]
    meaning: dict[tir.Var, tir.Expr] = {}
    for whole in wholes:
        inside = {v for v in walk(whole) if isinstance(v, tir.Var)}
        elsewhere = (*(d for d in dims if d != whole), *attributes)
        if not any(_occurs(var, expr, apart_from=whole) for var in inside for expr in elsewhere):
            meaning[tir.Var(f"n{len(meaning)}")] = whole
    return SizeNames(meaning)


def _occurs(var: tir.Var, expr: tir.Expr, apart_from: tir.Expr) -> bool:
    """Whether a size occurs in an expression, other than inside of a given whole."""
    without = rewrite(
        expr,
        lambda part: tir.Const(1) if isinstance(part, tir.Expr) and part == apart_from else None,
    )
    return any(part is var for part in walk(without))


def expressions(op: Op) -> Iterator[tir.Expr]:
    """The expressions among the attributes of an operator."""
    for f in dataclasses.fields(op):
        yield from _inside(getattr(op, f.name))


def _inside(value: object) -> Iterator[tir.Expr]:
    if isinstance(value, tir.Expr):
        yield value
    elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
        for part in value:
            yield from _inside(part)


def _mapped(value: object, change: Callable[[tir.Expr], tir.Expr]) -> object:
    if isinstance(value, tir.Expr):
        return change(value)
    if isinstance(value, tuple):
        return tuple(_mapped(part, change) for part in value)
    return value
