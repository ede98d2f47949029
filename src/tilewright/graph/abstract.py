"""Sizes as a kernel sees them: what only ever occurs together is one size.

A product over `batch·seq` rows does not care what they are made of: inside of its kernel they are
`n0`, and every model with rows of any kind shares the kernel.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from tilewright.graph.ir import Node, Shape
from tilewright.graph.ops import Op
from tilewright.graph.sizes import total as sum_of
from tilewright.tensor import ir as tir
from tilewright.tensor.node import Node as TensorNode
from tilewright.tensor.visit import free_vars, map_children

__all__ = ["SizeNames", "abstract_sizes", "expressions"]

ONE: Final = tir.Const(1)


@dataclasses.dataclass(frozen=True)
class SizeNames:
    """Which dimensions have become sizes of their own: `meaning[var]` is the dimension."""

    meaning: dict[tir.Var, tir.Expr]

    def expr(self, value: tir.Expr) -> tir.Expr:
        """An expression with these dimensions replaced."""
        if not self.meaning:
            return value
        return _replaced(value, {dim: var for var, dim in self.meaning.items()})

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
        inside, name = free_vars(whole), tir.Var(f"n{len(meaning)}")
        elsewhere = (_replaced(e, {whole: name}) for e in (*dims, *attributes) if e != whole)
        if all(inside.isdisjoint(free_vars(expr)) for expr in elsewhere):
            meaning[name] = whole
    return SizeNames(meaning)


def _replaced(expr: tir.Expr, names: Mapping[tir.Expr, tir.Var]) -> tir.Expr:
    """An expression with dimensions replaced, also those whose terms are among those of a sum.

    Names decide the order of a sum, so that `a + c` is not always a part of `a + b + c`.
    """

    def visit(part: TensorNode) -> TensorNode:
        if not isinstance(part, tir.Expr) or isinstance(part, tir.Const):
            return part
        if part in names:
            return names[part]
        if isinstance(part, tir.Add | tir.Sub):
            for whole, name in names.items():
                found = _taken_out(part, whole, name)
                if found is not None:
                    return found
        return map_children(part, visit)

    result = visit(expr)
    assert isinstance(result, tir.Expr)
    return result


def _taken_out(total: tir.Expr, whole: tir.Expr, name: tir.Var) -> tir.Expr | None:
    """A sum in which all terms of another one are its name, times a number; None if some miss."""
    if not isinstance(whole, tir.Add | tir.Sub) or not free_vars(whole) <= free_vars(total):
        return None
    terms, taken = _terms(total), _terms(whole)
    factors = {divmod(terms.get(term, 0), k) for term, k in taken.items() if term is not ONE}
    ((factor, rest),) = factors if len(factors) == 1 else ((0, 0),)
    if not factor or rest:
        return None
    left = {term: k - factor * taken.get(term, 0) for term, k in terms.items()}
    left[ONE] = terms.get(ONE, 0) - factor * taken.get(ONE, 0)
    parts = [term * k for term, k in left.items() if k]
    return sum_of([name * factor, *parts])


def _terms(total: tir.Expr) -> dict[tir.Expr, int]:
    """The terms of a sum and how often each occurs; that of `ONE` is its constant."""
    found: dict[tir.Expr, int] = {}
    stack = [(total, 1)]
    while stack:
        part, k = stack.pop()
        match part:
            case tir.Add(a=a, b=b):
                stack += ((b, k), (a, k))
            case tir.Sub(a=a, b=b):
                stack += ((b, -k), (a, k))
            case tir.Mul(a=a, b=tir.Const(value=number)):
                stack.append((a, k * int(number)))
            case tir.Const(value=number):
                found[ONE] = found.get(ONE, 0) + k * int(number)
            case _:
                found[part] = found.get(part, 0) + k
    return found


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
