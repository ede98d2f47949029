"""Several blocks that fill one buffer between them: zeros and what they surround, or every second
element each.

What a block writes over its whole domain is a box with a stride along each dimension. Elements
whose indices are the same modulo all strides are looked at together: among them, each box is plain.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import lcm, prod
from typing import NamedTuple

from tilewright.tensor import ir as tir
from tilewright.tensor.arith import Analyzer
from tilewright.tensor.arith.boxes import covers
from tilewright.tensor.arith.itermap import IterMap, detect
from tilewright.tensor.arith.sweep import region_bounds
from tilewright.tensor.validate.bindings import Bound
from tilewright.tensor.visit import free_vars, substitute

__all__ = ["blocks_fill", "fill_together"]

ZERO = tir.Const(0)
_MOST_CLASSES = 64  # of elements that are looked at together; more are not worth the time


class _Stride(NamedTuple):
    """`start`, `start + step`, … : so many indices."""

    start: tir.Expr
    step: int
    length: tir.Expr


_Grid = list[_Stride]
Loops = Sequence[tuple[tir.Var, tir.Expr]]


def fill_together(writers: Sequence[Bound], buffer: tir.Buffer) -> bool:
    """Is each element of the buffer among those that one of the blocks writes?"""
    return blocks_fill([writer.place.block for writer in writers], buffer)


def blocks_fill(writers: Sequence[tir.Block], buffer: tir.Buffer) -> bool:
    """As `fill_together`, for blocks that run at every point of their domains."""
    grids = [
        grid
        for block in writers
        for region in block.writes
        if region.buffer is buffer
        for grid in _grids(block, region)
    ]
    if not grids:
        return False
    steps = [lcm(*[grid[n].step for grid in grids]) for n in range(len(buffer.shape))]
    if prod(steps) > _MOST_CLASSES:
        return False
    analyzer = Analyzer({tir.Var("d"): size for size in buffer.shape})
    return all(
        _is_filled(grids, buffer, steps, rest, analyzer) for rest in product(*map(range, steps))
    )


def _is_filled(
    grids: Sequence[_Grid],
    buffer: tir.Buffer,
    steps: Sequence[int],
    rest: Sequence[int],
    analyzer: Analyzer,
) -> bool:
    """Are the elements filled whose indices leave these rests when divided by `steps`?"""
    boxes = []
    for grid in grids:
        box = [_part(*one, analyzer) for one in zip(grid, steps, rest, strict=True)]
        known = tuple([span for span in box if span is not None])
        if len(known) == len(box):
            boxes.append(known)
    sizes = zip(buffer.shape, steps, rest, strict=True)
    whole = [tir.Range(ZERO, (size - r + (step - 1)) // step) for size, step, r in sizes]
    return covers(boxes, whole, analyzer)


def _part(stride: _Stride, step: int, rest: int, analyzer: Analyzer) -> tir.Range | None:
    """The numbers n with `n * step + rest` among the indices; None if there are none for sure."""
    if not analyzer.prove_equal((stride.start - rest) % stride.step, ZERO):
        return None
    if step == 1:
        return tir.Range(stride.start, stride.length)
    first = (stride.start - rest + (step - 1)) // step
    last = (stride.start + (stride.length - 1) * stride.step - rest) // step
    return tir.Range(first, last - first + 1)


def _grids(block: tir.Block, region: tir.Region) -> list[_Grid]:
    """Grids of which a block writes all elements over its whole domain."""
    starts: list[tir.Expr] = []
    inside: list[tuple[tir.Var, tir.Expr]] = []
    for span in region.ranges:
        start = span.start
        if tir.int_value(span.extent) != 1:
            inside.append((tir.Var("inside"), span.extent))
            start = start + inside[-1][0]
        starts.append(start)
    used = {var for part in (*starts, *[e for _, e in inside]) for var in free_vars(part)}
    loops = [(it.var, it.extent) for it in block.iters if it.var in used] + inside
    return _grids_of(starts, loops, _MOST_CLASSES)


def _grids_of(starts: Sequence[tir.Expr], loops: Loops, most: int) -> list[_Grid]:
    """At most so many grids; a loop is taken apart where all are no single one: `v * 18 + u`."""
    grid = _grid(starts, loops)
    if grid is not None:
        return [grid]
    lengths = {var: tir.int_value(extent) for var, extent in loops}
    short = [(n, var) for var, n in lengths.items() if n is not None and 1 < n <= most]
    if not short:
        return []
    count, var = min(short, key=lambda pair: pair[0])
    found: list[_Grid] = []
    for number in range(count):
        at: dict[tir.Var, tir.Expr] = {var: tir.Const(number)}
        rest = [(v, substitute(e, at)) for v, e in loops if v is not var]
        found += _grids_of([substitute(start, at) for start in starts], rest, most // count)
    return found


def _grid(starts: Sequence[tir.Expr], loops: Loops) -> _Grid | None:
    """The grid that indices fill while loops run."""
    analyzer = Analyzer(dict(loops))
    grid: _Grid = []
    digits: list[tir.Expr] = []
    for start, span in zip(starts, region_bounds(starts, loops, Analyzer()), strict=True):
        if span is None:
            return None
        step = analyzer.divisor(start - span.start) or 1
        grid.append(_Stride(span.start, step, analyzer.simplify((span.extent - 1) // step + 1)))
        digits.append(analyzer.simplify((start - span.start) // step))
    map_ = detect(digits, [stride.length for stride in grid], loops)
    return grid if isinstance(map_, IterMap) else None
