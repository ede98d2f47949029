"""Gradient boosted trees by LightGBM: ranks tasks' points, or predicts the logarithm of times.

LightGBM is an extra (`pip install tilewright[tune]`, a wheel of 3.5 MB). It is imported when a
model is fitted or loaded; `make_model` gives the analytic order where it is missing. A model that
was shown too little yet orders like the analytic one, too. docs/tuning-model.md has figures.

Trees continue from the analytic prediction where features have it: what is learned is where that
is wrong, which takes fewer measurements than to learn what a machine is. Where features miss that
no sample missed (a recipe that was never measured), nothing was learned, and the analytic
prediction stays as it is. Same samples and same seed give the same model, on any number of threads.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import Code, TuneError
from tilewright.tuning.cost_model.model import Analytic, CostModel, Samples, Scores
from tilewright.tuning.features.points import ColumnSet, columns_of
from tilewright.tuning.features.scaling import Features

__all__ = ["Boosted", "Objective", "Settings", "lightgbm", "make_model"]

U010 = Code("U010", "a learned cost model needs LightGBM, which is not installed")

Objective = Literal["rank", "regression"]

_LEVELS: Final = 32
"""Grades of relevance for ranking: speed beside the fastest of its task, in equal steps."""
_LEAST_SAMPLES: Final = 8
"""Fewer than these teach nothing."""


@dataclass(frozen=True)
class Settings:
    """How trees are grown; defaults are for tens to thousands of samples."""

    objective: Objective = "rank"
    rounds: int = 100
    leaves: int = 15
    rate: float = 0.05
    least_in_leaf: int = 3
    columns_share: float = 0.5
    """Of the features, drawn for each tree."""
    from_analytic: bool = True
    """Whether trees continue from the analytic prediction."""
    columns: ColumnSet = "all"
    seed: int = 0
    threads: int = 1


def lightgbm() -> Any:
    """The module; U010 where it is not installed."""
    try:
        return importlib.import_module("lightgbm")
    except ImportError:
        hint = "pip install 'tilewright[tune]'"
        raise TuneError(U010, hint=hint) from None


def make_model(settings: Settings | None = None) -> CostModel:
    """A model that learns, or the analytic order where LightGBM is missing."""
    try:
        lightgbm()
    except TuneError:
        return Analytic()
    return Boosted(settings or Settings())


@dataclass
class Boosted:
    """Trees, and the columns that they look at."""

    settings: Settings = field(default_factory=Settings)
    names: tuple[str, ...] = ()
    booster: Any = None
    kinds: frozenset[str] = frozenset()
    """Which columns were missing together in samples, as bits in hex digits."""

    def fit(self, groups: Sequence[Samples], base: Sequence[Scores] | None = None) -> None:
        """Learn from samples, on top of the scores of `base` if there are some.

        All groups have the same columns.
        """
        self.booster, self.names, self.kinds = None, (), frozenset()
        groups = [g for g in groups if np.isfinite(g.costs).any()]
        if sum(len(g.costs) for g in groups) < _LEAST_SAMPLES:
            return
        module, settings = lightgbm(), self.settings
        names = groups[0].features.names
        if any(g.features.names != names for g in groups):
            raise ValueError("groups of samples have different columns")
        self.names = columns_of(names, settings.columns)
        start = [self._start(g.features) for g in groups]
        if base is not None:
            start = [a + b for a, b in zip(start, base, strict=True)]
        rows = np.concatenate([g.features.only(self.names).rows for g in groups])
        self.kinds = frozenset(_missing(rows)[0])
        data = module.Dataset(
            rows,
            label=np.concatenate([_labels(g.costs, settings.objective) for g in groups]),
            init_score=np.concatenate(start),
            group=[len(g.costs) for g in groups] if settings.objective == "rank" else None,
            params={"verbosity": -1, "min_data_in_bin": 1},
        )
        self.booster = module.train(_parameters(settings, groups), data, settings.rounds)

    def predict(self, features: Features) -> Scores:
        return self._start(features) + self.learnt(features)

    def learnt(self, features: Features) -> Scores:
        """What samples have taught, without what the scores begin with."""
        nothing = np.zeros(len(features.rows))
        if self.booster is None:
            return nothing
        rows = features.rows if features.names == self.names else features.only(self.names).rows
        kinds, which = _missing(rows)
        known = np.array([kind in self.kinds for kind in kinds], bool)[which]
        if not known.any():
            return nothing
        found = self.booster.predict(rows, raw_score=True, num_threads=self.settings.threads)
        return np.where(known, found, nothing)

    def _start(self, features: Features) -> Scores:
        if self.booster is None and not self.names:
            return Analytic().predict(features)
        if not self.settings.from_analytic:
            return np.zeros(len(features.rows))
        return np.nan_to_num(Analytic().predict(features))


def _missing(rows: NDArray[np.float64]) -> tuple[list[str], NDArray[np.intp]]:
    """The kinds of rows by which columns are missing, and the kind of each row."""
    bits = np.packbits(np.isnan(rows), axis=1)
    if not bits.any():
        return [bits[:1].tobytes().hex()], np.zeros(len(rows), np.intp)
    kinds, which = np.unique(bits, axis=0, return_inverse=True)
    return [kind.tobytes().hex() for kind in kinds], which.ravel()


def _labels(costs: NDArray[np.float64], objective: Objective) -> NDArray[np.float64]:
    """Grades by speed, or log2 of speed beside the fastest; what failed is the slowest by far."""
    fastest = costs[np.isfinite(costs)].min()
    speed = fastest / costs
    if objective == "rank":
        return np.asarray(np.round(speed * (_LEVELS - 1)))
    slowest = speed[speed > 0].min() / 4
    return np.asarray(np.log2(np.maximum(speed, slowest)))


def _parameters(settings: Settings, groups: Sequence[Samples]) -> dict[str, Any]:
    ranking = {
        "objective": "lambdarank",
        "label_gain": list(range(_LEVELS)),  # linear: a pair counts by its difference in speed
        "lambdarank_truncation_level": max(len(g.costs) for g in groups),
    }
    own = ranking if settings.objective == "rank" else {"objective": "regression"}
    return {
        **own,
        "num_leaves": settings.leaves,
        "learning_rate": settings.rate,
        "min_data_in_leaf": settings.least_in_leaf,
        "min_sum_hessian_in_leaf": 1e-4,
        "feature_fraction": settings.columns_share,
        "seed": settings.seed,
        "num_threads": settings.threads,
        "deterministic": True,
        "force_row_wise": True,
        "boost_from_average": False,
        "verbosity": -1,
    }
