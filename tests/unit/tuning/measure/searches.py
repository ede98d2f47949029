"""A small program to search, and what a search left in its database."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import tilewright as tw
from tilewright.records import Database, Record
from tilewright.tuning.kernel_tuner import SearchOptions
from tilewright.tuning.measure.trial import Runner
from tilewright.tuning.tuner import TuneReport

__all__ = ["SEARCHES", "Found", "found_in", "transposed", "tuned"]

Found = dict[str, tuple[str, float | None]]
"""Outcomes and times of points, by their text."""

SEARCHES = {
    "random": SearchOptions("random", batch=8, patience=None),
    "evolution": SearchOptions("evolution", batch=8, patience=None),
}
"""What is drawn at random does not depend on the order of answers. Evolution does, and is asked
until there is nothing left to try: of all points, the best is the best in any order."""


def transposed() -> Any:
    """A program with few points."""
    a = tw.placeholder("A", (64, 96))
    return tw.func("transposed", [a], [tw.compute("C", (96, 64), lambda i, j: a[j, i])])


def tuned(path: Path, runner: Runner, trials: int, how: str, **about: Any) -> TuneReport:
    """A search from an empty database, which is the same each time where times are."""
    options = SEARCHES[how]
    about = {"options": options, "threads": 1, "seed": 5, "runner": runner, **about}
    return tw.tune(transposed(), trials=trials, database=path, **about)


def found_in(path: Path) -> tuple[Found, Record]:
    """The records of a search, each point once in an intact file, and the best."""
    with Database(path, readonly=True) as database:
        assert database.problems() == []
        rows = list(database.rows())
        records = [row.record() for row in rows]  # raises what is wrong with a damaged one
        (workload,) = {record.workload for record in records}
        about = workload, records[0].target, records[0].threads
        (best,) = database.best(*about)
    texts = [str(sorted(record.points.items())) for record in records]
    assert Counter(texts).most_common(1)[0][1] == 1, "a trial was recorded twice"
    outcomes = [(record.outcome, record.ratio) for record in records]
    return dict(zip(texts, outcomes, strict=True)), best
