"""Write docs/tuning-results.md from files that `python -m benchmarks tuner WHAT --out FILE` made.

python scripts/tuner_page.py search.json transfer.json rivals.json … [--docs FOLDER]

There may be several runs of one kind. Kinds of which there is no run keep the part that the page
has: whole runs take hours, and say themselves where they are from. Curves of searches are files
beside the page: docs/tuning-curves.svg and the like.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from scripts.pages import Run, command_line, origin, read
from scripts.tuner_curves import chart
from scripts.tuner_tables import (
    EVERYWHERE,
    faults,
    joint,
    models,
    overhead,
    rivals,
    search,
    transfer,
)

PAGE = "tuning-results.md"
CURVES = "tuning-curves"

INTRODUCTION = """\
Made by `scripts/tuner_page.py` from runs of `python -m benchmarks tuner`
([how it measures](../benchmarks/README.md#the-tuner)). Speeds are those of the drafted kernel or
model, which was measured by turns with each candidate: above 1 is faster than the draft
([how the tuner searches](tuning.md)).
"""

CAPTION = """\
The best so far over trials, by the speed of the draft (the dashed line): means over seeds, and from
the slowest to the fastest of them."""

TITLES = {
    "search": "Search",
    "ways": "Strategies, models and batches",
    "transfer": "Transfer",
    "rivals": "Beside TVM MetaSchedule",
    "models": "Whole models",
    "joint": "Layouts, algorithms and loops together",
    "overhead": "Where the time goes",
    "faults": "Faults",
}
TABLES: Mapping[str, Callable[[Run], str]] = {
    "search": search,
    "ways": search,
    "transfer": transfer,
    "rivals": rivals,
    "models": models,
    "joint": joint,
    "overhead": overhead,
    "faults": faults,
}


def page(runs: Sequence[Run], before: str = "") -> str:
    """All runs on one page, by kind; of other kinds the parts of the page `before`."""
    parts = ["# What tuning finds\n", INTRODUCTION]
    pictures, kept = pictures_of(runs), parts_of(before)
    for what, title in TITLES.items():
        own = [run for run in runs if kind_of(run) == what]
        if not own and title in kept:
            parts.append(f"## {title}\n{kept[title]}")
        parts += [f"## {title}\n"] * bool(own)
        for run in own:
            parts.append(f"{origin(run)}\n")
            name = pictures.get(id(run))
            parts += (
                [f"![Best so far over trials, by task]({name})\n", f"{CAPTION}\n"] if name else []
            )
            parts.append(TABLES[what](run))
    return "\n".join(parts)


def kind_of(run: Run) -> str:
    """Which part of the page a run is.

    Searches among variants that were chosen ahead compare ways to search, others what is found.
    """
    if run["what"] == "search" and run["summary"]["baseline"] not in EVERYWHERE:
        return "ways"
    return str(run["what"])


def parts_of(text: str) -> dict[str, str]:
    """What stands below each title of a page."""
    _, *parts = f"\n{text}".split("\n## ")
    found = (part.partition("\n") for part in parts)
    return {title: f"{rest.rstrip()}\n" for title, _, rest in found}


def pictures_of(runs: Sequence[Run]) -> dict[int, str]:
    """Names of the files with curves, by the identity of their runs."""
    found: dict[int, str] = {}
    counts: dict[str, int] = {}
    for run in runs:
        if run.get("curves"):
            part = kind_of(run)
            number = counts[part] = counts.get(part, 0) + 1
            kind = [] if part == "search" else [part]
            words = [CURVES, *kind, *([str(number)] if number > 1 else [])]
            found[id(run)] = f"{'-'.join(words)}.svg"
    return found


def charts(runs: Sequence[Run]) -> dict[str, str]:
    """The files with curves, by name."""
    names = pictures_of(runs)
    return {names[id(run)]: chart(run["curves"], _label(run)) for run in runs if id(run) in names}


def _label(run: Run) -> str:
    tasks: Sequence[Any] = list(dict.fromkeys(curve["task"] for curve in run["curves"]))
    return f"best speed so far by that of the draft, over trials, for {', '.join(tasks)}"


def main() -> None:
    """Write the page and its pictures."""
    parser = command_line(__doc__)
    parser.add_argument("--docs", type=Path, default=Path(__file__).parents[1] / "docs")
    options = parser.parse_args()
    runs = read(options.results)
    there = options.docs / PAGE
    before = there.read_text(encoding="utf-8") if there.exists() else ""
    for name, text in {PAGE: page(runs, before), **charts(runs)}.items():
        (options.docs / name).write_text(text, encoding="utf-8")
        print(f"written: {options.docs / name}")


if __name__ == "__main__":
    main()
