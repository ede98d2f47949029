"""Features of the buffers of a statement: eighteen numbers for each of the five busiest.

Only memory counts here; tiles in registers have features of their own. Buffers are ordered by lines
and bytes, and by their first access where those tie: never by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from tilewright.tensor import ir as tir
from tilewright.tuning.features.footprints import Footprint
from tilewright.tuning.features.nests import Access, Program, Statement
from tilewright.tuning.features.scaling import signed_log2

__all__ = ["BUFFERS", "buffer_names", "buffer_rows"]

BUFFERS: Final = 5

_FLAGS: Final = ("read", "write", "read_write")
_REUSE: Final = ("reuse_loop", "reuse_serial", "reuse_none")
_SIZES: Final = ("bytes", "unique_bytes", "lines", "unique_lines")
_NUMBERS: Final = (*_SIZES, "reuse_iterations", "reuse_bytes", "reuse_count")
_NUMBERS_BY_REUSE: Final = tuple(f"{name}_by_reuse" for name in _SIZES)

Touched = Mapping[tir.Buffer, Sequence[Footprint]]


@dataclass(frozen=True)
class _Reuse:
    kind: str
    iterations: float = 0.0
    size_bytes: float = 0.0
    count: float = 0.0


def buffer_names(count: int) -> list[str]:
    """Columns of so many buffers."""
    each = (*_FLAGS, *_SIZES, *_REUSE, *_NUMBERS[4:], *_NUMBERS_BY_REUSE, "stride")
    return [f"buffer{k}_{name}" for k in range(count) for name in each]


def buffer_rows(
    program: Program, statement: Statement, touched: Touched, line: int
) -> dict[str, float]:
    """The numbers of the busiest buffers; zeros for those that there are not."""
    found = [_one(program, statement, touched, buffer, line) for buffer in touched]
    order = sorted(range(len(found)), key=lambda k: (-found[k]["lines"], -found[k]["bytes"], k))
    row = dict.fromkeys(buffer_names(BUFFERS), 0.0)
    for place, k in enumerate(order[:BUFFERS]):
        for name, value in found[k].items():
            is_flag = name in _FLAGS or name in _REUSE
            row[f"buffer{place}_{name}"] = value if is_flag else signed_log2(value)
    return row


def _one(
    program: Program, statement: Statement, touched: Touched, buffer: tir.Buffer, line: int
) -> dict[str, float]:
    own = [a for a in statement.accesses if a.buffer is buffer]
    reads, writes = any(not a.is_store for a in own), any(a.is_store for a in own)
    element, runs = buffer.dtype.size_bytes, statement.iterations
    steps = _steps(own, len(statement.loops))
    moving = [k for k, step in enumerate(steps) if step]
    last = moving[-1] if moving else -1
    inside = prod(loop.extent for loop in statement.loops[last + 1 :])
    stride = steps[last] if moving else 0.0
    unique = touched[buffer][0]
    sizes = {
        "bytes": float(element * runs),
        "unique_bytes": unique.size_bytes,
        "lines": max(1.0, runs / inside * min(1.0, stride * element / line)),
        "unique_lines": unique.lines,
    }
    reuse = _reuse(program, statement, touched, buffer, steps)
    by_reuse = {f"{n}_by_reuse": v / (reuse.count or 0.5) for n, v in sizes.items()}
    flags = (reads and not writes, writes and not reads, reads and writes)
    return {
        **{name: float(value) for name, value in zip(_FLAGS, flags, strict=True)},
        **sizes,
        **{name: float(name == reuse.kind) for name in _REUSE},
        "reuse_iterations": reuse.iterations,
        "reuse_bytes": reuse.size_bytes,
        "reuse_count": reuse.count,
        **by_reuse,
        "stride": stride if last == len(statement.loops) - 1 else 0.0,
    }


def _steps(own: Sequence[Access], loops: int) -> list[float]:
    """The least step of each loop among accesses that it moves; 0 if it moves none."""
    found = []
    for k in range(loops):
        moved = [abs(a.slopes[k]) for a in own if a.slopes[k]]
        found.append(min(moved, default=0.0))
    return found


def _reuse(
    program: Program,
    statement: Statement,
    touched: Touched,
    buffer: tir.Buffer,
    steps: Sequence[float],
) -> _Reuse:
    """Where a buffer comes back first, from the innermost loop outwards.

    By a loop that does not move it, together with those directly outside that do not either; or by
    another statement in the same loop.
    """
    loops = statement.loops
    for k in range(len(loops) - 1, -1, -1):
        inside = prod(loop.extent for loop in loops[k + 1 :])
        if not steps[k]:
            count, outer = loops[k].extent, k - 1
            while outer >= 0 and not steps[outer]:
                count, outer = count * loops[outer].extent, outer - 1
            between = sum(f[k + 1].size_bytes for f in touched.values())
            return _Reuse("reuse_loop", float(inside), between, float(count))
        users = program.users[loops[k].var, buffer]
        if users > 1:
            between = sum(f[k].size_bytes for f in touched.values()) / loops[k].extent
            return _Reuse("reuse_serial", float(inside), between, float(users - 1))
    return _Reuse("reuse_none")
