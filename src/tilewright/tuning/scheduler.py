"""Which task gets the next trials: the one whose next trial is expected to gain most.

What a model takes is the sum over its tasks of runs × best time. Ansor's gradient says what one
more trial of a task takes off it, from two guesses: the recent past goes on (the slope of the best
time over the last rounds), or what is left to the least time that can be hoped for takes about as
many trials as there were, and more by each round that has gained nothing. That least time is the
task's `floor_ns`, corrected by what its relatives have reached of theirs: where one matrix product
has come to 80 % of its roofline, so can another. Slopes are by second instead of by trial once it
is told how long trials take.

The first rounds go to all tasks by turns, and a few later ones to any: a slope has to be known
before it is believed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import isfinite
from typing import Final

import numpy as np

__all__ = ["Scheduler", "TaskWeight"]

LEAST: Final = 0.02
"""The share of its time that a task may still gain when it has come to its floor: floors are
predictions."""
NOTICED: Final = 0.005
"""A round that gains a smaller share of the time has gained nothing."""


@dataclass(frozen=True)
class TaskWeight:
    """A task as its scheduler sees it: how often the model runs it, and what one run takes.

    `drafted_ns` is the time of the draft; `floor_ns` what the machine allows at best, 0 if nothing
    is known. Tasks of the same `kind` come about as close to their floors as each other; an empty
    kind has no relatives.
    """

    runs: float
    drafted_ns: float
    floor_ns: float = 0.0
    kind: str = ""


@dataclass
class _History:
    """Best times of one task, behind so many trials each."""

    trials: list[int] = field(default_factory=list)
    bests: list[float] = field(default_factory=list)
    seconds: float = 0.0
    rounds_asked: int = 0
    is_stopped: bool = False


class Scheduler:
    """Tasks by expected gain; `next`, then `tell` what came of it.

    `share` is the weight of the recent slope (Ansor's alpha), `window` the rounds that it looks
    back, `warm_up` the rounds that every task has before, and `epsilon` the share of random ones.
    Several rounds may be asked for before the first is told.
    """

    def __init__(
        self,
        tasks: Sequence[TaskWeight],
        rng: np.random.Generator,
        *,
        share: float = 0.2,
        window: int = 3,
        warm_up: int = 1,
        epsilon: float = 0.05,
    ) -> None:
        self.tasks, self.rng = tuple(tasks), rng
        self.share, self.window, self.warm_up, self.epsilon = share, window, warm_up, epsilon
        self._histories = [_History([0], [task.drafted_ns]) for task in self.tasks]

    def next(self) -> int | None:
        """The number of the task to go on with; None when all are stopped."""
        live = [k for k, history in enumerate(self._histories) if not history.is_stopped]
        if not live:
            return None
        task = self._choose(live)
        self._histories[task].rounds_asked += 1
        return task

    def tell(self, task: int, best_ns: float, trials: int, seconds: float = 0.0) -> None:
        """So many more trials were made, and the task's best is this now.

        A best that is no time, as where everything failed, leaves it where it was.
        """
        history = self._histories[task]
        best = best_ns if isfinite(best_ns) and best_ns > 0 else history.bests[-1]
        history.bests.append(min(best, history.bests[-1]))
        history.trials.append(history.trials[-1] + trials)
        history.seconds += seconds

    def stop(self, task: int) -> None:
        """A task has nothing more to try, or has been tried enough."""
        self._histories[task].is_stopped = True

    def resume(self, task: int) -> None:
        """A task may go on after all."""
        self._histories[task].is_stopped = False

    @property
    def total_ns(self) -> float:
        """A run of the model by the best times so far."""
        return sum(t.runs * self.best_ns(k) for k, t in enumerate(self.tasks))

    def best_ns(self, task: int) -> float:
        """The least time of one run so far; the draft's at the beginning."""
        return self._histories[task].bests[-1]

    def gain(self, task: int) -> float:
        """Nanoseconds of a run of the model that the next trial (or second) is expected to save."""
        history, best = self._histories[task], self.best_ns(task)
        trials = max(1, history.trials[-1])
        begin = max(0, len(history.bests) - 1 - self.window)
        since = history.trials[-1] - history.trials[begin]
        recent = (history.bests[begin] - best) / since if since else 0.0
        left = max(best - self._reachable(task), LEAST * best)
        hoped = left / (trials * (1 + _idle_rounds(history.bests)))
        slope = self.share * recent + (1 - self.share) * hoped
        return self.tasks[task].runs * slope / self._seconds_of_trial(task)

    def _choose(self, live: list[int]) -> int:
        asked = [self._histories[k].rounds_asked for k in live]
        if min(asked) < self.warm_up:
            # The heaviest first: a budget may end before all have had their turn.
            behind = [k for k, count in zip(live, asked, strict=True) if count == min(asked)]
            return max(behind, key=lambda k: self.tasks[k].runs * self.best_ns(k))
        if self.rng.random() < self.epsilon:
            return int(self.rng.choice(live))
        gains = np.array([self.gain(k) for k in live])
        return live[int(self.rng.choice(np.flatnonzero(gains == gains.max())))]

    def _reachable(self, task: int) -> float:
        """The least time that can be hoped for: between the floor and what relatives show.

        The geometric mean of both. The best of all relatives has something to gain as well, and one
        far behind them has more.
        """
        own = self.tasks[task]
        reached = [
            self.tasks[k].floor_ns / self.best_ns(k)
            for k, other in enumerate(self.tasks)
            if own.kind and other.kind == own.kind and self._histories[k].trials[-1]
        ]
        most = min(1.0, max(reached, default=0.0))
        return own.floor_ns / most**0.5 if most > 0 and len(reached) > 1 else own.floor_ns

    def _seconds_of_trial(self, task: int) -> float:
        """What a trial of this task takes; 1 if it is not told of every task that had one."""
        known = [h for h in self._histories if h.trials[-1]]
        if not known or any(h.seconds <= 0 for h in known):
            return 1.0
        mine = self._histories[task]
        told = [mine] if mine.trials[-1] else known
        return sum(h.seconds for h in told) / sum(h.trials[-1] for h in told)


def _idle_rounds(bests: list[float]) -> int:
    """Rounds since the one that has last gained something."""
    for idle, (before, behind) in enumerate(pairwise(reversed(bests))):
        if before < behind * (1 - NOTICED):
            return idle
    return len(bests) - 1
