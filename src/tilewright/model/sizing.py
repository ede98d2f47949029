"""The sizes of a program: dimensions of the graph as numbered postfix expressions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from tilewright.errors import Code, InternalError
from tilewright.graph.guards import Guard
from tilewright.graph.ir import Shape, Value
from tilewright.graph.sizes import dims_equal, never_exceeds, product, tidy
from tilewright.model.exhaustion import TooLarge
from tilewright.runtime.failures import ALIKE, FALSE_HERE, OR_ONE, TRUE_HERE
from tilewright.runtime.program import Size, SizeExpr, SizeOp
from tilewright.tensor import ir as tir
from tilewright.tensor.printer import print_node
from tilewright.tensor.visit import free_vars, walk

__all__ = ["SizeTable", "is_plain"]

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


def is_plain(dim: tir.Expr) -> bool:
    """Whether a dimension can be computed and is not negative, whatever the sizes of a run are."""
    dim = tidy(dim)
    while isinstance(dim, tir.Add):  # a long sum leans to the left
        if not is_plain(dim.b):
            return False
        dim = dim.a
    match dim:
        case tir.Const(value=number):
            return number >= 0
        case tir.Var():
            return True
        case tir.Mul(a=a, b=b) | tir.Min(a=a, b=b):
            return is_plain(a) and is_plain(b)
        case tir.Max(a=a, b=b):
            parts = (a, b)
            return any(map(is_plain, parts)) and all(map(_is_total, parts))
        case tir.FloorDiv(a=a, b=tir.Const(value=divisor)):
            return divisor > 0 and is_plain(a)
        case tir.FloorMod(a=a, b=tir.Const(value=divisor)):
            return divisor > 0 and _is_total(a)
        case tir.Select(cond=cond, if_true=a, if_false=b):
            return _is_total(cond) and is_plain(a) and is_plain(b)
    return False


def _is_total(expr: tir.Expr) -> bool:
    """Whether an expression has a value for all sizes: nothing is divided by what may be zero."""
    return all(
        tir.int_value(node.b) not in (None, 0)
        for node in walk(expr)
        if isinstance(node, tir.FloorDiv | tir.FloorMod)
    )


class SizeTable:
    """Numbers for dimensions, in the order in which they become known."""

    def __init__(self, segments: Mapping[tir.Var, int]) -> None:
        self.sizes: list[Size] = []
        self._segments = dict(segments)
        self._entered: dict[tir.Expr, int] = {}
        self._numbers: dict[tir.Expr, int] = {}
        self._late: dict[tuple[tir.Expr, int], int] = {}
        self._required: set[tuple[tir.Expr, tir.Expr, int]] = set()
        self._limited: set[tuple[tir.Expr, tir.Expr, tir.Expr, int]] = set()

    def bind(self, var: tir.Var) -> int:
        """A size that inputs, results or steps tell."""
        if var not in self._numbers:
            self._numbers[var] = len(self.sizes)
            self.sizes.append(Size(var.name, None, self._segments[var]))
        return self._numbers[var]

    def define(self, var: tir.Var, meaning: tir.Expr) -> None:
        """A size that stands for an expression over others, which every run can compute."""
        self._segments[var] = self.segment([meaning])
        value = self.postfix(meaning)
        self._numbers[var] = len(self.sizes)
        self.sizes.append(Size(var.name, value, self._segments[var]))

    def number(self, dim: tir.Expr, since: int = 0) -> int:
        """The number of a dimension, which is computed when its segment is entered.

        One that not every run can compute is asked for when the segment `since` is entered.
        """
        dim = tidy(dim)
        segment = self.segment([dim], since)
        if dim in self._numbers:
            return self._numbers[dim]
        if (dim, segment) not in self._late:
            value = self.postfix(dim)
            self._late[dim, segment] = len(self.sizes)
            self.sizes.append(Size(print_node(dim), value, segment))
        return self._late[dim, segment]

    def require_equal(
        self, a: tir.Expr, b: tir.Expr, since: int = 0, *, or_one: bool = False
    ) -> None:
        """Refuse runs in which two dimensions differ when the segment `since` is entered.

        The check is a size that cannot be computed then: one divided by their being equal. Its name
        says whether another version of the model could take a run in which one of them is one.
        """
        if dims_equal(a, b):
            return
        first, second = sorted((tidy(a), tidy(b)), key=print_node)
        is_known = 1 in (tir.int_value(first), tir.int_value(second))  # and not repeated
        name = f"{print_node(first)} = {print_node(second)}"
        name += OR_ONE if or_one and not is_known else ""
        self._require_same(name, first, second, since)

    def require_alike(self, own: tir.Expr, first: tir.Var, since: int) -> None:
        """Refuse a dimension of an iteration, of segment `since`, that the first has otherwise."""
        self._require_same(f"{print_node(tidy(own))}{ALIKE}", tidy(own), first, since)

    def _require_same(self, name: str, first: tir.Expr, second: tir.Expr, since: int) -> None:
        segment = max(since, self.segment([first, second]))
        if (first, second, segment) not in self._required:
            self._required.add((first, second, segment))
            equal = (*self.postfix(first), *self.postfix(second), (SizeOp.EQ, 0))
            value: SizeExpr = ((SizeOp.CONST, 1), *equal, (SizeOp.FLOORDIV, 0))
            self.sizes.append(Size(name, value, segment))

    def require_guard(self, guard: Guard) -> None:
        """Refuse runs in which the condition of a guard is otherwise, once its sizes are known.

        Sizes that nothing has any more decide nothing.
        """
        if not free_vars(guard.condition) <= self._numbers.keys():
            return
        condition = self.postfix(guard.condition)
        holds = condition if guard.holds else (*condition, (SizeOp.NOT, 0))
        value: SizeExpr = ((SizeOp.CONST, 1), *holds, (SizeOp.FLOORDIV, 0))
        name = f"{guard.key}{TRUE_HERE if guard.holds else FALSE_HERE}"
        self.sizes.append(Size(name, value, self.segment([guard.condition])))

    def require_at_most(self, a: tir.Expr, b: tir.Expr, shape: Shape, since: int = 0) -> None:
        """Refuse runs in which a exceeds b, unless a tensor of this shape has no elements."""
        if never_exceeds(a, b, shape):
            return
        first, second, elements = tidy(a), tidy(b), product(shape)
        segment = max(since, self.segment([first, second, elements]))
        if (first, second, elements, segment) not in self._limited:
            self._limited.add((first, second, elements, segment))
            fits = (*self.postfix(first), *self.postfix(second), (SizeOp.LE, 0))
            empty = (*self.postfix(elements), (SizeOp.CONST, 0), (SizeOp.EQ, 0))
            holds = (*fits, *empty, (SizeOp.OR, 0))
            value: SizeExpr = ((SizeOp.CONST, 1), *holds, (SizeOp.FLOORDIV, 0))
            name = f"{print_node(first)} ≤ {print_node(second)}"
            self.sizes.append(Size(name, value, segment))

    def require_shape(self, shape: Shape, since: int = 0) -> None:
        """Refuse runs in which dimensions are negative, though their product is not.

        It is not with two of them, or with one and a zero.
        """
        doubtful = [tidy(d) for d in shape if not is_plain(d)]
        hides = len(doubtful) > 1 or any(is_plain(d) and not tir.int_value(d) for d in shape)
        for dim in doubtful if hides else ():
            segment = self.segment([dim], since)
            if (dim, dim, segment) not in self._required:
                self._required.add((dim, dim, segment))
                holds = ((SizeOp.CONST, 0), *self.postfix(dim), (SizeOp.LE, 0))
                value: SizeExpr = ((SizeOp.CONST, 1), *holds, (SizeOp.FLOORDIV, 0))
                self.sizes.append(Size(f"{print_node(dim)} ≥ 0", value, segment))

    def dims(self, shape: Shape, since: int = 0) -> tuple[int, ...]:
        """Dimensions as ports write them: a number, or the number k of a size as -1 - k."""
        numbers = [(d, tir.int_value(d)) for d in shape]
        return tuple(n if n is not None else -1 - self.number(d, since) for d, n in numbers)

    def segment(self, dims: Iterable[tir.Expr], since: int = 0) -> int:
        """When all of these dimensions are known, or later, if not every run can compute them.

        A branch that is not taken may have sizes that make no sense: `since` is its segment.
        """
        every = list(dims)
        known = max(map(self._known, every), default=0)
        return known if since <= known or all(map(is_plain, every)) else since

    def _known(self, dim: tir.Expr) -> int:
        """When all sizes of a dimension are known; long ones are asked for again and again."""
        found = self._entered.get(dim)
        if found is None:
            found = max((self._segments[var] for var in free_vars(dim)), default=0)
            self._entered[dim] = found
        return found

    def bytes_of(self, value: Value) -> SizeExpr:
        """How much memory a value takes."""
        return self.postfix(product((*value.stored_shape, tir.Const(value.dtype.size_bytes))))

    def postfix(self, expr: tir.Expr) -> SizeExpr:
        """An expression over sizes in postfix order."""
        match expr:
            case tir.Const(value=value):
                if not -(1 << 63) <= int(value) < 1 << 63:
                    raise TooLarge("a tensor has more bytes than there are addresses")
                return ((SizeOp.CONST, int(value)),)
            case tir.Var():
                return ((SizeOp.SIZE, self._numbers[expr]),)
            case tir.Not(value=inner):
                return (*self.postfix(inner), (SizeOp.NOT, 0))
            case tir.Select(cond=cond, if_true=yes, if_false=no):
                parts = (*self.postfix(cond), *self.postfix(yes), *self.postfix(no))
                return (*parts, (SizeOp.SELECT, 0))
            case tir.BitXor(a=a, b=b) if a.dtype.is_bool:
                return (*self.postfix(a), *self.postfix(b), (SizeOp.NE, 0))
        op = _OPS.get(type(expr))
        if op is None or not isinstance(expr, tir.Binary):
            raise InternalError(I140, {"expr": print_node(expr)})
        return (*self.postfix(expr.a), *self.postfix(expr.b), (op, 0))
