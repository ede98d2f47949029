"""How many instructions an expression is, on a vector of any width.

Functions count as the arithmetic that they expand to (`intrin/functions`), so that a new function
has a cost without anybody saying so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from tilewright.dtypes import DType, index
from tilewright.intrin.functions import EXPANSIONS
from tilewright.tensor import ir as tir
from tilewright.tensor.functions import MARKS
from tilewright.tensor.visit import children

__all__ = ["Arithmetic", "arithmetic_of"]


@dataclass(frozen=True)
class Arithmetic:
    """Instructions on one vector; `depth` of them follow each other, `live` values are needed."""

    operations: int = 0
    divisions: int = 0
    roots: int = 0
    depth: int = 0
    live: int = 0

    def shared_by(self, count: int) -> Arithmetic:
        """The part of one of `count` vectors, of which each takes another way."""
        counts = (self.operations, self.divisions, self.roots)
        operations, divisions, roots = (-(-n // count) for n in counts)
        return Arithmetic(operations, divisions, roots, self.depth, max(1, self.live))


def arithmetic_of(values: Sequence[tir.Expr], *, fma: bool, folds: bool = False) -> Arithmetic:
    """The instructions of some values; a product that `folds` into a sum is one with that."""
    counter = _Counter(fma=fma, folds=folds)
    for value in values:
        counter.visit(value)
    return counter.found


class _Counter:
    """Writes instructions down in order, each with the numbers of those that it reads.

    A choice that is `unlikely` takes its other side.
    """

    def __init__(self, *, fma: bool, folds: bool = False) -> None:
        self._reads: list[tuple[int, ...]] = []
        self._depths: list[int] = []
        self._counts = {"operations": 0, "divisions": 0, "roots": 0}
        self._live = 0  # of functions, which are counted by themselves
        self._fma, self._fused = fma, fma and folds
        self._lets: dict[tir.Var, int | None] = {}

    @property
    def found(self) -> Arithmetic:
        depth = max(self._depths, default=0)
        return Arithmetic(**self._counts, depth=depth, live=max(self._live, self._most_alive()))

    def _most_alive(self) -> int:
        """Values at most that some instruction behind their own still reads."""
        last = {number: at for at, reads in enumerate(self._reads) for number in reads}
        alive = most = 0
        for at, reads in enumerate(self._reads):
            alive += 1 - sum(last[number] == at for number in set(reads))
            most = max(most, alive)
        return most

    def visit(self, part: tir.Expr) -> int | None:
        """The number of the instruction that makes a value; None for literals and addresses."""
        if part.dtype.scalar == index:
            return None
        match part:
            case tir.Const() | tir.Broadcast():
                return None
            case tir.Var():
                if part not in self._lets:
                    self._lets[part] = self._new(0)
                return self._lets[part]
            case tir.Load():
                return self._new(0)
            case tir.Let(var=var, value=value, body=body):
                self._lets[var] = self.visit(value)
                return self.visit(body)
            case tir.Reinterpret(value=value):
                return self.visit(value)
            case tir.Select(cond=cond, if_true=a, if_false=b):
                return self._select(cond, a, b)
            case tir.Call():
                return self._call(part)
            case tir.Binary(a=a, b=b):
                return self._binary(part, a, b)
        return self._operation(*(c for c in children(part) if isinstance(c, tir.Expr)))

    def _new(self, depth: int, reads: Sequence[int | None] = ()) -> int:
        """A value that is so many instructions behind those that it reads."""
        known = tuple(number for number in reads if number is not None)
        self._reads.append(known)
        self._depths.append(depth + max((self._depths[n] for n in known), default=0))
        return len(self._reads) - 1

    def _operation(self, *operands: tir.Expr, kind: str = "operations") -> int:
        reads = [self.visit(operand) for operand in operands]
        self._counts[kind] += 1
        return self._new(1, reads)

    def _select(self, cond: tir.Expr, a: tir.Expr, b: tir.Expr) -> int | None:
        if type(cond) is tir.Call and cond.name == "unlikely":
            self.visit(cond.args[0])
            return self.visit(b)
        if _asks_where(cond):
            return self._new(0, [self.visit(a), self.visit(b)])  # decided before anything runs
        return self._operation(cond, a, b)

    def _binary(self, part: tir.Expr, a: tir.Expr, b: tir.Expr) -> int | None:
        if _asks_where(part):
            return None
        if type(part) is tir.Div and not isinstance(b, tir.Const):
            return self._operation(a, b, kind="divisions")
        if self._fused and type(part) in (tir.Add, tir.Sub):
            for product, other in ((a, b), (b, a)):
                if type(product) is tir.Mul:
                    return self._operation(product.a, product.b, other)
        return self._operation(a, b)

    def _call(self, part: tir.Call) -> int | None:
        if part.name in MARKS:
            before = self._fused
            self._fused = self._fma and part.name == "contracted"
            found = self.visit(part.args[0])
            self._fused = before
            return found
        if part.name not in EXPANSIONS:
            kind = "roots" if part.name == "sqrt" else "operations"
            return self._operation(*part.args, kind=kind)
        own = _function(part.name, tuple(arg.dtype.scalar for arg in part.args), self._fma)
        reads = [self.visit(arg) for arg in part.args]
        for kind in self._counts:
            self._counts[kind] += getattr(own, kind)
        self._live = max(self._live, own.live)
        return self._new(own.depth, reads)


def _asks_where(cond: tir.Expr) -> bool:
    """Whether a condition is about places, not about values."""
    if isinstance(cond, tir.BitAnd | tir.BitOr):
        return _asks_where(cond.a) and _asks_where(cond.b)
    return isinstance(cond, tir.Compare) and cond.a.dtype.scalar == index


@lru_cache(maxsize=256)
def _function(name: str, dtypes: tuple[DType, ...], fma: bool) -> Arithmetic:  # noqa: FBT001
    """The instructions that a function expands to."""
    args = tuple(tir.Var(f"x{n}", dtype) for n, dtype in enumerate(dtypes))
    return arithmetic_of([EXPANSIONS[name](args)], fma=fma)
