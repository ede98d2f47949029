"""How much memory nested steps touch: distinct bytes, and cache lines.

Steps are (bytes apart, how many), of all loops that move an access. Sorted by distance, each either
lays copies of what the shorter ones touch side by side, or lets them overlap. So a block of several
whole dimensions is one run, whatever its dimensions, and windows share what they overlap in. Exact
for tiles and dense windows; an estimate where holes overlap.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tilewright.schedule.recipes.work import extent_or_assumed
from tilewright.tensor import ir as tir
from tilewright.tuning.features.nests import Access, Statement

__all__ = ["Footprint", "footprint", "footprint_of", "footprints"]


class Footprint(NamedTuple):
    """Distinct bytes and lines."""

    size_bytes: float
    lines: float


NONE = Footprint(0.0, 0.0)


def footprint(
    steps: Iterable[tuple[float, int]], element_bytes: int, line_bytes: int, limit: float = math.inf
) -> Footprint:
    """What steps of (bytes, count) touch of a buffer of at most `limit` bytes."""
    size = span = float(element_bytes)
    lines, whole = 1.0, True  # whether each line in the span is touched
    for apart, count in sorted((abs(b), n) for b, n in steps if b and n > 1):
        wider = span + apart * (count - 1)
        size = size * count if apart >= span else min(size * count, size / span * wider)
        if apart <= max(span, line_bytes) and whole:
            lines = max(1.0, math.ceil(wider / line_bytes))
        else:
            lines, whole = min(lines * count, math.ceil(wider / line_bytes)), False
        span = wider
    lines = min(lines, math.ceil(limit / line_bytes)) if limit < math.inf else lines
    return Footprint(min(size, limit), lines)


def footprint_of(accesses: Sequence[Access], depth: int, line: int) -> Footprint:
    """What accesses of one buffer touch while the loops from `depth` on run.

    Those that differ in where they begin are one more step; others count each for itself.
    """
    buffer = accesses[0].buffer
    element = buffer.dtype.size_bytes
    limit = float(math.prod(extent_or_assumed(d) for d in buffer.shape) * element)
    alike: dict[object, list[Access]] = {}
    for access in accesses:
        alike.setdefault((access.steps, access.run), []).append(access)
    found = []
    for group in alike.values():
        first = group[0]
        steps = [(apart * element, n) for own in first.steps[depth:] for apart, n in own]
        steps.append((first.run[0] * element, first.run[1]))
        steps.append(_beginnings(group, element))
        found.append(footprint(steps, element, line, limit))
    lines = min(sum(f.lines for f in found), max(1, math.ceil(limit / line)))
    return Footprint(min(sum(f.size_bytes for f in found), limit), lines)


def _beginnings(group: Sequence[Access], element: int) -> tuple[float, int]:
    offsets = {a.offset for a in group}
    if len(offsets) == 1:
        return 0.0, 1
    return (max(offsets) - min(offsets)) * element / (len(offsets) - 1), len(offsets)


def footprints(statement: Statement, line: int) -> dict[tir.Buffer, list[Footprint]]:
    """Of each buffer in memory, by the first loop that runs: all of them, …, none."""
    by_buffer: dict[tir.Buffer, list[Access]] = {}
    for access in statement.accesses:
        if access.in_memory:
            by_buffer.setdefault(access.buffer, []).append(access)
    depths = range(len(statement.loops) + 1)
    return {
        buffer: [footprint_of(own, depth, line) for depth in depths]
        for buffer, own in by_buffer.items()
    }
