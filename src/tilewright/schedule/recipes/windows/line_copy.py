"""Copies of the data of windows along lines: with their border, long enough lines, by phases.

A copy has lines that are long enough for whole vectors of results, of which only the places that
exist are stored. Windows that move by more than one place would gather their data; a copy may
therefore store places by their remainder (all even ones, then all odd ones), and what a vector of
results reads lies together again.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.schedule.recipes.context import Context, extent_of
from tilewright.schedule.recipes.contraction.roles import names_of
from tilewright.schedule.recipes.windows.line_space import LinePoint
from tilewright.schedule.recipes.windows.sliding import Lines
from tilewright.tensor import ir as tir

__all__ = ["LineCopy"]


@dataclass(frozen=True)
class LineCopy:
    """The block that copies data, with a border if there is one, sorted by phases or not.

    `results`: how many places of a line are computed; `width`: how many are copied for them;
    `whole`: how many of each phase there are, if the data end without a border.
    """

    block: str
    lines: Lines
    results: int
    width: int
    phases: int
    whole: int | None = None

    @classmethod
    def of(
        cls, context: Context, block: str, lines: Lines, border: list[str], point: LinePoint
    ) -> LineCopy:
        """The border in front of a window, or a copy made for it."""
        along, size = lines.along, tir.int_value(lines.data.buffer.shape[-1]) or 1
        results = _rounded(lines.width, point.lanes)
        width = _rounded(max(size, along.offsets[0] + along.reach(results)), along.step)
        phases = along.step if point.phases else 1
        if border:
            return cls(border[0], lines, results, width, phases)
        made = context.schedule.cache_read(block, lines.data.buffer.name)
        return cls(str(made), lines, results, width, phases, size // phases)

    def widen(self, context: Context, block: str, rows: int) -> None:
        """Lines get long enough for whole vectors of results, and are stored by phases.

        There are as many lines as tiles of `rows` want, so that all tiles are alike.
        """
        s, lines, phases = context.schedule, self.lines, self.phases
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

    def placed(
        self, context: Context, outer: list[str], row_tiles: str, point: LinePoint
    ) -> tuple[list[str], list[str]]:
        """Loops around the copy, and loops inside."""
        if point.stacked:
            depth = self.lines.depth
            return outer[:depth], [*outer[depth:], row_tiles]
        if self.lines.across is None:
            return [*outer, row_tiles], []
        if not point.rows:
            return outer, [row_tiles]
        tiles = extent_of(context, row_tiles) or 1
        copies = -(-tiles // max(1, point.rows // point.lines))
        several, inner = context.schedule.split(row_tiles, -(-tiles // copies))
        return [*outer, str(several)], [str(inner)]

    def move(self, context: Context, home: str) -> None:
        """Copy there, a vector at a time; places that lie behind the end are apart."""
        s = context.schedule
        made = names_of(s.compute_at(self.block, home))
        line = made[-1]
        if self.phases > 1:
            *_, line, phase = made
            s.reorder(phase, line)
            s.unroll(phase)
        extent = extent_of(context, line) or 1
        if self.whole is not None and 0 < self.whole < extent:
            _, line = s.split(line, ((self.whole, 1), (extent - self.whole, 1)))
        s.vectorize(line)


def _rounded(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple
