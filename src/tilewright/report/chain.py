"""The graph as a chain of kernels with their algorithms and layouts, and what is converted.

Rows have one height, so that lines beside them can join what is not next to each other: a value
that a later kernel reads goes down a lane of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tilewright.layouts.show import ConversionRow, SiteRow
from tilewright.report.data import Report
from tilewright.report.markup import Markup, element, joined
from tilewright.shown import shown, time_text

__all__ = ["chain", "layout_colours"]

ROW: Final = 52
"""Pixels of a row, as `style.py` has it."""
LANE: Final = 9
MOST_LANES: Final = 6
MOST_ROWS: Final = 600
COLOURS: Final = 8
PLAIN: Final = "plain"

Item = SiteRow | ConversionRow


def layout_colours(report: Report) -> dict[str, int]:
    """A number for the colour of each layout; halos have that of their layout, -1 is plain."""
    found: dict[str, int] = {PLAIN: -1}
    for row in report.layouts.sites:
        for name in (row.source, row.result):
            base = _base(name)
            if base not in found:
                found[base] = (len(found) - 1) % COLOURS
    return found


def _base(layout: str) -> str:
    return layout.partition("+")[0]


def chain(report: Report) -> Markup:
    """All sites in order, with conversions before those that first need them."""
    items = _items(report)
    shown_items, colours = items[:MOST_ROWS], layout_colours(report)
    rows = [
        _site(report, item, colours) if isinstance(item, SiteRow) else _conversion(item, colours)
        for item in shown_items
    ]
    edges = _edges(shown_items)
    width = LANE * (1 + max((edge.lane for edge in edges), default=-1)) + 14
    height = ROW * len(shown_items)
    lines = element(
        "svg",
        *(_drawn(edge, width) for edge in edges),
        width=width, height=height, viewBox=f"0 0 {width} {height}",
        class_="lanes", aria_hidden="true",
    )  # fmt: skip
    rest = len(items) - len(shown_items)
    more = element("p", f"and {rest} more", class_="quiet") if rest else None
    return joined(element("div", lines, element("ol", *rows), class_="chain"), more)


def _items(report: Report) -> list[Item]:
    items: list[Item] = []
    for row in report.layouts.sites:
        items += [c for c in report.layouts.conversions if c.readers[0] == row.site]
        items.append(row)
    return items


def _site(report: Report, row: SiteRow, colours: dict[str, int]) -> Markup:
    number = report.places.get(row.site)
    kernel = report.kernels[number] if number is not None else None
    what = f"{row.computes}, {row.algorithm}" if row.algorithm else row.computes
    shape = "×".join(row.shape)
    label = ", ".join(map(shown, row.operators)) or shown(row.value)
    facts: list[str] = ["no copy"] if row.is_view else []
    if kernel is not None:
        facts.append(f"kernel {kernel.number}")
        if kernel.is_measured:
            times = [time_text(time / 1e9) for time in (kernel.drafted_ns, kernel.best_ns)]
            facts.append(" → ".join(times) if kernel.best is not None else times[0])
    class_ = "view" if row.is_view else ""
    return element(
        "li",
        element("span", _flow(row.source, row.result), class_=_layout(row.result, colours)),
        element("b", what),
        element("span", shape, class_="shape"),
        element("span", ", ".join(facts), class_="facts"),
        element("span", label, class_="label"),
        class_=f"box {class_}".strip(),
        title=f"site {row.site}: {label}",
    )


def _conversion(row: ConversionRow, colours: dict[str, int]) -> Markup:
    return element(
        "li",
        element("span", _flow(row.source, row.result), class_=_layout(row.result, colours)),
        element("b", "convert"),
        element("span", "×".join(row.shape), class_="shape"),
        element("span", f"{row.cycles:,.0f} cycles predicted", class_="facts"),
        element("span", f"{shown(row.value)}: {row.reason}", class_="label"),
        class_="box convert",
        title=row.reason,
    )


def _flow(source: str, result: str) -> str:
    return result if source == result else f"{source} → {result}"


def _layout(name: str, colours: dict[str, int]) -> str:
    number = colours.get(_base(name), -1)
    return "layout" if number < 0 else f"layout l{number}"


@dataclass(frozen=True)
class _Edge:
    """From one row to a later one, in a lane; next to each other there is none: -1."""

    start: int
    end: int
    lane: int


def _edges(items: Sequence[Item]) -> list[_Edge]:
    rows = {item.site: k for k, item in enumerate(items) if isinstance(item, SiteRow)}
    ends: list[int] = []  # the row at which each lane becomes free
    found = []
    for start, end in sorted(_pairs(items, rows)):
        if end == start + 1:
            found.append(_Edge(start, end, -1))
            continue
        lane = next((k for k, until in enumerate(ends) if until <= start), len(ends))
        if lane >= MOST_LANES:  # the names of what a kernel reads would say it; lines are too many
            continue
        ends[lane : lane + 1] = [end]
        found.append(_Edge(start, end, lane))
    return found


def _pairs(items: Sequence[Item], rows: dict[int, int]) -> set[tuple[int, int]]:
    """(writer, reader) by row: a conversion reads what its readers then read from it."""
    found = set()
    converted: dict[tuple[int | None, int], int] = {}
    for place, item in enumerate(items):
        if isinstance(item, ConversionRow):
            converted |= {(item.writer, reader): place for reader in item.readers}
            if item.writer in rows:
                found.add((rows[item.writer], place))
    for place, item in enumerate(items):
        if isinstance(item, SiteRow):
            sources = [read for read in item.reads if isinstance(read, int)]
            writers = (converted.get((read, item.site), rows.get(read, place)) for read in sources)
            found |= {(writer, place) for writer in writers if writer < place}
    return found


def _drawn(edge: _Edge, width: int) -> Markup:
    right, from_y, to_y = width, edge.start * ROW + ROW / 2, edge.end * ROW + ROW / 2
    if edge.lane < 0:
        x = right - 4
        return element("path", d=f"M{x} {from_y:g}V{to_y:g}", class_="edge")
    x, bend = right - 13 - edge.lane * LANE, 6
    data = (
        f"M{right} {from_y + 7:g}H{x + bend}Q{x} {from_y + 7:g} {x} {from_y + 7 + bend:g}"
        f"V{to_y - 7 - bend:g}Q{x} {to_y - 7:g} {x + bend} {to_y - 7:g}H{right}"
    )
    return element("path", d=data, class_="edge far")
