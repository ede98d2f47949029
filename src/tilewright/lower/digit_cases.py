"""Conditions on a digit of a loop variable, which fusing leaves of an inner loop.

    for x in parallel(8):                        for x in parallel(8):
        for j in vectorized(16):                     if x % 2 < 1:
            if x % 2 * 16 + j < 28:                      for j in vectorized(16): …
                …                            →       else:
                                                         for j in vectorized(16):
                                                             if 16 + j < 28: …

Such a condition comes and goes along the loop, so no cut of its range decides it. One test of the
digit does, and leaves conditions that loops further in are cut at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tilewright.lower import fold, forms
from tilewright.lower.conditions import spans
from tilewright.lower.extremes import Loops
from tilewright.tensor import ir as tir
from tilewright.tensor.node import Node
from tilewright.tensor.visit import children, free_vars, rewrite

__all__ = ["DigitCase", "chosen_by_digit", "digit_cases"]

T = TypeVar("T", bound=Node)

_CONSTANTS = {True: tir.TRUE, False: fold.FALSE}


@dataclass(frozen=True, slots=True)
class DigitCase:
    """Values [start, end) of a digit, and what is known of comparisons for them."""

    digit: tir.Expr
    start: int
    end: int
    known: Mapping[tir.Expr, tir.Expr]


def digit_cases(comparison: tir.Compare, loop: tir.For, inner: Loops) -> list[DigitCase] | None:
    """Ranges of the digit through which a comparison depends on a loop; None if none decides it."""
    digit = _digit_in(comparison, loop.var)
    count = None if digit is None else _count(digit, loop)
    if digit is None or count is None:
        return None
    var = tir.Var("digit")
    walk = tir.For(var, tir.Const(count), fold.NOTHING)
    found = spans(_with_digit(comparison, digit, var), walk, inner)
    borders = [] if found is None else [forms.const_of(border) for border in found.borders]
    if found is None or None in borders:
        return None
    ends = [min(max(border or 0, 0), count) for border in borders]
    values: list[Mapping[tir.Expr, tir.Expr]] = [
        {} if v is None else {comparison: _CONSTANTS[v]} for v in found.values
    ]
    cases = [
        DigitCase(digit, start, end, known)
        for start, end, known in zip([0, *ends], [*ends, count], values, strict=True)
        if start < end
    ]
    return cases if any(case.known for case in cases) else None


def chosen_by_digit(body: tir.Stmt, cases: Sequence[DigitCase]) -> tir.Stmt:
    """A copy of the body for each case; where the digit has one value, that stands in its place."""
    result: tir.Stmt | None = None
    for case in reversed(cases):
        special = fold.resolved(body, case.known)
        if case.end - case.start == 1:
            special = _with_digit(special, case.digit, tir.Const(case.start))
        if result is None:
            result = special
            continue
        test = fold.fold_binary(tir.Lt, case.digit, tir.Const(case.end))
        result = fold.branch(test, fold.copied(special, {}), result)
    assert result is not None
    return result


def _digit_in(comparison: tir.Compare, var: tir.Var) -> tir.FloorMod | tir.FloorDiv | None:
    """`v % m`, `v // m` or `v // m % n` through which alone a comparison depends on v."""
    digits = {part for part in _outermost_digits(comparison) if free_vars(part) == {var}}
    if len(digits) != 1:
        return None
    (digit,) = digits
    return None if var in free_vars(_with_digit(comparison, digit, tir.Const(0))) else digit


def _count(digit: tir.FloorMod | tir.FloorDiv, loop: tir.For) -> int | None:
    """How many values a digit has."""
    extent, size = tir.int_value(loop.extent), tir.int_value(digit.b)
    if size is None or size < 1:
        return None
    if isinstance(digit, tir.FloorMod):
        return size
    return None if extent is None or digit.a is not loop.var else -(-extent // size)


def _outermost_digits(expr: Node) -> Iterator[tir.FloorMod | tir.FloorDiv]:
    if isinstance(expr, tir.FloorMod | tir.FloorDiv):
        yield expr
        return
    for child in children(expr):
        yield from _outermost_digits(child)


def _with_digit(node: T, digit: tir.Expr, value: tir.Expr) -> T:
    """`node` with another expression in place of a digit."""
    return rewrite(node, lambda part: value if part == digit else None)
