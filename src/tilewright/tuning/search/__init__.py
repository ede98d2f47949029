"""Search: which points of a space to measure next.

    search = strategy_named("evolution", space, np.random.default_rng(0), seeds)
    digits = search.propose(16, score, seen)
    search.learn(digits, costs)

`strategy` is the interface. `annealing` and `evolution` follow the scores of a cost model, and
`batches` chooses among their candidates; `random`, `grid` and `genetic` know no model and are what
these are compared with. They share `numbering` (points as numbers), `unseen` (what may be
proposed), `mutation` (new points from known ones) and `ranked` (what a search remembers).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from tilewright.errors import Code, TuneError
from tilewright.tuning.search.annealing import AnnealingSearch
from tilewright.tuning.search.batches import BatchedSearch, Batching
from tilewright.tuning.search.evolution import EvolutionSearch
from tilewright.tuning.search.genetic import GeneticSearch
from tilewright.tuning.search.grid import GridSearch
from tilewright.tuning.search.random import RandomSearch
from tilewright.tuning.search.strategy import Digits, Score, SearchSpace, Strategy, key_of

__all__ = ["BASELINES", "GUIDED", "AnnealingSearch", "BatchedSearch", "Batching", "Digits"]
__all__ += ["EvolutionSearch", "GeneticSearch", "GridSearch", "RandomSearch", "Score"]
__all__ += ["SearchSpace", "Strategy", "key_of", "strategy_named"]

U040 = Code("U040", "there is no search strategy `{name}`")

GUIDED: Final[Mapping[str, Callable[..., Strategy]]] = {
    "evolution": EvolutionSearch,
    "annealing": AnnealingSearch,
}
"""Strategies that follow scores."""
BASELINES: Final[Mapping[str, Callable[..., Strategy]]] = {
    "random": RandomSearch,
    "grid": GridSearch,
    "genetic": GeneticSearch,
}
"""Strategies that do not."""


def strategy_named(
    name: str,
    space: SearchSpace,
    rng: np.random.Generator,
    seeds: Digits | None = None,
    batching: Batching | None = None,
    members: Digits | None = None,
    **parameters: Any,
) -> Strategy:
    """A strategy by its name; U040 if there is none.

    Seeds are points to start from, which are measured first whatever they score; those that are
    none of the space are left out. `members` are points that populations and chains begin with, and
    that have to score; these and `batching` are for strategies that follow scores, and `parameters`
    are those of the strategy itself.
    """
    if name in BASELINES:
        return BASELINES[name](space, rng, seeds, **parameters)
    if name not in GUIDED:
        known = ", ".join([*GUIDED, *BASELINES])
        raise TuneError(U040, {"name": name, "known": known}, hint="take one of these")
    guided = GUIDED[name](space, rng, seeds, members=members, **parameters)
    return BatchedSearch(guided, space, rng, seeds, batching or Batching())
