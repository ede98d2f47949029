"""Strategies, models and batches compared: the best of so many trials, and how soon it is found.

    python -m benchmarks tuner search [--tasks C1,C2] [--trials 200] [--seeds 3] [--out FILE]
    python -m benchmarks tuner transfer [--trials 100]

Every search has an empty database, begins without the draft's point, and is alone on the machine.
Times of all trials of one task go through one runner, by turns with the same drafted kernel, so
that the searches of a task can be compared with each other.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from tilewright.records import Database
from tilewright.tuning.budget import Budget
from tilewright.tuning.cost_model.boosted import Settings
from tilewright.tuning.kernel_tuner import SearchOptions
from tilewright.tuning.measure.trial import FAILURES, Runner
from tilewright.tuning.task import Task
from tilewright.tuning.tuner import Search

__all__ = ["WAYS", "Curve", "by_way", "geomean", "reasons_in", "searched", "trials_to"]

_ALONE: Final = SearchOptions(transfers=False, starts_at_draft=False, patience=None)
WAYS: Final = {
    "random": replace(_ALONE, strategy="random"),
    "grid": replace(_ALONE, strategy="grid"),
    "genetic": replace(_ALONE, strategy="genetic"),
    "evolution": _ALONE,
    "annealing": replace(_ALONE, strategy="annealing"),
    "regression": replace(_ALONE, model=Settings(objective="regression")),
    "no analytic": replace(_ALONE, model=Settings(from_analytic=False)),
    "shared columns": replace(_ALONE, model=Settings(columns="shared")),
    "decisions alone": replace(_ALONE, model=Settings(columns="decisions")),
    "not diverse": replace(_ALONE, diverse=False),
    "no epsilon": replace(_ALONE, epsilon=0.0),
}
"""What is compared; each differs from `evolution` in one thing.

`shared columns` and `decisions alone` are what the learned model looks at: features that mean the
same for every recipe, or the digits of a point, as AutoTVM's knobs.
"""


@dataclass(frozen=True)
class Curve:
    """The best cost (time by that of the draft) behind each trial of one search.

    It is infinite until something could be measured.
    """

    task: str
    way: str
    seed: int
    best: tuple[float, ...]
    seconds: float
    failures: int
    reasons: tuple[str, ...] = ()
    """Of its failures."""

    @property
    def final(self) -> float:
        """What the search ended with."""
        return self.best[-1]

    def to_dict(self) -> dict[str, object]:
        """For JSON; with four digits, and null for what is infinite."""
        best = [round(x, 4) if np.isfinite(x) else None for x in self.best]
        return asdict(self) | {"best": best}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        best = tuple(inf if cost is None else cost for cost in data["best"])
        return cls(**(dict(data) | {"best": best, "reasons": tuple(data["reasons"])}))


def searched(
    name: str,
    task: Task,
    way: str,
    seed: int,
    trials: int,
    runner: Runner,
    threads: int = 1,
    database: Path | None = None,
    options: SearchOptions | None = None,
) -> Curve:
    """One search, from an empty database unless one is given."""
    with tempfile.TemporaryDirectory() as folder:
        path = database or Path(folder, "records.sqlite")
        with Database(path) as records:
            how = options or WAYS[way]
            search = Search(name, [task], records, runner, threads, how, Budget(trials), seed)
            begin = time.perf_counter()
            known = len(search.tuned[0].tuner.costs)
            search.run()
            seconds = time.perf_counter() - begin
            reasons = reasons_in(records)
    tuner = search.tuned[0].tuner
    costs = np.array(tuner.costs[known:] or [np.inf])
    best = tuple(np.minimum.accumulate(costs).tolist())
    return Curve(name, way, seed, best, seconds, tuner.failures, reasons)


def reasons_in(records: Database) -> tuple[str, ...]:
    """Why trials failed, by what is recorded of them."""
    failed = (record for record in records if record.outcome in FAILURES)
    found = (f"{record.outcome}: {record.detail}" for record in failed)
    return tuple(dict.fromkeys(found))


def trials_to(curve: Curve, goal: float) -> int | None:
    """Trials until a cost is reached; None if it never is."""
    reached = np.flatnonzero(np.array(curve.best) <= goal)
    return int(reached[0]) + 1 if len(reached) else None


def geomean(values: Iterable[float]) -> float:
    """The geometric mean."""
    return float(np.exp(np.mean(np.log(list(values)))))


def by_way(curves: Sequence[Curve]) -> dict[str, dict[str, list[Curve]]]:
    """Curves by way and task."""
    found: dict[str, dict[str, list[Curve]]] = {}
    for curve in curves:
        found.setdefault(curve.way, {}).setdefault(curve.task, []).append(curve)
    return found
