"""Windows of single channels (depthwise convolutions, pooling) in each form, for their recipes.

What they cost is what the recipe predicts of the point that it would draft: there is one cost for
one thing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tilewright.graph.ops.window import Conv, Pool
from tilewright.layouts.costs import Machine
from tilewright.layouts.forms import FIRST, Form
from tilewright.schedule.recipes.recipe import Recipe, draft_point
from tilewright.schedule.recipes.windows.channel_space import ChannelShape
from tilewright.schedule.recipes.windows.channels import CHANNEL_WINDOWS
from tilewright.schedule.recipes.windows.line_space import LineShape
from tilewright.schedule.recipes.windows.lines import LINE_WINDOWS
from tilewright.schedule.recipes.windows.moves import Move

__all__ = ["Window", "window_cycles", "window_recipe"]


@dataclass(frozen=True)
class Window:
    """Windows of single channels in numbers: sizes of the result, and how windows move."""

    batch: int
    space: tuple[int, ...]
    channels: int
    moves: tuple[Move, ...]
    element_bytes: int
    is_weighted: bool
    has_border: bool

    @classmethod
    def of(
        cls,
        op: Conv | Pool,
        taps: Sequence[int],
        batch: int,
        space: Sequence[int],
        channels: int,
        element_bytes: int,
    ) -> Window:
        """Of an operator whose result has these sizes."""
        moves = map(Move.of, taps, op.strides, op.dilations)
        is_weighted, has_border = isinstance(op, Conv), any(op.pads)
        return cls(
            batch, tuple(space), channels, tuple(moves), element_bytes, is_weighted, has_border
        )

    @property
    def read(self) -> tuple[int, ...]:
        """Sizes of the data, with their border."""
        return tuple(m.read(n) for m, n in zip(self.moves, self.space, strict=True))


def window_recipe(
    window: Window, form: Form, machine: Machine
) -> tuple[Recipe[Any, Any], ChannelShape | LineShape]:
    """The recipe for a window whose data and result have a form, and what it is about there."""
    if form.plain.uncut == FIRST:
        return LINE_WINDOWS, _along_lines(window, machine.threads)
    return CHANNEL_WINDOWS, _over_channels(window, form, machine.threads)


def window_cycles(window: Window, form: Form, machine: Machine) -> float:
    """Of the point that is drafted."""
    recipe, shape = window_recipe(window, form, machine)
    return draft_point(recipe, shape, machine.target)[1]  # type: ignore[arg-type]


def _over_channels(window: Window, form: Form, threads: int) -> ChannelShape:
    """Channels, or a block of them, lie innermost."""
    channels = form.block or window.channels
    blocks = window.channels // channels
    before = (window.batch, *((blocks,) if form.block else ()))
    *deep, across, along = (Move(), *window.moves)
    has_lines = len(window.space) > 1 and across.taps * across.step > 1
    lines = window.space[-2] if has_lines else 1
    return ChannelShape(
        around=(*before, *(window.space[:-2] if has_lines else window.space[:-1])),
        lines=lines,
        columns=window.space[-1],
        channels=channels,
        across=across if has_lines else Move(),
        along=along,
        walks=tuple(m.taps for m in (*deep, across, along) if m.taps > 1) or (1,),
        places=blocks * prod(window.read),
        element_bytes=window.element_bytes,
        threads=threads,
        is_weighted=window.is_weighted,
        along_walks=int(along.taps > 1),
        has_border=window.has_border,
        may_ask=window.has_border,
        may_copy=window.has_border and window.batch == 1,
        is_deep=has_lines,
    )


def _along_lines(window: Window, threads: int) -> LineShape:
    """Places of a line lie innermost."""
    *deep, across, along = (Move(), *window.moves)
    places = (window.batch, window.channels, *window.space[:-1])
    is_plane = len(window.space) > 1
    first = next((n for n, m in enumerate(window.moves[:-2]) if m.taps > 1), len(places))
    images = (window.batch, window.channels, *window.read[:-2])
    images = images if is_plane or window.is_weighted else images[:1]
    return LineShape(
        around=places[:-1],
        depth=min(2 + first, len(places) - 1),
        height=places[-1],
        width=window.space[-1],
        across=across,
        along=along,
        is_across=is_plane or not window.is_weighted,
        pictures=prod(m.taps for m in deep),
        walks=tuple(m.taps for m in (*deep, along, across) if m.taps > 1) or (1,),
        along_walks=int(along.taps > 1),
        across_walks=int(across.taps > 1),
        images=prod(images),
        element_bytes=window.element_bytes,
        threads=threads,
        is_weighted=window.is_weighted,
        has_border=window.has_border,
        may_sort=along.step > 1,
    )
