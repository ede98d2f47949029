"""Charts of searches as SVG: the best so far over trials, one small chart for each task.

A line is the mean over seeds, its band goes from the slowest to the fastest of them; of many ways
there are lines alone. Files have no scripts, are light or dark as the system of their reader, and
the same figures make the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.report.axes import Axis, Frame, path_of
from tilewright.report.curves import corners
from tilewright.report.markup import Markup, element, joined
from tilewright.report.style import CHARTS, PALETTE

COLUMNS = 3
WIDTH, HEIGHT, MARGIN = 300, 172, 14
LEFT, TOP, BOTTOM = 40, 26, 24
COLOURS = 6
LEGEND_ROW = 20
MOST_BANDS = 4
"""More of them would hide each other."""
LEAST = 0.5
"""Speeds below it, by the draft, lie at the lower border: what random search begins with."""

BANDS = "".join(f".b{k}{{fill:var(--s{k})}}" for k in range(COLOURS))
STYLE = (
    f"{PALETTE}{CHARTS}{BANDS}\n"
    ".paper{fill:var(--paper);stroke:var(--line)}.band{opacity:.16}.dashed{stroke-dasharray:5 3}"
)

Speeds = NDArray[np.float64]
"""By seeds and trials: the best so far, by the speed of the draft."""


def by_task(curves: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Speeds]]:
    """The curves of a run's file, by task and by way."""
    seeds: dict[str, dict[str, list[list[float | None]]]] = {}
    for curve in curves:
        seeds.setdefault(curve["task"], {}).setdefault(curve["way"], []).append(curve["best"])
    return {
        task: {way: _speeds(costs) for way, costs in ways.items()} for task, ways in seeds.items()
    }


def _speeds(costs: Sequence[Sequence[float | None]]) -> Speeds:
    """Speeds by costs; a search that ended early keeps its best, one without a result has none."""
    longest = max(map(len, costs))
    rows = [[0.0 if c is None else 1 / c for c in own] for own in costs]
    return np.array([row + row[-1:] * (longest - len(row)) for row in rows])


def chart(curves: Sequence[Mapping[str, Any]], label: str) -> str:
    """The file: a legend, and the charts of all tasks in rows."""
    tasks = by_task(curves)
    ways = list(dict.fromkeys(way for own in tasks.values() for way in own))
    legend = [_entry(ways, k) for k in range(len(ways))]
    begin = MARGIN + LEGEND_ROW * (-(-len(ways) // _in_row(ways)))
    width = COLUMNS * WIDTH + (COLUMNS + 1) * MARGIN
    height = begin + -(-len(tasks) // COLUMNS) * (HEIGHT + MARGIN) + MARGIN
    places = ((k % COLUMNS, k // COLUMNS) for k in range(len(tasks)))
    charts = [
        element(
            "g",
            _small(task, own, ways),
            transform=f"translate({MARGIN + x * (WIDTH + MARGIN)},{begin + y * (HEIGHT + MARGIN)})",
        )
        for (task, own), (x, y) in zip(tasks.items(), places, strict=True)
    ]
    border = {"x": 0.5, "y": 0.5, "width": width - 1, "height": height - 1, "rx": 10}
    return (
        element(
            "svg",
            element("title", label),
            element("style", Markup(STYLE)),
            element("rect", class_="paper", **border),
            *legend,
            *charts,
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {width} {height}",
            width=width,
            height=height,
            role="img",
        )
        + "\n"
    )


def _in_row(ways: Sequence[str]) -> int:
    """Entries of the legend that have room beside each other."""
    return max(1, COLUMNS * WIDTH // _entry_width(ways))


def _entry_width(ways: Sequence[str]) -> int:
    return 52 + 7 * max(map(len, ways))


def _entry(ways: Sequence[str], place: int) -> Markup:
    """A stroke of the line of one way, and its name."""
    row, column = divmod(place, _in_row(ways))
    x, y = MARGIN + column * _entry_width(ways), MARGIN + row * LEGEND_ROW + 6
    stroke = element("line", x1=x, y1=y, x2=x + 24, y2=y, class_=_class(place))
    return joined(stroke, element("text", ways[place], x=x + 30, y=y + 4))


def _class(place: int) -> str:
    """Colours, and dashes where there are more ways than colours."""
    return f"curve s{place % COLOURS}" + (" dashed" if place >= COLOURS else "")


def _small(task: str, ways: Mapping[str, Speeds], order: Sequence[str]) -> Markup:
    trials = max(speeds.shape[1] for speeds in ways.values())
    top = max(1.0, *(float(speeds.max()) for speeds in ways.values()))
    early = [float(speeds.mean(axis=0)[min(7, speeds.shape[1] - 1)]) for speeds in ways.values()]
    low, high = math.floor(10 * min(max(LEAST, *early), 0.9)) / 10, math.ceil(10 * top) / 10
    frame = Frame(
        WIDTH,
        HEIGHT,
        Axis(1, max(2, trials), LEFT, WIDTH - 6),
        Axis(low, high, HEIGHT - BOTTOM, TOP),
        "",
        "",
    )
    at = frame.y.at(1.0)
    drafted = element("line", x1=LEFT, y1=at, x2=WIDTH - 6, y2=at, class_="draft")
    name = element("text", task, x=2, y=12, class_="name")
    bands = [_band(frame, ways[way], order.index(way)) for way in ways if len(order) <= MOST_BANDS]
    lines = [_line(frame, way, ways[way], order.index(way)) for way in ways]
    return joined(frame.grid(), drafted, name, *bands, *lines)


def _line(frame: Frame, way: str, speeds: Speeds, place: int) -> Markup:
    """The mean of one way over its seeds."""
    mean = speeds.mean(axis=0)
    title = element("title", f"{way}: {mean[-1]:.3f} of the draft")
    line = path_of(_places(frame, mean), is_stepped=True)
    return element("path", title, d=line, class_=_class(place))


def _band(frame: Frame, speeds: Speeds, place: int) -> Markup | None:
    """From the slowest of its seeds to the fastest; of one seed there is none."""
    if len(speeds) == 1:
        return None
    ends = [_steps(_places(frame, edge)) for edge in (speeds.max(axis=0), speeds.min(axis=0))]
    outline = path_of([*ends[0], *reversed(ends[1])])
    return element("path", d=f"{outline}Z", class_=f"band b{place % COLOURS}")


def _places(frame: Frame, speeds: Speeds) -> list[tuple[float, float]]:
    """Pixels of what changes, from the first trial to the last."""
    shown = corners(np.round(speeds, 4).tolist())
    return [(frame.x.at(trial + 1), frame.y.at(speed)) for trial, speed in shown]


def _steps(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The corners of a line that goes right before it goes up."""
    found = list(points[:1])
    for x, y in points[1:]:
        found += [(x, found[-1][1]), (x, y)]
    return found
