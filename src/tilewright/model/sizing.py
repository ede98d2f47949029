"""The sizes of a program: dimensions of the graph as numbered postfix expressions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from tilewright.errors import Code, InternalError
from tilewright.graph.ir import Shape, Value
from tilewright.graph.sizes import dims_equal, product, tidy, variables
from tilewright.runtime.program import Size, SizeExpr, SizeOp
from tilewright.tensor import ir as tir
from tilewright.tensor.printer import print_node

__all__ = ["SizeTable"]

I140 = Code("I140", "`{expr}` cannot be a size of a program")

_OPS: Final[dict[type[tir.Expr], SizeOp]] = {
    tir.Add: SizeOp.ADD,
    tir.Sub: SizeOp.SUB,
    tir.Mul: SizeOp.MUL,
    tir.FloorDiv: SizeOp.FLOORDIV,
    tir.FloorMod: SizeOp.MOD,
    tir.Min: SizeOp.MIN,
    tir.Max: SizeOp.MAX,
    tir.Eq: SizeOp.EQ,
    tir.Ne: SizeOp.NE,
    tir.Lt: SizeOp.LT,
    tir.Le: SizeOp.LE,
    tir.BitAnd: SizeOp.AND,
    tir.BitOr: SizeOp.OR,
}


class SizeTable:
    """Numbers for dimensions, in the order in which they become known."""

    def __init__(self, segments: Mapping[tir.Var, int]) -> None:
        self.sizes: list[Size] = []
        self._segments = segments
        self._numbers: dict[tir.Expr, int] = {}
        self._required: set[tuple[tir.Expr, tir.Expr, int]] = set()

    def bind(self, var: tir.Var) -> int:
        """A size that inputs, results or steps tell."""
        if var not in self._numbers:
            self._numbers[var] = len(self.sizes)
            self.sizes.append(Size(var.name, None, self._segments[var]))
        return self._numbers[var]

    def number(self, dim: tir.Expr) -> int:
        """The number of a dimension, which is computed when its segment is entered."""
        dim = tidy(dim)
        if dim not in self._numbers:
            value = self.postfix(dim)
            self._numbers[dim] = len(self.sizes)
            self.sizes.append(Size(print_node(dim), value, self.segment([dim])))
        return self._numbers[dim]

    def require_equal(self, a: tir.Expr, b: tir.Expr, since: int = 0) -> None:
        """Refuse runs in which two dimensions differ when the segment `since` is entered.

        The check is a size that cannot be computed then: one divided by their being equal.
        """
        if dims_equal(a, b):
            return
        first, second = sorted((tidy(a), tidy(b)), key=print_node)
        name = f"{print_node(first)} = {print_node(second)}"
        segment = max(since, self.segment([first, second]))
        if (first, second, segment) not in self._required:
            self._required.add((first, second, segment))
            equal = (*self.postfix(first), *self.postfix(second), (SizeOp.EQ, 0))
            value: SizeExpr = ((SizeOp.CONST, 1), *equal, (SizeOp.FLOORDIV, 0))
            self.sizes.append(Size(name, value, segment))

    def dims(self, shape: Shape) -> tuple[int, ...]:
        """Dimensions as ports write them: a number, or the number k of a size as -1 - k."""
        numbers = [(d, tir.int_value(d)) for d in shape]
        return tuple(n if n is not None else -1 - self.number(d) for d, n in numbers)

    def segment(self, dims: Iterable[tir.Expr]) -> int:
        """When all of these dimensions are known."""
        found = variables(dims)
        return max((self._segments[v] for v in found), default=0)

    def bytes_of(self, value: Value) -> SizeExpr:
        """How much memory a value takes."""
        return self.postfix(product((*value.shape, tir.Const(value.dtype.size_bytes))))

    def postfix(self, expr: tir.Expr) -> SizeExpr:
        """An expression over sizes in postfix order."""
        match expr:
            case tir.Const(value=value):
                return ((SizeOp.CONST, int(value)),)
            case tir.Var():
                return ((SizeOp.SIZE, self._numbers[expr]),)
            case tir.Not(value=inner):
                return (*self.postfix(inner), (SizeOp.NOT, 0))
            case tir.Select(cond=cond, if_true=yes, if_false=no):
                parts = (*self.postfix(cond), *self.postfix(yes), *self.postfix(no))
                return (*parts, (SizeOp.SELECT, 0))
        op = _OPS.get(type(expr))
        if op is None or not isinstance(expr, tir.Binary):
            raise InternalError(I140, {"expr": print_node(expr)})
        return (*self.postfix(expr.a), *self.postfix(expr.b), (op, 0))
