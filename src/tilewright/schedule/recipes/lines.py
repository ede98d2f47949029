"""Windows that slide along lines: depthwise convolutions and pooling, channels first.

    for channel, block of lines:
        copy the lines of the data that the block reads, with their border, sorted by phase
        for tile of lines, vector of places:
            sums = 0                             (registers: one vector for each line of the tile)
            for each element of the window: sums += copy[lines, places + element] · weight
            out = epilogue(sums)

Neighbouring lines share most of their windows: what is loaded for one is used for the others.

The copy stays in the first cache. Its lines are long enough for whole vectors of results, of which
only the places that exist are stored. Windows that move by more than one place would gather their
data; the copy therefore stores places by their remainder (all even ones, then all odd ones), and
what a vector of results reads lies together again.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tilewright.schedule.recipes.context import (
    Context,
    extent_of,
    iter_loop,
    lanes_of,
    parallelize,
    work_of,
)
from tilewright.schedule.recipes.contraction.roles import names_of
from tilewright.schedule.recipes.sliding import Lines
from tilewright.schedule.recipes.window_plan import WindowPlan
from tilewright.tensor import cover as covers
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import free_vars

__all__ = ["schedule_lines"]

# A window over at most this many lines is unrolled along these.
_WINDOW = 25

# Vectors of sums at a time: enough that no addition waits for another, and few enough to leave half
# of the registers to data and weights.
_SUMS = 8

# How often an element is used, at least, before data without a border are copied by phases.
_REUSE = 2

# The part of a cache that a copy may fill.
_NEAR = 0.5

# How many times the threads there must be shares of work, to be dealt evenly.
_SHARES = 4

REDUCE = tir.IterKind.REDUCE


def schedule_lines(context: Context, blocks: tuple[str, ...], epilogue: str | None = None) -> None:
    """Schedule a window, the last of `blocks`, and the border in front of it if there is one."""
    s = context.schedule
    *border, block = blocks
    lines, cycles = Lines.of(s.block(block)), work_of(context, block)
    assert lines is not None
    result = epilogue or str(s.cache_write(block, scope="register"))
    plan = context.loops
    most = plan.sums if isinstance(plan, WindowPlan) else _SUMS
    sums = min(most, context.target.vector_registers // 2)
    copy = _Copy.of(context, block, lines, border)
    shares = lines.across is not None and (copy is not None or lines.across.overlaps)
    rows = min(sums, lines.height) if shares else 1
    many = None  # tiles of lines that have one copy: all of them
    if copy is not None:
        near = copy.rows_near(context)
        if near < lines.height:
            rows = _fitting(lines.height, rows)
            many = max(1, near // rows)
        copy.widen(context, block, rows if many else 1)
    s.set_scope(s.block(block).writes[0].buffer.name, scope="register")
    node = s.block(block)
    names = {it.var: iter_loop(context, block, p) for p, it in enumerate(node.iters)}
    *outer, row, line = (names[it.var] for it in node.iters if it.kind is not REDUCE)
    walks = _in_order(lines, names, [it.var for it in node.iters if it.kind is REDUCE])
    tiles, lane = _split_line(context, line, lanes_of(context, block), sums // rows)
    row_tiles, inner = _split_rows(context, row, rows)
    around, inside = [*outer, row_tiles], [tiles]
    if copy is not None:
        around, inside = copy.placed(context, outer, row_tiles, many)
        inside.append(tiles)
    s.reorder(*around, *inside, *walks, inner, lane)
    home = _shared(context, around, cycles)
    if copy is not None:
        copy.move(context, home)
    _fill_registers(context, block, result, tiles, walks[0])
    _unroll_across(context, lines, names)


@dataclass(frozen=True)
class _Copy:
    """The block that copies data, with a border if there is one, sorted by phases.

    `results`: how many places of a line are computed; `width`: how many are copied for them;
    `whole`: how many of each phase there are, if the data end without a border.
    """

    block: str
    lines: Lines
    results: int
    width: int
    whole: int | None = None

    @classmethod
    def of(cls, context: Context, block: str, lines: Lines, border: list[str]) -> _Copy | None:
        """Without a border, data are copied only if they are read by phases, and often enough."""
        along, size = lines.along, tir.int_value(lines.data.buffer.shape[-1])
        results = _rounded(lines.width, lanes_of(context, block))
        width = _rounded(max(size or 1, along.offsets[0] + along.reach(results)), along.step)
        if border:
            return cls(border[0], lines, results, width)
        rows = 1 if lines.across is None else lines.across.step
        if along.step == 1 or size is None or lines.taps < _REUSE * along.step * rows:
            return None
        made = context.schedule.cache_read(block, lines.data.buffer.name)
        return cls(str(made), lines, results, width, size // along.step)

    def widen(self, context: Context, block: str, rows: int) -> None:
        """Lines get long enough for whole vectors of results, and are stored by phases.

        There are as many lines as tiles of `rows` want, so that all tiles are alike.
        """
        s, lines, phases = context.schedule, self.lines, self.lines.along.step
        height = _rounded(lines.height, rows)
        if lines.across is not None and height > lines.height:
            own = s.block(self.block).iters[lines.row_dimension]
            reach = lines.across.offsets[0] + lines.across.reach(height)
            s.round_up(self.block, own.var.name, max(tir.int_value(own.extent) or 1, reach))
            s.round_up(block, lines.places[-2].name, height)
        own = s.block(self.block).iters[-1]
        s.round_up(self.block, own.var.name, self.width)
        s.round_up(block, lines.places[-1].name, self.results)
        if phases > 1:
            s.split_iter(self.block, own.var.name, phases)
            buffer = s.block(self.block).writes[0].buffer
            last = len(buffer.shape) - 1
            s.layout_split(buffer.name, last, phases)
            s.layout_reorder(buffer.name, [*range(last), last + 1, last])

    def rows_near(self, context: Context) -> int:
        """Lines of the result that are computed of one copy: what it fills stays near.

        A window over several pictures has all pictures of a channel copied at once, if they fit
        into the second cache; else the copy of each place of the result has its whole window.
        """
        lines, across = self.lines, self.lines.across
        if self._copies_all(context) or across is None:
            return lines.height
        line = self.width * lines.data.dtype.size_bytes * lines.pictures
        room = int(_NEAR * context.target.cache(1).share_bytes) // line
        return min(lines.height, max(1, (room - across.reach(1)) // across.step + 1))

    def placed(
        self, context: Context, outer: list[str], row_tiles: str, many: int | None
    ) -> tuple[list[str], list[str]]:
        """Loops around the copy, and loops inside; so many tiles of lines have one copy, or all."""
        if self._copies_all(context):
            depth = self.lines.depth
            return outer[:depth], [*outer[depth:], row_tiles]
        if self.lines.across is None:
            return [*outer, row_tiles], []
        tiles = extent_of(context, row_tiles) or 1
        shares = -(-tiles // (many or tiles))
        if shares == 1:
            return outer, [row_tiles]
        several, inner = context.schedule.split(row_tiles, -(-tiles // shares))
        return [*outer, str(several)], [str(inner)]

    def _copies_all(self, context: Context) -> bool:
        """Whether windows are deeper than a picture, and all pictures are copied at once."""
        lines, room = self.lines, _NEAR * context.target.cache(2).share_bytes
        moving = set(lines.places[lines.depth :])
        sizes = (*lines.data.buffer.shape[:-1], tir.Const(self.width))
        pairs = zip(sizes, lines.data.indices, strict=True)
        copied = prod(tir.int_value(n) or 1 for n, index in pairs if free_vars(index) & moving)
        is_deep = lines.depth < len(lines.places) - 2
        return is_deep and copied * lines.data.dtype.size_bytes <= room

    def move(self, context: Context, home: str) -> None:
        """Copy there, a vector at a time; places that lie behind the end are apart."""
        s = context.schedule
        made = names_of(s.compute_at(self.block, home))
        line = made[-1]
        if self.lines.along.step > 1:
            *_, line, phase = made
            s.reorder(phase, line)
            s.unroll(phase)
        extent = extent_of(context, line) or 1
        if self.whole is not None and 0 < self.whole < extent:
            _, line = s.split(line, ((self.whole, 1), (extent - self.whole, 1)))
        s.vectorize(line)


def _rounded(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


def _fitting(extent: int, most: int) -> int:
    """The size of tiles, at least half of `most`, that leaves least over; the largest of these."""
    return min(range(most, most // 2, -1), key=lambda n: _rounded(extent, n))


def _in_order(lines: Lines, names: dict[tir.Var, str], walks: list[tir.Var]) -> list[str]:
    """Loops over a window: across lines last, so that tiles of lines share what they load."""
    across = () if lines.across is None else lines.across.walks
    last = [*lines.along.walks, *across]
    return [names[var] for var in (*(v for v in walks if v not in last), *last)]


def _split_line(context: Context, line: str, lanes: int, vectors: int) -> tuple[str, str]:
    extent = extent_of(context, line) or 1
    tiles, lane = context.schedule.split(line, min(lanes * vectors, extent))
    return str(tiles), str(lane)


def _split_rows(context: Context, row: str, most: int) -> tuple[str, str]:
    """Tiles of lines, as equal as can be."""
    cover = covers.uneven(extent_of(context, row) or 1, most)
    sizes = tuple((n, tir.int_value(many)) for n, many in cover.segments)
    tiles, inner = context.schedule.split(row, sizes)
    return str(tiles), str(inner)


def _shared(context: Context, around: list[str], cycles: float) -> str:
    """Threads share the outermost loop, or all together where it is short; the innermost then."""
    several = [loop for loop in around if extent_of(context, loop) != 1] or around[:1]
    first, home = several[0], around[-1]
    few = (extent_of(context, first) or 0) < _SHARES * context.threads
    if context.threads > 1 and len(around) > 1 and few:
        first = home = str(context.schedule.fuse(*around))
    parallelize(context, first, cycles)
    return home


def _fill_registers(context: Context, block: str, result: str, tiles: str, walk: str) -> None:
    """Sums of a tile begin, grow and end in registers, a vector for each line."""
    s = context.schedule
    made = names_of(s.reverse_compute_at(result, tiles))
    init = s.decompose_reduction(block, walk)
    for loops in (made, s.loops(block)[-2:], s.loops(init)[-2:]):
        for loop in loops[:-1]:
            s.unroll(loop)
        s.vectorize(loops[-1])


def _unroll_across(context: Context, lines: Lines, names: dict[tir.Var, str]) -> None:
    """Unroll the window across lines, whose sums share their data.

    Along lines it stays a loop: of a whole window in one piece, compilers finish one sum after the
    other, and all weights wait in memory.
    """
    walks = () if lines.across is None else lines.across.walks
    if prod(lines.extents[var] for var in walks) <= _WINDOW:
        for var in walks:
            context.schedule.unroll(names[var])
