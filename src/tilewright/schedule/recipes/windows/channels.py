"""Windows whose channels lie innermost: depthwise convolutions and pooling over channels-last data.

    for line, columns of the result, vector of channels:
        sums = 0                                 (registers: one vector for each column)
        for each element of the window: sums += data[line, column, channels] · weights[channels]
        out = epilogue(sums)

Neighbouring columns share most of their windows: what is loaded for one is used for the others.

A border can be computed where it is read: lowering cuts the loops there, so that only the outermost
tiles ask for it. Or it has a pass of its own. Columns whose distance is a power of two fight for
the same places of the first cache: small images can be copied, border and all, some channels at a
time, to where they lie densely.
"""

from __future__ import annotations

from tilewright.schedule.recipes.context import Context, extent_of, iter_loop, share_loop
from tilewright.schedule.recipes.contraction.digits import split_constants
from tilewright.schedule.recipes.contraction.roles import names_of
from tilewright.schedule.recipes.elementwise import schedule_elementwise
from tilewright.schedule.recipes.grouping import Group
from tilewright.schedule.recipes.table import Costs, Table
from tilewright.schedule.recipes.windows.channel_cycles import channel_cycles
from tilewright.schedule.recipes.windows.channel_shape import along_walks, channel_shape, slides
from tilewright.schedule.recipes.windows.channel_space import (
    ChannelPoint,
    ChannelShape,
    channel_space,
)
from tilewright.schedule.recipes.windows.ways import ASKED, COPIED, FUSED, SERIAL
from tilewright.target import MachineModel, Target
from tilewright.tensor import cover as covers
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import loads_of
from tilewright.tensor.terms import terms
from tilewright.tensor.visit import free_vars

__all__ = ["CHANNEL_WINDOWS"]

REDUCE = tir.IterKind.REDUCE


class ChannelWindows:
    """The recipe for windows over channels-last data."""

    name = "windows over channels"
    point = ChannelPoint

    def match(self, context: Context, group: Group) -> ChannelShape | None:
        """The shape of a window, with the border in front of it if there is one."""
        return channel_shape(context, group)

    def space(self, shape: ChannelShape, target: Target) -> Table[ChannelPoint]:
        """Every point that can be followed."""
        return channel_space(shape, target)

    def cycles(
        self, shape: ChannelShape, machine: MachineModel, table: Table[ChannelPoint]
    ) -> Costs:
        """Predicted cycles."""
        return channel_cycles(shape, machine, table)

    def apply(
        self, context: Context, group: Group, shape: ChannelShape, point: ChannelPoint
    ) -> None:
        """Schedule the window, the last of the blocks, and the border."""
        del shape
        s = context.schedule
        *border, block = group.blocks
        copied = bool(border) and point.border == COPIED
        if border and point.border == ASKED:
            s.compute_inline(border[0])
        elif border and not copied:
            schedule_elementwise(context, border[0])
        split_constants(context, s.block(block))
        around, vectors, walks = _tile(context, block, point)
        if copied:
            s.vectorize(names_of(s.compute_at(border[0], around[0]))[-1])
        _fill_registers(context, block, group.epilogue, vectors, walks)
        for loop in walks[len(walks) - point.unrolled :]:
            s.unroll(loop)
        _lay_channels_innermost(context, block)
        _share(context, around, point)


CHANNEL_WINDOWS = ChannelWindows()


def _tile(context: Context, block: str, point: ChannelPoint) -> tuple[list[str], str, list[str]]:
    """Loops around a tile, the loop over its vectors, and the loops over the window."""
    s = context.schedule
    node = s.block(block)
    names = {it.var: iter_loop(context, block, p) for p, it in enumerate(node.iters)}
    *outer, column, channel = (names[it.var] for it in node.iters if it.kind is not REDUCE)
    own = along_walks(node)
    folded = [it.var for it in node.iters if it.kind is REDUCE]
    walks = [names[v] for v in (*(v for v in folded if v not in own), *own)]
    order = _in_order_of_data(context, block, outer)
    vectors, lane = map(str, s.split(channel, point.lanes * point.vectors))
    tiles, inner = _split_columns(context, column, point.columns)
    inside = [inner]
    if point.lines > 1:
        line = outer[-1]
        line_tiles, rows = _split_columns(context, line, point.lines)
        order = [line_tiles if loop == line else loop for loop in order]
        inside.insert(0, rows)
    around = [*order, tiles]
    if point.channels:
        width = point.lanes * point.vectors
        first, vectors = map(str, s.split(vectors, max(1, point.channels // width)))
        around.insert(0, first)
    s.reorder(*around, vectors, *walks, *inside, lane)
    return around, vectors, walks


def _fill_registers(
    context: Context, block: str, epilogue: str | None, vectors: str, walks: list[str]
) -> None:
    """Sums of a tile begin, grow and end in registers."""
    s = context.schedule
    result = epilogue or str(s.cache_write(block, scope="register"))
    s.set_scope(s.block(block).writes[0].buffer.name, scope="register")
    made = names_of(s.reverse_compute_at(result, vectors))
    inside = s.loops(block)[s.loops(block).index(walks[-1]) + 1 :]
    init = s.decompose_reduction(block, walks[0])
    for loops in (made, inside, s.loops(init)[-len(inside) :]):
        for loop in loops[:-1]:
            s.unroll(loop)
        s.vectorize(loops[-1])


def _share(context: Context, around: list[str], point: ChannelPoint) -> None:
    """Threads share a loop, or all around a line as one."""
    if point.parallel == SERIAL:
        return
    several = [loop for loop in around if extent_of(context, loop) != 1] or around[:1]
    if point.parallel == FUSED and len(around) > 2:
        several = [str(context.schedule.fuse(*around[:-1]))]
    share_loop(context, several[0], parallel=True)


def _in_order_of_data(context: Context, block: str, loops: list[str]) -> list[str]:
    """Outer loops by how far a step of each moves through the data, the farthest outside.

    What lies together is then used together, however the result is stored.
    """
    node = context.schedule.block(block)
    data = [load for load in loads_of(node) if slides(load, node)]
    if len(data) != 1:
        return loops
    names = [iter_loop(context, block, p) for p in range(len(node.iters))]

    def distance(loop: str) -> int:
        var, stride, found = node.iters[names.index(loop)].var, 1, 0
        for size, index in zip(
            reversed(data[0].buffer.shape), reversed(data[0].indices), strict=True
        ):
            found += sum(stride * k for k, part in terms(index) if var in free_vars(part))
            stride *= tir.int_value(size) or 1
        return found

    return sorted(loops, key=distance, reverse=True) if all(map(distance, loops[1:])) else loops


def _lay_channels_innermost(context: Context, block: str) -> None:
    """Store weights so that a line of channels of all elements of the window is one piece."""
    s = context.schedule
    node = s.block(block)
    line = context.target.cache(1).line_bytes // node.writes[0].buffer.dtype.size_bytes
    channel = [it.var for it in node.iters if it.kind is not REDUCE][-1]
    for load in loads_of(node):
        places = [d for d, index in enumerate(load.indices) if index is channel]
        if len(places) != 1 or load.buffer.name not in context.constants:
            continue
        (place,) = places
        rank, name = len(load.indices), load.buffer.name
        others = [d for d in range(rank) if d != place]
        if others and (tir.int_value(load.buffer.shape[place]) or 1) % line == 0:
            s.layout_split(name, dim=place, factor=line)
            s.layout_reorder(name, order=[place, *(d + (d > place) for d in others), place + 1])
        elif others:
            s.layout_reorder(name, order=[*others, place])


def _split_columns(context: Context, column: str, size: int) -> tuple[str, str]:
    """Tiles as equal as can be; of an unknown number, single columns last."""
    s = context.schedule
    extent = extent_of(context, column)
    if extent is None:
        tiles, inner = s.split(column, (size, 1) if size > 1 else (1,))
        return str(tiles), str(inner)
    cover = covers.uneven(extent, size)
    tiles, inner = s.split(column, tuple((n, tir.int_value(many)) for n, many in cover.segments))
    return str(tiles), str(inner)
