"""Sizes as a kernel sees them: what only ever occurs together is one size.

A product over `batch·seq` rows does not care what they are made of: inside of its kernel they are
`n0`, and every model with rows of any kind shares the kernel.

A kernel takes its sizes to be at least one, and the rest of a slice, `max(n - 1, 0)`, to be `n - 1`
then. It runs only where its result has elements, which says that much of most sizes; what it does
not say, as of a part of several that are joined, is a size of its own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from tilewright.graph.ir import Node, Shape
from tilewright.graph.ops import Op, Sizes
from tilewright.graph.sizes import filled, never_exceeds, tidy, variables
from tilewright.graph.sizes import total as sum_of
from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.node import Node as Part
from tilewright.tensor.visit import children, free_vars, map_children

__all__ = ["SizeNames", "abstract_sizes", "expressions"]

ONE: Final = tir.Const(1)
SUMS: Final = tir.Add.kinds | tir.Sub.kinds | tir.Mul.kinds | tir.Const.kinds | tir.Var.kinds
CHOICES: Final = tir.Min.kinds | tir.Max.kinds | tir.Select.kinds | tir.Compare.kinds


@dataclasses.dataclass(frozen=True)
class SizeNames:
    """Which dimensions have become sizes of their own: `meaning[var]` is the dimension.

    `chosen` are choices between sizes as the kernel writes them, `names` the sizes of what is
    written so.
    """

    meaning: dict[tir.Var, tir.Expr]
    chosen: dict[tir.Expr, tir.Expr] = dataclasses.field(default_factory=dict)
    names: dict[tir.Expr, tir.Expr] = dataclasses.field(default_factory=dict)

    def expr(self, value: tir.Expr) -> tir.Expr:
        """An expression with these dimensions replaced."""
        return _replaced(_replaced(value, self.chosen), self.names)

    def shape(self, dims: Shape) -> Shape:
        return tuple(self.expr(d) for d in dims)

    def op(self, op: Op) -> Op:
        """An operator with these dimensions replaced in its attributes."""
        if not (self.names or self.chosen) or next(expressions(op), None) is None:
            return op
        changes = {
            f.name: _mapped(getattr(op, f.name), self.expr)
            for f in dataclasses.fields(op)
            if f.init
        }
        return dataclasses.replace(op, **changes)

    def add(self, part: tir.Expr, dim: tir.Expr) -> tir.Expr:
        """A name for a part, which is this dimension of the graph."""
        self.names[part] = var = tir.Var(f"n{len(self.meaning)}")
        self.meaning[var] = dim
        return var

    def add_any(self, part: tir.Expr) -> None:
        """The same for what may be negative, or is a condition: sizes of programs are numbers."""
        if part.dtype.is_bool:  # a kernel takes none to be zero
            number = tir.Select(part, tir.Const(2), tir.Const(1))
            self.names[part] = tir.Const(1) < self.add(number, number)
        elif never_exceeds(tir.Const(0), part, ()):
            self.add(part, part)
        else:
            above, below = (tidy(tir.maximum(end, 0)) for end in (part, -part))
            self.names[part] = self.add(above, above) - self.add(below, below)

    def of(self, size: tir.Var) -> tir.Expr:
        """What a size of the kernel is in the graph."""
        return self.meaning.get(size, size)


def abstract_sizes(nodes: Sequence[Node], result: Shape = ()) -> SizeNames:
    """The names for a group of nodes that runs where a tensor of shape `result` has elements."""
    given = dict.fromkeys(
        dim for node in nodes for v in (*node.inputs, *node.outputs) for dim in v.shape
    )
    every = [e for node in nodes for e in expressions(node.op)]
    told = [*given, *(e for node in nodes if isinstance(node.op, Sizes) for e in node.op.values)]
    chosen = _chosen([*given, *every], told, result)
    dims = {_replaced(dim, chosen): dim for dim in given}
    attributes = [_replaced(e, chosen) for e in every]
    names = SizeNames({}, chosen)
    for whole in (d for d in dims if not isinstance(d, tir.Const | tir.Var)):
        inside, name = free_vars(whole), tir.Var("n")
        elsewhere = (_replaced(e, {whole: name}) for e in (*dims, *attributes) if e != whole)
        apart = all(inside.isdisjoint(free_vars(expr)) for expr in elsewhere)
        if apart or _is_taken_otherwise(whole):
            names.add(whole, dims[whole])
    for choice in _choices(map(names.expr, every), told):
        if _is_taken_otherwise(choice):
            names.add_any(choice)
    return names


def _chosen(
    exprs: Iterable[tir.Expr], dims: Iterable[tir.Expr], result: Shape
) -> dict[tir.Expr, tir.Expr]:
    """What depends on choices between sizes that are none where the result has elements."""
    exprs = list(exprs)
    choices = _choices(exprs, dims)
    if not choices:
        return {}
    known = filled(result, variables(choices))
    simple = {choice: known.simplify(choice) for choice in choices}
    found = {choice: new for choice, new in simple.items() if new != choice}
    sizes = set(variables(dims))
    for expr in exprs if found else ():  # dimensions in canonical form again
        if sizes.issuperset(variables([expr])) and (new := _replaced(expr, found)) != expr:
            found[expr] = tidy(new)
    return found


def _is_taken_otherwise(dim: tir.Expr) -> bool:
    """Whether a dimension means something else to a kernel, which takes sizes to be positive."""
    if not dim.inside & ~SUMS:  # sums of products are the same whatever the sizes are
        return False
    some = (tir.Const(1) <= var for var in variables([dim]))
    return Analyzer().assume(*some).simplify(dim) != tidy(dim)


def _choices(exprs: Iterable[tir.Expr], dims: Iterable[tir.Expr]) -> list[tir.Expr]:
    """The largest parts of expressions that choose between the sizes in dimensions."""
    found: dict[tir.Expr, None] = {}
    sizes = set(variables(dims))

    def visit(part: Part) -> None:
        if not part.inside & CHOICES:
            return
        if isinstance(part, tir.Min | tir.Max | tir.Select | tir.Compare):
            used = variables([part])
            if used and sizes.issuperset(used):
                found.setdefault(part)
                return
        for child in children(part):
            visit(child)

    for expr in exprs:
        visit(expr)
    return list(found)


def _replaced(expr: tir.Expr, names: Mapping[tir.Expr, tir.Expr]) -> tir.Expr:
    """An expression with dimensions replaced, also those whose terms are among those of a sum.

    The largest parts are first: one may be part of another. Names decide the order of a sum, so
    that `a + c` is not always a part of `a + b + c`.
    """

    def visit(part: Part) -> Part:
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


def _taken_out(total: tir.Expr, whole: tir.Expr, name: tir.Expr) -> tir.Expr | None:
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
