"""What a window over channels that lie innermost is about, told by its blocks."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from tilewright.schedule.recipes.context import Context, lanes_of
from tilewright.schedule.recipes.elementwise import across_lines, has_border
from tilewright.schedule.recipes.windows.channel_space import ChannelShape
from tilewright.schedule.recipes.windows.moves import UNKNOWN_SIZE, Move
from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import Kind, kind_of, loads_of
from tilewright.tensor.terms import terms
from tilewright.tensor.visit import free_vars

if TYPE_CHECKING:
    from tilewright.schedule.recipes.grouping import Group

__all__ = ["along_walks", "channel_shape", "is_channels_last", "slides", "wants_border"]

REDUCE = tir.IterKind.REDUCE


def is_channels_last(block: tir.Block) -> bool:
    """Whether result and data are contiguous along one iterator, and the window lies across."""
    store = block.body
    if kind_of(block) is not Kind.WINDOWED or not isinstance(store, tir.Store):
        return False
    spatial = [it.var for it in block.iters if it.kind is tir.IterKind.SPATIAL]
    if len(spatial) < 2 or spatial != list(store.indices):
        return False
    return all(
        (1, spatial[-1]) in terms(load.indices[-1])
        for load in loads_of(block)
        if slides(load, block)
    )


def wants_border(window: tir.Block, border: tir.Block) -> bool:
    """Whether a block makes the data of a window by putting a border around them."""
    store = border.body
    if not isinstance(store, tir.Store) or not border.iters:
        return False
    if not is_channels_last(window) or not has_border(border):
        return False
    channel = border.iters[-1].var
    plain = list(store.indices) == [it.var for it in border.iters]
    return (
        plain and isinstance(store.value, tir.Select) and channel not in free_vars(store.value.cond)
    )


def slides(load: tir.Load, block: tir.Block) -> bool:
    """Whether some index of an access mixes a place of the result and one of the window."""
    reduce = {it.var for it in block.iters if it.kind is REDUCE}
    spatial = {it.var for it in block.iters} - reduce
    return any(free_vars(index) & reduce and free_vars(index) & spatial for index in load.indices)


def along_walks(block: tir.Block) -> list[tir.Var]:
    """The iterators of the window along columns."""
    return _move(block, _places(block)[-2])[1]


def channel_shape(context: Context, group: Group) -> ChannelShape | None:
    """The shape of a group; None if it is something else."""
    s = context.schedule
    *border, name = group.blocks
    block = s.block(name)
    if not is_channels_last(block):
        return None
    places, sizes = _places(block), {it.var: tir.int_value(it.extent) for it in block.iters}
    *around, column, _ = places
    along, own = _move(block, column)
    across = _move(block, around[-1])[0] if around else Move()
    folded = [it.var for it in block.iters if it.kind is REDUCE]
    walks = [sizes[v] or UNKNOWN_SIZE for v in (*(v for v in folded if v not in own), *own)]
    extents = [sizes[v] or (UNKNOWN_SIZE if n else 1) for n, v in enumerate(places)]
    data = next(load for load in loads_of(block) if slides(load, block))
    stored = [tir.int_value(d) for d in data.buffer.shape]
    is_turned = bool(border) and across_lines(s.block(border[0])) is not None
    is_sized = None not in [sizes[v] for v in places[1:]]
    # With one dimension of space, what lies in front of columns is no line of an image.
    has_lines = len(around) > 1 and across.taps * across.step > 1
    return ChannelShape(
        around=tuple(extents[: len(around) - has_lines]),
        lines=extents[len(around) - 1] if has_lines else 1,
        columns=extents[-2],
        channels=extents[-1],
        across=across if has_lines else Move(),
        along=along,
        walks=tuple(walks),
        places=prod(d or UNKNOWN_SIZE for d in stored[1:-1]),
        element_bytes=context.target.vector_bytes // lanes_of(context, name),
        threads=context.threads,
        is_weighted=len(loads_of(block)) > 1,
        along_walks=len(own),
        has_border=bool(border),
        may_ask=bool(border) and not is_turned and None not in list(sizes.values())[1:],
        may_copy=bool(border) and not is_turned and None not in stored and stored[0] == 1,
        is_sized=is_sized,
        is_deep=has_lines and is_sized,
    )


def _places(block: tir.Block) -> list[tir.Var]:
    return [it.var for it in block.iters if it.kind is not REDUCE]


def _move(block: tir.Block, place: tir.Var) -> tuple[Move, list[tir.Var]]:
    """How windows move along one iterator of the result, and the iterators of the window there."""
    extents = {
        it.var: tir.int_value(it.extent) or UNKNOWN_SIZE for it in block.iters if it.kind is REDUCE
    }
    for load in loads_of(block):
        for index in load.indices:
            found = {part: abs(k) for k, part in terms(index) if isinstance(part, tir.Var)}
            if place in found and slides(load, block):
                inside = {v: k for v, k in found.items() if v in extents}
                reach = 1 + sum(k * (extents[v] - 1) for v, k in inside.items())
                taps = prod(extents[v] for v in inside)
                return Move(taps, max(1, found[place]), reach), list(inside)
    return Move(), []
