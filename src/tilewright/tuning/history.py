"""What is known before a search begins: trials of the same kernel, and of its relatives.

A database holds trials of many workloads. Those of the kernel at hand are samples of its own, and
are not repeated, failures included. Those of others teach a model that looks at features that mean
the same everywhere (AutoTVM, section 4), and their best points, carried over to the nearest point
of the space at hand, are where the search begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from tilewright.records import Database, Record
from tilewright.records.record import checksum_of
from tilewright.schedule.points import point_of
from tilewright.tuning.cost_model.boosted import Boosted, Settings
from tilewright.tuning.cost_model.model import Samples
from tilewright.tuning.features.points import SHARED
from tilewright.tuning.features.scaling import Features
from tilewright.tuning.features.sizes import sizes_of
from tilewright.tuning.search.strategy import Digits
from tilewright.tuning.space import KernelSpace

__all__ = ["History", "Told", "about_of"]

COLUMNS: Final = checksum_of(",".join((*SHARED, "group", "cost")))[:8]
"""Which features records have: those of other versions are not looked at."""
RELATIVES: Final = 4
"""Workloads whose best points a fresh search begins with."""
BEST_OF_EACH: Final = 3
RELEARN: Final = 256
"""Trials after which the model of all workloads is learnt anew."""
LONGEST: Final = 512
"""Trials of one task that others learn from: of a long search the last ones."""


def about_of(space: KernelSpace, told: Told) -> dict[str, Any]:
    """What a record says of a point beside the point itself: what others learn from."""
    main = space.decisions[0]
    return {
        "recipe": main.recipe.name,
        "sizes": {name: round(value, 4) for name, value in sizes_of(main.shape)},
        "columns": COLUMNS,
        "features": [None if np.isnan(x) else round(float(x), 4) for x in told.features],
        "group": told.group,
        "cost": round(told.cost, 5) if np.isfinite(told.cost) else None,
    }


@dataclass(frozen=True)
class Told:
    """A point among those of its task: shared features, and its cost by the task's first draft.

    `group` names the task. Points of its variants can be compared with each other, whatever their
    kernels are.
    """

    group: str
    features: Sequence[float]
    cost: float


@dataclass
class _Workload:
    """The trials of one workload."""

    recipe: str
    sizes: Mapping[str, float]
    records: list[Record] = field(default_factory=list)

    def distance(self, sizes: Mapping[str, float]) -> float:
        """How far apart two shapes are: each size counts by its logarithm."""
        names = self.sizes.keys() | sizes.keys()
        return sum(abs(self.sizes.get(n, 0.0) - sizes.get(n, 0.0)) for n in names)

    def best(self, count: int) -> list[Record]:
        """The records that gain most."""
        return sorted((r for r in self.records if r.is_ok), key=_ratio)[:count]


def _samples(records: Sequence[Record]) -> Samples:
    """Shared features and costs of trials of one task; a failure costs more than anything."""
    rows = [[np.nan if x is None else x for x in r.about["features"]] for r in records]
    costs = [np.inf if r.about["cost"] is None else r.about["cost"] for r in records]
    return Samples(Features(SHARED, np.array(rows, np.float64)), np.array(costs))


def _ratio(record: Record) -> float:
    return record.ratio if record.ratio is not None else np.inf


class History:
    """All trials on one kind of machine with one number of threads."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._workloads: dict[str, _Workload] = {}
        self._groups: dict[str, list[Record]] = {}
        self._own: dict[str, list[Record]] = {}
        self._learnt: dict[frozenset[str], tuple[int, Boosted]] = {}
        self._count = 0
        for record in records:
            self.add(record)

    @classmethod
    def of(cls, database: Database, target: str, threads: int) -> History:
        """Everything that a database knows."""
        return cls(database.records(target=target, threads=threads))

    def add(self, record: Record) -> None:
        """A trial more."""
        self._own.setdefault(record.workload, []).append(record)
        about = record.about
        if about.get("columns") != COLUMNS or len(about.get("features", ())) != len(SHARED):
            return
        fresh = _Workload(str(about["recipe"]), dict(about["sizes"]))
        self._workloads.setdefault(record.workload, fresh).records.append(record)
        self._groups.setdefault(str(about["group"]), []).append(record)
        self._count += 1

    def trials(self, workload: str) -> list[Record]:
        """Those of one workload, in order."""
        return list(self._own.get(workload, ()))

    def shared_model(self, without: Iterable[str], settings: Settings) -> Boosted:
        """A model of all other workloads; one that was learnt a short while ago is as good."""
        stamp, own = self._count // RELEARN, frozenset(without)
        known = self._learnt.get(own)
        if known is None or known[0] != stamp:
            model = Boosted(settings)
            others = (
                records
                for records in self._groups.values()
                if own.isdisjoint(record.workload for record in records)
            )
            groups = [_samples(records[-LONGEST:]) for records in others]
            model.fit([g for g in groups if np.isfinite(g.costs).any()])
            known = self._learnt[own] = stamp, model
        return known[1]

    def seeds(self, workload: str, space: KernelSpace) -> Digits:
        """Where to begin: the best points of the nearest relatives, as this space has them."""
        main = space.decisions[0]
        sizes = dict(sizes_of(main.shape))
        others = [
            w for k, w in self._workloads.items() if w.recipe == main.recipe.name and k != workload
        ]
        others.sort(key=lambda w: w.distance(sizes))
        rows = [
            row
            for relative in others[:RELATIVES]
            for record in relative.best(BEST_OF_EACH)
            if (row := _carried(record, space)) is not None
        ]
        found = np.array(rows, np.int64).reshape(-1, len(space.lengths))
        return np.unique(found, axis=0) if len(found) else found


def _carried(record: Record, space: KernelSpace) -> Digits | None:
    """The point of another workload as the nearest one of a space."""
    main = space.decisions[0]
    for data in record.points.values():
        try:
            point = point_of(data)
        except ValueError:
            continue
        if isinstance(point, main.recipe.point):
            return space.nearest({main.block: point})
    return None
