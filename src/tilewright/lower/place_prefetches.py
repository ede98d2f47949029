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
The wishes are spread evenly: many at once would wait for each other, and everything for them. A
part of rows that lie apart (a panel of columns) is fetched row by row. The note `prefetch_ahead=2`
beside the other one means the part behind the next one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.lower import fold, forms
from tilewright.lower.accesses import accesses_of
from tilewright.lower.context import Context
from tilewright.lower.extremes import Loops, extremes
from tilewright.lower.forms import Form
from tilewright.tensor import ir as tir

__all__ = ["place_prefetches"]

NOTE = "prefetch"
AHEAD = "prefetch_ahead"

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
        notes = dict(stmt.notes)
        names, ahead = notes.get(NOTE), notes.get(AHEAD, 1)
        if names is None:
            return fold.loop(stmt, stmt.extent, body)
        assert isinstance(ahead, int)
        wishes = [self.wish(str(name), loops, ahead) for name in _listed(names)]
        plain = stmt.with_fields(notes=tuple(n for n in stmt.notes if n[0] not in (NOTE, AHEAD)))
        return fold.loop(plain, stmt.extent, fold.seq(*wishes, body))

    def wish(self, name: str, loops: tuple[tir.For, ...], ahead: int) -> tir.Stmt:
        """The prefetches of one iteration of the innermost of `loops`."""
        part = _next_part(self.params[name], loops, ahead) if name in self.params else None
        if part is None:
            self.context.remark(f"loop `{loops[-1].var.name}` cannot prefetch `{name}`")
            return fold.NOTHING
        line = self.line_bytes // part.buffer.dtype.size_bytes
        places = part.lines(line) if part.rows == 1 else part.lines_of_rows(line)
        if len(places) > _MOST_LINES:
            self.context.remark(f"loop `{loops[-1].var.name}` is too short to prefetch `{name}`")
            return fold.NOTHING
        return fold.seq(*(tir.Prefetch(part.buffer, (place,)) for place in places))


@dataclass(frozen=True)
class _Part:
    """What is read next, and the loops that share the fetching with their iterations at most.

    `elements` of each of some `rows`, which begin `apart` elements from each other.
    """

    buffer: tir.Buffer
    start: tir.Expr
    rows: int
    apart: int
    elements: int
    iterations: tuple[tuple[tir.For, int], ...]

    def lines(self, line: int) -> list[tir.Expr]:
        """What one iteration fetches of a single row: as many lines one behind the other."""
        share = math.ceil(self.elements / math.prod(most for _, most in self.iterations))
        lines = math.ceil(share / line)
        step = share if lines == 1 else lines * line
        first = self.start + _counted(self.iterations) * step
        return [first + n * line for n in range(lines)]

    def lines_of_rows(self, line: int) -> list[tir.Expr]:
        """What one iteration fetches of several rows.

        The innermost loop walks along the rows, and those around it share what it passes by.
        """
        *around, walk = self.iterations
        passed = math.ceil(self.rows / walk[1])
        per_row = math.ceil(self.elements / line)
        share = math.ceil(passed * per_row / math.prod(most for _, most in around))
        found: list[tir.Expr] = []
        for n in range(share):
            turn = _counted(around) * share + n
            row = _counted([walk]) * passed + turn % passed
            found.append(self.start + row * self.apart + turn // passed % per_row * line)
        return found


def _counted(loops: Sequence[tuple[tir.For, int]]) -> tir.Expr:
    """The number of an iteration of several loops."""
    counter: tir.Expr = tir.Const(0)
    for loop, most in loops:
        is_known = tir.int_value(_largest(loop.extent)) is not None
        counter = counter * most + (loop.var if is_known else loop.var % most)
    return counter


def _next_part(buffer: tir.Buffer, loops: tuple[tir.For, ...], ahead: int) -> _Part | None:
    """The part so many further; None if it is not known what comes next."""
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
        extent = _dense(index, inside) or _dense_rows(index, inside)
        if extent is None:
            return None
        found.add((mover, *extent))
    if len(found) > 1:
        return None
    ((mover, start, elements, rows, apart),) = found
    moved = {loops[mover].var: loops[mover].var + ahead}
    iterations = tuple(
        (loop, tir.int_value(_largest(loop.extent)) or _UNKNOWN) for loop in loops[mover + 1 :]
    )
    return _Part(buffer, fold.substitute(start, moved), rows, apart, elements, iterations)


_Extent = tuple[tir.Expr, int, int, int]
"""Where a part begins, elements of a row, rows, and how far these are apart."""


def _dense(index: Form, inside: Loops) -> _Extent | None:
    """The elements that loops read, if there are few gaps between them."""
    ends = extremes(index, inside)
    count = None if ends is None else forms.const_of(forms.minus(ends[1], ends[0]))
    if ends is None or count is None:
        return None
    points = math.prod(tir.int_value(e) or 1 for var, e in inside if forms.mentions(index, var))
    return None if count >= points * _SPARSE else (forms.expr_of(ends[0]), count + 1, 1, 0)


def _dense_rows(index: Form, inside: Loops) -> _Extent | None:
    """The same for one loop that goes from row to row; in each of them there are few gaps."""
    for var, extent in inside:
        parts, rows = forms.split(index, var), tir.int_value(extent)
        apart = None if parts is None else forms.const_of(parts[0])
        if parts is None or rows is None or not apart or apart < 0:
            continue
        row = _dense(parts[1], [(other, e) for other, e in inside if other is not var])
        if row is not None:
            start, elements, _, _ = row
            return start, elements, rows, apart
    return None


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
