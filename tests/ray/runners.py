"""Runners of nodes for tests: they build and measure for real, and tell a log what they did."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.unit.tuning.measure.clusters import by_points
from tilewright.tuning.measure.build import Built
from tilewright.tuning.measure.elsewhere import Elsewhere
from tilewright.tuning.measure.local import LocalRunner
from tilewright.tuning.measure.ray_places import RayPlaces
from tilewright.tuning.measure.trial import Outcome, Trial

__all__ = ["Clocked", "Recorded", "elsewhere_only", "elsewhere_or_here", "lines"]


@dataclass
class Clocked:
    """Answers with times that follow from points alone, once a kernel was built and run for real.

    What is right of a kernel stays so: one that fails has failed.
    """

    log: str = ""
    real: LocalRunner = field(default_factory=lambda: LocalRunner(1))

    def run(self, trials: Iterable[Trial]) -> Iterator[tuple[Trial, Outcome]]:
        for trial, outcome in self.real.run(trials):
            _tell(self.log, os.getpid())
            yield trial, by_points(trial.points) if outcome.is_ok else outcome

    def close(self) -> None:
        self.real.close()


@dataclass
class Recorded:
    """The builder of this node, which tells of what it builds, and may refuse to."""

    builder: object
    log: str
    refuses: bool

    def build(self, task, target, schedule="draft"):
        _tell(self.log, schedule)
        if self.refuses:
            return Built(status="build", detail="this was to be built elsewhere")
        return self.builder.build(task, target, schedule)

    def close(self):
        self.builder.close()


def elsewhere_only(log: str) -> LocalRunner:
    """A runner that measures only what others build."""
    return _elsewhere(log, refuses=True)


def elsewhere_or_here(log: str) -> LocalRunner:
    """A runner that builds what others do not."""
    return _elsewhere(log, refuses=False)


def _elsewhere(log: str, *, refuses: bool) -> LocalRunner:
    import ray

    places = RayPlaces(ray)
    while not places.room():  # until the builder has said what it is
        time.sleep(0.1)

    def wrap(here):
        return Elsewhere(Recorded(here, log, refuses), places)

    return LocalRunner(1, wrap=wrap)  # one build at a time: a builder of one processor has room


def lines(path: Path) -> list[str]:
    """What a log was told."""
    return path.read_text(encoding="utf-8").split() if path.exists() else []


def _tell(path: str, what: object) -> None:
    if path:
        with open(path, "a", encoding="utf-8") as file:  # noqa: PTH123
            file.write(f"{what}\n")
