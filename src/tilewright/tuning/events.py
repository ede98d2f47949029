"""What a tuner tells while it works: the state of every task, and what has just happened.

`tune(on_event=…)` is called with an `Event` for each trial and each step. The live table of the
command line, and whatever else watches, is made of these alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Event", "OnEvent", "State", "TaskState"]

Kind = Literal["begin", "trial", "stage", "model", "end"]


@dataclass(frozen=True)
class TaskState:
    """One kernel: how often the model runs it, what it takes, and what was tried.

    Times are of one run in nanoseconds. `share` is its part of the model's time as drafted, all its
    runs together. `space` is how many points there are.
    """

    label: str
    recipe: str
    runs: int
    share: float
    drafted_ns: float
    best_ns: float
    trials: int = 0
    failures: int = 0
    space: int = 0
    is_done: bool = False

    @property
    def gain(self) -> float:
        """How many times as fast as drafted."""
        return self.drafted_ns / self.best_ns if self.best_ns else 1.0


@dataclass(frozen=True)
class State:
    """Everything so far. Times of the model are in milliseconds, None until they are measured.

    `trials_left` and `seconds_left` are by the budget; None where it has none of the kind.
    `predicted_ms` is the model's latency by the kernels' best times.
    """

    model: str
    tasks: tuple[TaskState, ...] = ()
    stage: str = ""
    trials: int = 0
    failures: int = 0
    seconds: float = 0.0
    trials_left: int | None = None
    seconds_left: float | None = None
    before_ms: float | None = None
    now_ms: float | None = None
    predicted_ms: float | None = None
    peers_ms: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Event:
    """What has happened, and the state behind it; `task` numbers the one of a trial."""

    kind: Kind
    state: State
    task: int | None = None
    outcome: str = ""
    detail: str = ""


OnEvent = Callable[[Event], None]
