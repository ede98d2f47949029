"""What a stored value computes, counted: multiply-adds as such, by floats and integers.

A product that is added to something is one multiply-add and neither a product nor a sum; counting
its parts, or none of them, is what makes arithmetic intensities of shipped extractors wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tilewright.tensor import ir as tir
from tilewright.tensor.functions import FUNCTIONS, MARKS
from tilewright.tensor.node import Node
from tilewright.tensor.visit import children

__all__ = ["KINDS", "Operations", "operations_of"]

KINDS: Final = ("mad", "add", "mul", "div", "compare", "math", "other")
"""Multiply-adds; sums; products; quotients and remainders; comparisons; functions; the rest."""

_OF: Final[Mapping[type[Node], str]] = {
    tir.Add: "add",
    tir.Sub: "add",
    tir.Neg: "add",
    tir.Mul: "mul",
    tir.Div: "div",
    tir.FloorDiv: "div",
    tir.FloorMod: "div",
    tir.Min: "compare",
    tir.Max: "compare",
    tir.Cast: "other",
    tir.ShiftLeft: "other",
    tir.ShiftRight: "other",
    tir.BitXor: "other",
    tir.Reduce: "other",
}


@dataclass(frozen=True)
class Operations:
    """Counts of one execution, lanes included; in the order of `KINDS`."""

    floats: tuple[int, ...]
    integers: tuple[int, ...]
    logic: int
    selects: int
    instructions: tuple[str, ...] = ()
    """Names of calls that stand for machine instructions."""

    @property
    def flops(self) -> int:
        """Float operations; a multiply-add is two."""
        return sum(self.floats) + self.floats[0]

    @property
    def of_values(self) -> tuple[object, ...]:
        """What statements that compute alike have in common, wherever their operands lie."""
        return self.floats, self.logic, self.selects, self.instructions

    @property
    def total(self) -> int:
        """Of values; index arithmetic is not among it if no value is an integer."""
        return sum(self.floats) + self.logic + self.selects + len(self.instructions)


def operations_of(value: tir.Expr) -> Operations:
    """Count in an expression, and in the indices of what it loads."""
    counter = _Counter()
    counter.visit(value)
    names = (
        tuple(counter.floats[k] for k in KINDS),
        tuple(counter.integers[k] for k in KINDS),
    )
    return Operations(*names, counter.logic, counter.selects, tuple(counter.instructions))


class _Counter:
    def __init__(self) -> None:
        self.floats, self.integers = dict.fromkeys(KINDS, 0), dict.fromkeys(KINDS, 0)
        self.logic = self.selects = 0
        self.instructions: list[str] = []

    def visit(self, part: Node) -> None:
        inside = children(part)
        if isinstance(part, tir.Expr):
            if isinstance(part, tir.Add | tir.Sub) and (product := _product_of(part)) is not None:
                self.add(part, "mad")
                inside = (*(c for c in inside if c is not product), *children(product))
            else:
                self.count(part)
        for child in inside:
            if not isinstance(child, tir.Buffer):
                self.visit(child)

    def count(self, part: tir.Expr) -> None:
        match part:
            case tir.Select():
                self.selects += part.dtype.lanes
            case tir.Not() | tir.BitAnd() | tir.BitOr():
                if part.dtype.is_bool:
                    self.logic += part.dtype.lanes
                else:
                    self.add(part, "other")
            case tir.Compare():
                self.add(part.a, "compare")
            case tir.Call():
                self.call(part)
            case _ if type(part) in _OF:
                self.add(part, _OF[type(part)])

    def call(self, part: tir.Call) -> None:
        if part.name in MARKS:
            return
        if part.name.startswith("llvm."):
            self.instructions.append(part.name)
        kind = "math" if part.name in FUNCTIONS else "other"
        self.add(part, "mad" if part.name == "fma" else kind)

    def add(self, part: tir.Expr, kind: str) -> None:
        counts = self.floats if part.dtype.is_float else self.integers
        counts[kind] += part.dtype.lanes


def _product_of(part: tir.Add | tir.Sub) -> tir.Expr | None:
    """The product that is an operand of a sum; of two, one."""
    return next((x for x in (part.b, part.a) if type(x) is tir.Mul), None)
