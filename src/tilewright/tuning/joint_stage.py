"""The joint stage of a model: how its rounds share a budget.

    variants of each site → search → what they took → conversions between them → the next variants …

A small budget has one round, that of the alternatives which are predicted to be near the best. A
larger one has as many as leave every site some trials in each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil
from typing import Final

from tilewright.tuning.budget import Amount, Budget
from tilewright.tuning.conversions import FEW, PATIENCE, ConversionTask
from tilewright.tuning.joint import SiteTask
from tilewright.tuning.joint_rounds import JointRounds
from tilewright.tuning.kernel_tuner import SearchOptions
from tilewright.tuning.task import Task
from tilewright.tuning.tuner import Search, Tuned

__all__ = ["JointStage", "rounds_of"]

MOST_ROUNDS: Final = 6
LEAST_TRIALS: Final = 24
"""Of each site in a round."""
LEAST_SECONDS: Final = 3.0
"""The same in time: a trial takes about a tenth of a second."""
FIRST: Final = 2.0
"""What the first round gets by what each later one does: its variants are predicted to be good."""
PREPARING: Final = 0.15
"""Of what is left, for planning kernels of variants, at the most."""
COPIES_SHARE: Final = 0.2
"""Of a round, for conversions, at the most."""
COPY_SECONDS: Final = 1.0
"""A conversion that is tried a few times takes about so long."""

MakeSearch = Callable[[Sequence[Task], Budget, SearchOptions], Search]


class JointStage:
    """Rounds over the sites of a model; `search` makes a search over some tasks."""

    def __init__(
        self, rounds: JointRounds, search: MakeSearch, budget: Budget, options: SearchOptions
    ) -> None:
        self.rounds, self.search, self.budget, self.options = rounds, search, budget, options

    def run(self) -> bool:
        """All rounds; whether there was anything to choose."""
        tasks = self._tasks()
        count = rounds_of(self.budget.left, len(tasks))
        for number in range(count):
            if not tasks or self.budget.is_spent:
                break
            stage = f"layouts, round {number + 1} of {count}" if count > 1 else "layouts"
            of_sites, of_copies = self._parts(number, count)
            self.rounds.tell(tasks, self._searched(tasks, of_sites, stage, self.options))
            self._measure_conversions(of_copies, stage)
            tasks = self._tasks() if number + 1 < count else []
        return self.rounds.round > 0

    def _tasks(self) -> list[SiteTask]:
        """The sites of the next round, as many as can be prepared in a part of what is left."""
        seconds = self.budget.left.seconds
        return self.rounds.tasks(None if seconds is None else PREPARING * seconds)

    def _parts(self, number: int, count: int) -> tuple[Budget, Budget]:
        """What one round may spend of what is left: on sites, and on conversions."""
        own = FIRST if number == 0 else 1.0
        left, share = self.budget.left, own / (own + count - 1 - number)
        sites = _part_of(left, share * (1 - COPIES_SHARE))
        return sites, _part_of(left, share * COPIES_SHARE)

    def _searched(
        self,
        tasks: Sequence[SiteTask | ConversionTask],
        part: Budget,
        stage: str,
        options: SearchOptions,
    ) -> list[Tuned]:
        search = self.search([each.task for each in tasks], part, options)
        search.tell("stage", stage=stage)
        try:
            search.run()
        finally:
            self.budget.spend(part.spent.trials or 0)
        return search.tuned

    def _measure_conversions(self, part: Budget, stage: str) -> None:
        """As many of those that were not measured yet as there are a few trials for."""
        limits = [] if part.trials is None else [ceil(part.trials / FEW)]
        limits += [] if part.seconds is None else [ceil(part.seconds / COPY_SECONDS)]
        tasks = self.rounds.conversions()[: min(limits, default=None)]
        if tasks:
            part = replace(part)  # whose clock begins now
            options = replace(self.options, batch=FEW, patience=PATIENCE)
            self.rounds.tell_conversions(tasks, self._searched(tasks, part, stage, options))


def rounds_of(left: Amount, sites: int) -> int:
    """How many rounds a budget is enough for; one, if it is hardly enough for that."""
    found = [MOST_ROUNDS]
    if left.trials is not None:
        found.append(left.trials // (LEAST_TRIALS * max(1, sites)))
    if left.seconds is not None:
        found.append(int(left.seconds / (LEAST_SECONDS * max(1, sites))))
    return max(1, min(found))


def _part_of(left: Amount, share: float) -> Budget:
    trials = None if left.trials is None else max(1, int(left.trials * share))
    return Budget(trials, None if left.seconds is None else left.seconds * share)
