"""`tilewright show MODEL --layouts`: the overview of `layouts/show.py` as text that fits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tilewright.cli.models import time_text
from tilewright.cli.output import paragraph
from tilewright.cli.table import Columns, cut
from tilewright.layouts.show import ConversionRow, Overview, SiteRow
from tilewright.model.compiler import AUTO
from tilewright.shown import counted, in_line, shown

__all__ = ["layouts_text"]

_HEAD: Final = ("site", "reads", "operators", "computes", "layouts", "shape", "cycles")
_LEAST: Final = {"operators": 12, "shape": 10, "reads": 5, "computes": 10, "layouts": 20}
"""Columns that may be cut, the first one first, and what is left of each at least."""

NARROW: Final = 76
_SPARE: Final = ("reads", "shape")
"""Columns that a narrow screen does without."""


def layouts_text(layouts: Overview, width: int) -> str:
    """Sites in a table, conversions between them, and the sums."""
    kept = [k for k, name in enumerate(_HEAD) if width >= NARROW or name not in _SPARE]
    head, *rows = ([cells[k] for k in kept] for cells in (_HEAD, *map(_cells, layouts.sites)))
    least = {head.index(name): minimum for name, minimum in _LEAST.items() if name in head}
    table = Columns.of([head, *rows], (0, len(head) - 1), least, width)
    lines = [_head(layouts, width), "", table.line(head)]
    for number, row in enumerate(rows):
        for conversion in layouts.conversions:
            if conversion.readers[0] == number:
                lines += _conversion(conversion, table.widths[0], width)
        lines.append(table.line(row))
    return "\n".join([*lines, "", *_sums(layouts, width)])


def _head(layouts: Overview, width: int) -> str:
    threads = counted(layouts.threads, "thread")
    return cut(f"layouts: {layouts.layouts}, for {layouts.target} and {threads}", width)


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


def _conversion(row: ConversionRow, indent: int, width: int) -> Iterator[str]:
    """What is copied, and below it for whom and why."""
    mark = "!".rjust(indent)
    first, *more = row.readers
    also = f" (then for {', '.join(map(str, more))})" if more else ""
    cost = f"{_count(row.cycles)} cycles"
    space = " " * (indent + 2)
    what = f"convert {shown(row.value)} from {row.source} to {row.result}: {cost}"
    yield paragraph(what, f"{mark}  ", f"{space}  ", width)
    yield paragraph(f"for site {first}{also}, because {row.reason}", space, f"{space}  ", width)


def _sums(layouts: Overview, width: int) -> Iterator[str]:
    if not layouts.cycles:
        yield f"{len(layouts.sites)} sites, none with a choice: there are no feature maps"
        return
    count, moved = len(layouts.conversions), sum(row.cycles for row in layouts.conversions)
    paid = f" of {_count(moved)} cycles" if count else ""
    conversions = f"{count or 'no'} conversion{'' if count == 1 else 's'}{paid}"
    total = f"{_count(layouts.cycles)} cycles predicted ({time_text(layouts.seconds)})"
    yield f"{len(layouts.sites)} sites, {conversions}; {total}"
    best = (
        "no other choice is predicted to be faster"
        if layouts.exact
        else "a choice that is faster may exist: there are too many to look at all of them"
    )
    fixed = "" if layouts.layouts == AUTO else f", with {layouts.layouts} wherever it is possible"
    yield paragraph(best + fixed, rest="  ", width=width)
    others = ", ".join(f"{name} {_count(cycles)}" for name, cycles in layouts.others.items())
    yield paragraph(f"with other layouts: {others}", rest="  ", width=width)
    margins = {row.algorithm: row.margin for row in layouts.sites if row.margin != 1.0}
    if margins:
        listed = ", ".join(f"{name} {m - 1:.0%}" for name, m in sorted(margins.items()))
        about = "included is a margin for what rounds more than a plain sum"
        yield paragraph(f"{about}: {listed}", rest="  ", width=width)


def _count(cycles: float | None) -> str:
    """`309 k` for a person; what nobody predicts is a dash."""
    if not cycles:
        return "-"
    for unit, scale in ((" G", 1e9), (" M", 1e6), (" k", 1e3)):
        if cycles >= scale:
            value = cycles / scale
            return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}{unit}"
    return f"{cycles:.0f}"
