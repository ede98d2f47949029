"""`tilewright show MODEL --layouts`: the overview of `layouts/show.py` as text of 100 columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tilewright.cli.models import time_text
from tilewright.layouts.show import ConversionRow, Overview, SiteRow
from tilewright.model.compiler import AUTO
from tilewright.shown import in_line, shown

__all__ = ["layouts_text"]

WIDTH: Final = 100
_HEAD: Final = ("site", "reads", "operators", "computes", "layouts", "shape", "cycles")
_LEAST: Final = {"operators": 14, "shape": 12, "reads": 5, "computes": 16}
"""Columns that may be cut, the first one first, and what is left of each at least."""


def layouts_text(layouts: Overview) -> str:
    """Sites in a table, conversions between them, and the sums."""
    rows = [_cells(row) for row in layouts.sites]
    widths = _widths([list(_HEAD), *rows])
    lines = [_head(layouts), "", _line(list(_HEAD), widths)]
    for number, row in enumerate(rows):
        for conversion in layouts.conversions:
            if conversion.readers[0] == number:
                lines += _conversion(conversion, widths[0])
        lines.append(_line(row, widths))
    return "\n".join([*lines, "", *_sums(layouts)])


def _head(layouts: Overview) -> str:
    threads = f"{layouts.threads} {'thread' if layouts.threads == 1 else 'threads'}"
    return _cut(f"layouts: {layouts.layouts}, for {layouts.target} and {threads}", WIDTH)


def _cells(row: SiteRow) -> list[str]:
    computes = f"{row.computes}, {row.algorithm}" if row.algorithm else row.computes
    cells = [
        str(row.site),
        ", ".join(map(str, row.reads)),
        _operators(row),
        computes,
        f"{row.source} → {row.result}",
        "×".join(dim.replace(" * ", "·") for dim in row.shape),
        "no copy" if row.is_view else _count(row.cycles),
    ]
    return list(map(in_line, cells))


def _operators(row: SiteRow) -> str:
    """Labels; of the second and later ones the last part of the path."""
    first, *more = row.operators or (row.value,)
    return ", ".join([first, *(label.rsplit("/", 1)[-1] for label in more)])


def _widths(lines: list[list[str]]) -> list[int]:
    """Of columns, such that a line is not too long."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    too_long = sum(widths) + 2 * (len(widths) - 1) - WIDTH
    for name, least in _LEAST.items():
        k = _HEAD.index(name)
        cut = max(0, min(too_long, widths[k] - least))
        widths[k], too_long = widths[k] - cut, too_long - cut
    return widths


def _line(cells: list[str], widths: list[int]) -> str:
    cut = [_cut(cell, width) for cell, width in zip(cells, widths, strict=True)]
    ends = {0, len(widths) - 1}
    placed = [
        cell.rjust(width) if k in ends else cell.ljust(width)
        for k, (cell, width) in enumerate(zip(cut, widths, strict=True))
    ]
    return "  ".join(placed).rstrip()


def _conversion(row: ConversionRow, indent: int) -> Iterator[str]:
    """What is copied, and below it for whom and why."""
    mark = "!".rjust(indent)
    first, *more = row.readers
    also = f" (then for {', '.join(map(str, more))})" if more else ""
    cost = f"{_count(row.cycles)} cycles"
    yield _cut(
        f"{mark}  convert {shown(row.value)} from {row.source} to {row.result}: {cost}", WIDTH
    )
    yield _cut(f"{' ' * indent}  for site {first}{also}, because {in_line(row.reason)}", WIDTH)


def _sums(layouts: Overview) -> Iterator[str]:
    if not layouts.cycles:
        yield f"{len(layouts.sites)} sites, none with a choice: there are no feature maps"
        return
    count, moved = len(layouts.conversions), sum(row.cycles for row in layouts.conversions)
    paid = f" of {_count(moved)} cycles" if count else ""
    conversions = f"{count or 'no'} conversion{'' if count == 1 else 's'}{paid}"
    total = f"{_count(layouts.cycles)} cycles predicted ({time_text(layouts.seconds)})"
    yield f"{len(layouts.sites)} sites, {conversions}; {total}"
    yield (
        "no other choice is predicted to be faster"
        if layouts.exact
        else "a choice that is faster may exist: there are too many to look at all of them"
    ) + ("" if layouts.layouts == AUTO else f", with {layouts.layouts} wherever it is possible")
    others = ", ".join(f"{name} {_count(cycles)}" for name, cycles in layouts.others.items())
    yield _cut(f"with other layouts: {others}", WIDTH)
    margins = {row.algorithm: row.margin for row in layouts.sites if row.margin != 1.0}
    if margins:
        listed = ", ".join(f"{name} {m - 1:.0%}" for name, m in sorted(margins.items()))
        yield f"included is a margin for what rounds more than a plain sum: {listed}"


def _count(cycles: float | None) -> str:
    """`309 k` for a person; what nobody predicts is a dash."""
    if not cycles:
        return "-"
    for unit, scale in ((" G", 1e9), (" M", 1e6), (" k", 1e3)):
        if cycles >= scale:
            value = cycles / scale
            return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}{unit}"
    return f"{cycles:.0f}"


def _cut(text: str, width: int) -> str:
    """Paths lose their beginning, other texts their end."""
    if len(text) <= width:
        return text
    return f"…{text[1 - width :]}" if text.startswith("/") else f"{text[: width - 1]}…"
