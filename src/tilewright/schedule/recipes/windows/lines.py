"""Windows that slide along lines: depthwise convolutions and pooling, channels first.

    for channel, block of lines:
        copy the lines of the data that the block reads, with their border, sorted by phase
        for tile of lines, vector of places:
            sums = 0                             (registers: one vector for each line of the tile)
            for each element of the window: sums += copy[lines, places + element] · weight
            out = epilogue(sums)

Neighbouring lines share most of their windows: what is loaded for one is used for the others.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from tilewright.schedule.recipes.context import (
    Context,
    extent_of,
    iter_loop,
    lanes_of,
    share_loop,
)
from tilewright.schedule.recipes.contraction.roles import names_of
from tilewright.schedule.recipes.elementwise import schedule_elementwise
from tilewright.schedule.recipes.table import Costs, Table
from tilewright.schedule.recipes.windows.line_copy import LineCopy
from tilewright.schedule.recipes.windows.line_cycles import line_cycles
from tilewright.schedule.recipes.windows.line_space import LinePoint, LineShape, line_space
from tilewright.schedule.recipes.windows.moves import Move
from tilewright.schedule.recipes.windows.sliding import Lines, Slide, runs_along_lines
from tilewright.schedule.recipes.windows.ways import COPIED, FUSED, SERIAL
from tilewright.target import MachineModel, Target
from tilewright.tensor import cover as covers
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import Kind, loads_of
from tilewright.tensor.visit import free_vars

if TYPE_CHECKING:
    from tilewright.schedule.recipes.grouping import Group

__all__ = ["LINE_WINDOWS"]

REDUCE = tir.IterKind.REDUCE


class LineWindows:
    """The recipe for windows along lines."""

    name = "windows along lines"
    point = LinePoint

    def match(self, context: Context, group: Group) -> LineShape | None:
        """The shape of a window, with the border in front of it if there is one."""
        if group.kind not in (Kind.CONTRACTION, Kind.WINDOWED):
            return None
        if not runs_along_lines(context.schedule, group.blocks[-1], group.epilogue):
            return None
        lines = Lines.of(context.schedule.block(group.blocks[-1]))
        assert lines is not None
        return _shape(context, group, lines)

    def space(self, shape: LineShape, target: Target) -> Table[LinePoint]:
        """Every point that can be followed."""
        return line_space(shape, target)

    def cycles(self, shape: LineShape, machine: MachineModel, table: Table[LinePoint]) -> Costs:
        """Predicted cycles."""
        return line_cycles(shape, machine, table)

    def apply(self, context: Context, group: Group, shape: LineShape, point: LinePoint) -> None:
        """Schedule the window, the last of the blocks, and the border."""
        s = context.schedule
        *border, block = group.blocks
        is_copied = point.border == COPIED and (bool(border) or shape.may_sort)
        if border and not is_copied:
            schedule_elementwise(context, border[0])
        lines = Lines.of(s.block(block))
        assert lines is not None
        result = group.epilogue or str(s.cache_write(block, scope="register"))
        copy = LineCopy.of(context, block, lines, border, point) if is_copied else None
        if copy is not None:
            copy.widen(context, block, point.lines if point.rows else 1)
        s.set_scope(s.block(block).writes[0].buffer.name, scope="register")
        node = s.block(block)
        names = {it.var: iter_loop(context, block, p) for p, it in enumerate(node.iters)}
        *outer, row, line = (names[it.var] for it in node.iters if it.kind is not REDUCE)
        walks = [names[var] for var in _walks(lines, node)]
        tiles, lane = _split_line(context, line, point.lanes * point.vectors)
        row_tiles, inner = _split_rows(context, row, point.lines)
        around, inside = [*outer, row_tiles], [tiles]
        if copy is not None:
            around, inside = copy.placed(context, outer, row_tiles, point)
            inside.append(tiles)
        s.reorder(*around, *inside, *walks, inner, lane)
        home = _share(context, around, point)
        if copy is not None:
            copy.move(context, home)
        _fill_registers(context, block, result, tiles, walks[0])
        for loop in walks[len(walks) - point.unrolled :]:
            s.unroll(loop)


LINE_WINDOWS = LineWindows()


def _shape(context: Context, group: Group, lines: Lines) -> LineShape:
    block = group.blocks[-1]
    node = context.schedule.block(block)
    places = [it for it in node.iters if it.kind is not REDUCE]
    sizes = [tir.int_value(it.extent) for it in places]
    line = lines.places[-1]
    across, stored = lines.across, [tir.int_value(d) for d in lines.data.buffer.shape]
    last = (lines.row_dimension, len(stored) - 1) if across is not None else (len(stored) - 1,)
    images = [d or 1 for n, d in enumerate(stored) if n not in last]
    own = () if across is None else across.walks
    return LineShape(
        around=tuple(size or 1 for size in sizes[:-2]),
        depth=lines.depth,
        height=lines.height,
        width=lines.width,
        across=Move() if across is None else _move(across),
        along=_move(lines.along),
        is_across=across is not None,
        pictures=lines.pictures,
        walks=tuple(lines.extents[var] for var in _walks(lines, node)),
        along_walks=len(lines.along.walks),
        across_walks=len(own),
        images=prod(images),
        element_bytes=context.target.vector_bytes // lanes_of(context, block),
        threads=context.threads,
        is_weighted=any(line not in _used(load) for load in loads_of(node)),
        has_border=len(group.blocks) > 1,
        may_sort=lines.along.step > 1 and stored[-1] is not None,
        is_sized=None not in sizes,
    )


def _used(load: tir.Load) -> frozenset[tir.Var]:
    return frozenset().union(*map(free_vars, load.indices)) if load.indices else frozenset()


def _move(slide: Slide) -> Move:
    return Move(len(slide.offsets), slide.step, slide.reach(1))


def _walks(lines: Lines, node: tir.Block) -> list[tir.Var]:
    """Iterators of a window: across lines last, so that tiles of lines share what they load."""
    across = () if lines.across is None else lines.across.walks
    last = [*lines.along.walks, *across]
    walks = [it.var for it in node.iters if it.kind is REDUCE]
    return [*(v for v in walks if v not in last), *last]


def _split_line(context: Context, line: str, width: int) -> tuple[str, str]:
    extent = extent_of(context, line) or 1
    tiles, lane = context.schedule.split(line, min(width, extent))
    return str(tiles), str(lane)


def _split_rows(context: Context, row: str, most: int) -> tuple[str, str]:
    """Tiles of lines, as equal as can be."""
    cover = covers.uneven(extent_of(context, row) or 1, most)
    sizes = tuple((n, tir.int_value(many)) for n, many in cover.segments)
    tiles, inner = context.schedule.split(row, sizes)
    return str(tiles), str(inner)


def _share(context: Context, around: list[str], point: LinePoint) -> str:
    """Threads share the outermost loop, or all together; the innermost one then."""
    several = [loop for loop in around if extent_of(context, loop) != 1] or around[:1]
    first, home = several[0], around[-1]
    if point.parallel == FUSED and len(around) > 1:
        first = home = str(context.schedule.fuse(*around))
    share_loop(context, first, parallel=point.parallel != SERIAL)
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
