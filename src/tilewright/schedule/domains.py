"""From a box of a buffer to the iterations of a block that access it.

Two accesses of one buffer usually have the same form, because a layout changes both alike: then
`matched` reads the iterators of the one off the other (`Y[v // 16, v % 16]` against
`Y[(x + 1) // 16, (x + 1) % 16]` gives `v = x + 1`). Otherwise `iterations` reads the indices as
digits of the iterators, and takes spans of the digits for spans of the iterators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.schedule.footprints import Span, is_single, is_whole
from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.node import Node
from tilewright.tensor.terms import terms
from tilewright.tensor.visit import children, free_vars

__all__ = ["Box", "Part", "iterations", "matched", "solved"]

ZERO = tir.Const(0)

Box = Sequence[Span | None]
"""A span for each dimension; None where the dimension does not matter."""

Iters = Mapping[tir.Var, tir.Expr]


def matched(
    iters: Iters, region: tir.Region, other: tir.Region, analyzer: Analyzer
) -> dict[tir.Var, tir.Expr] | None:
    """Values of `iters` (variables of `region`, with extents) that make it the same as `other`.

    `analyzer` knows the variables of `other`. None if the two do not have the same form.
    """
    found: dict[tir.Var, tir.Expr] = {}
    for mine, theirs in zip(region.ranges, other.ranges, strict=True):
        if mine.extent != theirs.extent:
            return None
        if not _unify(mine.start, theirs.start, iters, found, analyzer):
            return None
    return found


def _unify(
    pattern: tir.Expr,
    value: tir.Expr,
    iters: Iters,
    found: dict[tir.Var, tir.Expr],
    analyzer: Analyzer,
) -> bool:
    """Extend `found` so that `pattern` becomes `value`."""
    inside = free_vars(pattern) & iters.keys()
    if not inside:
        return bool(analyzer.prove_equal(pattern, value))
    if len(inside) == 1 and (solved := _solved(pattern, value, analyzer)) is not None:
        var, solution = next(iter(inside)), solved
        return found.setdefault(var, solution) == solution
    if not _same_shape(pattern, value, iters, found):
        return False
    # In a sum of several iterators, digits are unique only inside their ranges.
    return len(inside) == 1 or all(_fits(found[var], iters[var], analyzer) for var in inside)


def _solved(pattern: tir.Expr, value: tir.Expr, analyzer: Analyzer) -> tir.Expr | None:
    """The variable's value in `v` or `v ± constant`; None for any other pattern."""
    if isinstance(pattern, tir.Var):
        return value
    parts = terms(pattern)
    offset = sum(k * int(t.value) for k, t in parts if type(t) is tir.Const)
    rest = [(k, t) for k, t in parts if type(t) is not tir.Const]
    if len(rest) == 1 and rest[0][0] == 1 and isinstance(rest[0][1], tir.Var):
        return analyzer.simplify(value - offset)
    return None


def _same_shape(pattern: Node, value: Node, iters: Iters, found: dict[tir.Var, tir.Expr]) -> bool:
    if isinstance(pattern, tir.Var):
        if pattern in iters:
            assert isinstance(value, tir.Expr)
            return found.setdefault(pattern, value) == value
        return pattern is value
    if type(pattern) is not type(value):
        return False
    if isinstance(pattern, tir.Const | tir.Load) or not isinstance(pattern, tir.Expr):
        return pattern == value
    mine, theirs = tuple(children(pattern)), tuple(children(value))
    return len(mine) == len(theirs) and all(
        _same_shape(a, b, iters, found) for a, b in zip(mine, theirs, strict=True)
    )


def _fits(value: tir.Expr, extent: tir.Expr, analyzer: Analyzer) -> bool:
    return bool(analyzer.prove(value >= 0)) and bool(analyzer.prove(value < extent))


@dataclass(frozen=True, slots=True)
class Part:
    """Values of an iterator. `exact`: the block accesses the box there and nowhere else."""

    span: Span
    exact: bool


@dataclass(frozen=True, slots=True)
class _Digit:
    """`(var // weight) % radix`; the leading digit has no radix."""

    var: tir.Var
    weight: int
    radix: int | None


def iterations(
    iters: Iters, region: tir.Region, box: Box, analyzer: Analyzer
) -> tuple[dict[tir.Var, Part], bool]:
    """The values of `iters` at which `region`, written in them, meets `box`.

    An iterator that is not in the result is not limited. The flag says whether every index could be
    read: if not, iterations that the result allows may leave the box.
    """
    parts: dict[tir.Var, Part] = {}
    digits: dict[tir.Var, list[tuple[_Digit, Span | None]]] = {}
    understood = True
    for index, span, size in zip(region.ranges, box, region.buffer.shape, strict=True):
        digit, offset = _shifted_digit(index.start)
        if digit is not None and tir.int_value(index.extent) == 1:
            moved = span if span is None else Span(span.lo - offset, span.length)
            digits.setdefault(digit.var, []).append((digit, moved))
            continue
        if span is None:
            continue
        found = _from_sum(index, span, iters, analyzer)
        if found is None:
            understood &= is_whole(span, size, analyzer)
            continue
        for var, part in found.items():
            understood &= var not in parts
            parts.setdefault(var, part)
    for var, group in digits.items():
        if all(span is None for _, span in group):
            continue
        digit_part = _from_digits(group, iters[var], analyzer)
        understood &= digit_part is not None and var not in parts
        if digit_part is not None:
            parts.setdefault(var, digit_part)
    return parts, understood


def _shifted_digit(expr: tir.Expr) -> tuple[_Digit | None, int]:
    """Read a digit plus a constant, as padding makes it."""
    match expr:
        case tir.Add(a=a, b=tir.Const(value=value)):
            return _digit(a), int(value)
        case tir.Sub(a=a, b=tir.Const(value=value)):
            return _digit(a), -int(value)
    return _digit(expr), 0


def _digit(expr: tir.Expr) -> _Digit | None:
    """Read `v // w`, `v % r` or `(v // w) % r`; a plain variable is read as a sum instead."""
    match expr:
        case tir.FloorMod(a=a, b=tir.Const(value=radix)):
            if isinstance(a, tir.Var):
                return _Digit(a, 1, int(radix))
            inner = _digit(a)
            if inner is not None and inner.radix is None:
                return _Digit(inner.var, inner.weight, int(radix))
        case tir.FloorDiv(a=tir.Var() as var, b=tir.Const(value=weight)):
            return _Digit(var, int(weight), None)
    return None


def _from_digits(
    group: list[tuple[_Digit, Span | None]], extent: tir.Expr, analyzer: Analyzer
) -> Part | None:
    """The values of one iterator from spans of its digits; None if digits are missing."""
    group.sort(key=lambda pair: -pair[0].weight)
    lo: tir.Expr = ZERO
    length: tir.Expr = tir.Const(1)
    exact, above = True, None
    for digit, span in group:
        if above is None:
            if digit.radix is not None:
                return None
            radix = (extent + (digit.weight - 1)) // digit.weight
        elif digit.radix is None or digit.weight * digit.radix != above.weight:
            return None
        else:
            radix = tir.Const(digit.radix)
        if span is None:
            span = Span(ZERO, radix)
        if above is not None and tir.int_value(length) != 1:
            exact = exact and is_whole(span, radix, analyzer)
        lo, length = lo + span.lo * digit.weight, length + (span.length - 1) * digit.weight
        above = digit
    assert above is not None
    length = length + (above.weight - 1)  # digits that do not appear are free
    return Part(Span(analyzer.simplify(lo), analyzer.simplify(length)), exact)


def _from_sum(
    index: tir.Range, span: Span, iters: Iters, analyzer: Analyzer
) -> dict[tir.Var, Part] | None:
    """The iterators of an index `v0 * c0 + v1 * c1 + … + constant` from a span of it."""
    offset = 0
    factors: list[tuple[int, tir.Var]] = []
    for factor, term in terms(index.start):
        number = tir.int_value(term)
        if number is not None:
            offset += factor * number
        elif isinstance(term, tir.Var) and factor > 0 and term in iters:
            factors.append((factor, term))
        else:
            return None
    length = tir.int_value(index.extent)
    if not factors or length is None or len(free_vars(index.start)) != len(factors):
        return None
    factors.sort(key=lambda pair: -pair[0])
    moved = Span(span.lo - offset, span.length)
    if len(factors) > 1:
        return _mixed_radix(factors, length, moved, iters, analyzer)
    factor, var = factors[0]
    first = moved.lo - (length - 1)
    if factor == 1:
        more = span.length if length == 1 else analyzer.simplify(span.length + (length - 1))
        part = Span(analyzer.simplify(first), more)
    else:
        first = analyzer.simplify((first + (factor - 1)) // factor)
        part = Span.between(first, analyzer.simplify(moved.hi // factor), analyzer)
    return {var: Part(part, length == 1 or _aligned(moved, length, factor, analyzer))}


def _aligned(span: Span, length: int, step: int, analyzer: Analyzer) -> bool:
    """Do accesses of this length, one every `step`, fit into the span without crossing its ends?"""
    ends = (span.lo, span.lo + span.length)
    return length <= step and all(analyzer.divisor(end) % step == 0 for end in ends)


def _mixed_radix(
    factors: list[tuple[int, tir.Var]],
    length: int,
    span: Span,
    iters: Iters,
    analyzer: Analyzer,
) -> dict[tir.Var, Part] | None:
    """Iterators fused into one index, each running through the whole factor of the one before."""
    below = 1
    for factor, var in reversed(factors):
        size = tir.int_value(iters[var])
        if factor != below or length != 1 or (size is None and var is not factors[0][1]):
            return None
        below = factor * (size or 1)
    parts: dict[tir.Var, Part] = {}
    lo, hi = analyzer.simplify(span.lo), analyzer.simplify(span.hi)
    for weight, var in factors:
        first, last = analyzer.simplify(lo // weight), analyzer.simplify(hi // weight)
        lo, hi = analyzer.simplify(lo % weight), analyzer.simplify(hi % weight)
        if first != last:
            whole = lo == ZERO and bool(analyzer.prove_equal(hi + 1, tir.Const(weight)))
            parts[var] = Part(Span.between(first, last, analyzer), weight == 1 or whole)
            return parts
        parts[var] = Part(Span(first), exact=True)
    return parts


def solved(
    iters: Iters, region: tir.Region, values: tuple[tir.Expr, ...], analyzer: Analyzer
) -> dict[tir.Var, tir.Expr] | None:
    """The values of `iters` at which `region`, one element written in them, is at `values`.

    None if the indices cannot be read, or do not tell every iterator.
    """
    box: list[Span | None] = []
    for index, value in zip(region.ranges, values, strict=True):
        if free_vars(index.start):
            box.append(Span(value))
        elif analyzer.prove_equal(index.start, value):
            box.append(None)
        else:
            return None
    parts, understood = iterations(iters, region, box, analyzer)
    missing = [var for var in iters if var not in parts]
    if not understood or any(tir.int_value(iters[var]) != 1 for var in missing):
        return None
    if not all(part.exact and is_single(part.span) for part in parts.values()):
        return None
    return {**{var: part.span.lo for var, part in parts.items()}, **dict.fromkeys(missing, ZERO)}
