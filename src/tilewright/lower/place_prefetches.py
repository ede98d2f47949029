"""While loops work on one part of a buffer, its next part is fetched into the cache.

The note `prefetch="W"` on a loop says that each of its iterations shall fetch a share of what is
read of W next. "Next" means: some loop around reads the same part of W in all its iterations (it
walks other data), and a loop around that one moves on.

    for p in range(64):                           for p in range(64):
        for t in range(22):                           for t in range(22):
            for k in range(256, prefetch="W"):            for k in range(256):
                … W[p*4096 + k*16 + j] …      →               prefetch(W[(p+1)*4096 + (t*256+k)*1])
                                                              … W[p*4096 + k*16 + j] …

Hardware follows a stream by itself, but it sees the next part only when its first lines are missed.
The wishes are spread evenly: many at once would wait for each other, and everything for them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.lower import fold, forms
from tilewright.lower.accesses import accesses_of
from tilewright.lower.context import Context
from tilewright.lower.extremes import extremes
from tilewright.lower.forms import Form
from tilewright.tensor import ir as tir

__all__ = ["place_prefetches"]

NOTE = "prefetch"

_MOST_LINES = 8  # in one iteration: more would wait for each other

# Iterations of a loop of unknown length that share the work, the next ones do it again: where there
# are fewer, some of the next part is not fetched; if each fetched everything, they all would wait.
_UNKNOWN = 8

_SPARSE = 2  # a part with more gaps than elements is not worth fetching as a whole


def place_prefetches(func: tir.Func, context: Context) -> tir.Func:
    """Put prefetches into the loops that have a note for it."""
    line = context.target.cache(1).line_bytes
    return func.with_fields(body=_Prefetcher(func, line, context).statement(func.body, ()))


class _Prefetcher:
    def __init__(self, func: tir.Func, line_bytes: int, context: Context) -> None:
        self.params = {param.name: param for param in func.params}
        self.line_bytes, self.context = line_bytes, context

    def statement(self, stmt: tir.Stmt, around: tuple[tir.For, ...]) -> tir.Stmt:
        if type(stmt) is not tir.For:
            return fold.map_parts(stmt, lambda part: self.statement(part, around))
        loops = (*around, stmt)
        body = self.statement(stmt.body, loops)
        names = dict(stmt.notes).get(NOTE)
        if names is None:
            return fold.loop(stmt, stmt.extent, body)
        wishes = [self.wish(str(name), loops) for name in _listed(names)]
        plain = stmt.with_fields(notes=tuple(n for n in stmt.notes if n[0] != NOTE))
        return fold.loop(plain, stmt.extent, fold.seq(*wishes, body))

    def wish(self, name: str, loops: tuple[tir.For, ...]) -> tir.Stmt:
        """The prefetches of one iteration of the innermost of `loops`."""
        part = _next_part(self.params[name], loops) if name in self.params else None
        if part is None:
            self.context.remark(f"loop `{loops[-1].var.name}` cannot prefetch `{name}`")
            return fold.NOTHING
        counter: tir.Expr = tir.Const(0)
        for loop, most in part.iterations:
            is_known = tir.int_value(_largest(loop.extent)) is not None
            counter = counter * most + (loop.var if is_known else loop.var % most)
        line = self.line_bytes // part.buffer.dtype.size_bytes
        share = math.ceil(part.elements / math.prod(most for _, most in part.iterations))
        lines = math.ceil(share / line)
        if lines > _MOST_LINES:
            self.context.remark(f"loop `{loops[-1].var.name}` is too short to prefetch `{name}`")
            return fold.NOTHING
        first = part.start + counter * (share if lines == 1 else lines * line)
        return fold.seq(*(tir.Prefetch(part.buffer, (first + n * line,)) for n in range(lines)))


@dataclass(frozen=True)
class _Part:
    """What is read next, and the loops that share the fetching with their iterations at most."""

    buffer: tir.Buffer
    start: tir.Expr
    elements: int
    iterations: tuple[tuple[tir.For, int], ...]


def _next_part(buffer: tir.Buffer, loops: tuple[tir.For, ...]) -> _Part | None:
    """None if it is not known what comes next."""
    for depth in reversed(range(len(loops))):
        reads = [a for a in accesses_of(loops[depth], [buffer])[buffer] if not a.writes]
        if reads:
            break
    else:
        return None
    found = set()
    for read in reads:
        (index,) = read.indices
        mover = _mover(index, loops[: depth + 1], again=depth + 1 < len(loops))
        if mover is None:
            return None
        inside = [(loop.var, loop.extent) for loop in loops[mover + 1 : depth + 1]]
        inside = [(var, _largest(extent)) for var, extent in (*inside, *read.loops[1:])]
        ends = extremes(index, inside)
        count = None if ends is None else forms.const_of(forms.minus(ends[1], ends[0]))
        if ends is None or count is None:
            return None
        points = math.prod(tir.int_value(e) or 1 for var, e in inside if forms.mentions(index, var))
        if count >= points * _SPARSE:
            return None
        found.add((mover, forms.expr_of(ends[0]), count + 1))
    if len(found) > 1:
        return None
    ((mover, start, elements),) = found
    moved = {loops[mover].var: loops[mover].var + 1}
    iterations = tuple(
        (loop, tir.int_value(_largest(loop.extent)) or _UNKNOWN) for loop in loops[mover + 1 :]
    )
    return _Part(buffer, fold.substitute(start, moved), elements, iterations)


def _mover(index: Form, loops: Sequence[tir.For], *, again: bool) -> int | None:
    """The innermost loop that moves on outside of a loop that reads the same again.

    Without such a loop, the innermost one around the loop that fetches.
    """
    moving = [d for d, loop in enumerate(loops) if forms.mentions(index, loop.var)]
    last = len(loops) if again else max(set(range(len(loops))).difference(moving), default=-1)
    outside = [d for d in moving if d < last] or [d for d in moving if d + 1 < len(loops)]
    return outside[-1] if outside else None


def _listed(names: object) -> list[object]:
    return list(names) if isinstance(names, (list, tuple)) else [names]


def _largest(extent: tir.Expr) -> tir.Expr:
    """The extent; where tiles differ, that of the largest."""
    if type(extent) is tir.TileSize:
        return tir.Const(max(size for size, _ in extent.cover.segments))
    return extent
