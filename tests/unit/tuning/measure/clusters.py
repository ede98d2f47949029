"""A cluster without machines, which breaks where a test says so, and a runner without kernels."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from tilewright.model.kernels import KernelTask
from tilewright.records.record import target_key
from tilewright.schedule.points import data_of
from tilewright.target import Target
from tilewright.tensor.parser import parse
from tilewright.tuning.measure.cluster import Answered, Lost, News, Node, Opened
from tilewright.tuning.measure.trial import CRASH, Job, Outcome, Trial

__all__ = ["HERE", "FakeRunner", "Simulated", "by_points", "job", "outcome_of", "trials"]

HERE = target_key(Target.host())

PROGRAM = """
def kernel(p0: f32[8], p1: f32[8]):
    for i in range(8):
        p1[i] = p0[i] + 1.0
"""


def job(threads: int = 1, target: Target | None = None) -> Job:
    """One that no fake runner looks at."""
    program = parse(PROGRAM)
    task = KernelTask(program, (), frozenset(), (), 1, "plus one")
    return Job(task, target or Target.host(), threads)


def trials(count: int, own: Job | None = None) -> list[Trial]:
    """So many trials of one job, whose points are their numbers."""
    shared = own or job()
    return [Trial(shared, {"p1": number}, tag=f"trial {number}") for number in range(count)]


def outcome_of(points: Mapping[str, object]) -> Outcome:
    """What a fake runner measures: a best point, and one in seven that crashes."""
    number = points["p1"]
    assert isinstance(number, int)
    if number % 7 == 3:
        return Outcome(CRASH, detail="illegal instruction (SIGILL)")
    return Outcome(time_ns=100.0 + number * 37 % 101, reference_ns=150.0)


def by_points(points: Mapping[str, object]) -> Outcome:
    """A time that follows from points alone, whoever measures them, and when; some crash."""
    text = str([(block, data_of(point)) for block, point in sorted(points.items())])
    number = int.from_bytes(blake2b(text.encode(), digest_size=4).digest())
    if number % 11 == 0:
        return Outcome(CRASH, detail="illegal instruction (SIGILL)")
    return Outcome(time_ns=500.0 + number % 1_000_003 / 1000, reference_ns=1000.0)


@dataclass
class FakeRunner:
    """A runner that takes its time, tells `log` of each trial, and ends its process at `deadly`."""

    log: str = ""
    pause_s: float = 0.0
    deadly: frozenset[int] = frozenset()

    def run(self, trials: Iterable[Trial]) -> Iterator[tuple[Trial, Outcome]]:
        for trial in trials:
            self._tell(trial)
            time.sleep(self.pause_s)
            if trial.points["p1"] in self.deadly:
                os._exit(1)
            yield trial, outcome_of(trial.points)

    def close(self) -> None:
        pass

    def _tell(self, trial: Trial) -> None:
        if self.log:
            with open(self.log, "a", encoding="utf-8") as file:  # noqa: PTH123
                file.write(f"{trial.points['p1']} {os.getpid()} {time.monotonic_ns()}\n")


@dataclass
class Simulated:
    """A cluster whose `breaks` decides, for each trial that a worker is about to answer."""

    found: list[Node] = field(default_factory=lambda: [Node("a", "a", HERE, 8)])
    breaks: Callable[[int, int], bool | Exception] = lambda _worker, _number: False
    refuses: bool = False
    measure: Callable[[Mapping[str, object]], Outcome] = outcome_of
    places: dict[int, Node] = field(default_factory=dict)
    submitted: list[tuple[int, int]] = field(default_factory=list)
    together: dict[int, int] = field(default_factory=dict)
    """How many trials a worker had, at most."""
    forgotten: int = 0
    rows: dict[int, list[tuple[int, Mapping[str, object]]]] = field(default_factory=dict)
    fresh: list[News] = field(default_factory=list)

    def nodes(self) -> list[Node]:
        return list(self.found)

    def open(self, worker: int, node: Node) -> None:
        assert all(place.id != node.id for place in self.places.values()), "two on one node"
        assert worker not in self.rows, "a number is used twice"
        self.places[worker] = node
        self.rows[worker] = []
        if not self.refuses:
            self.fresh.append(Opened(worker))

    def submit(self, worker: int, number: int, job: Job, points: Mapping[str, object]) -> None:
        assert job.target == Target.host()
        assert worker in self.places, "given to a worker that has ended"
        self.rows[worker].append((number, points))
        self.submitted.append((worker, _number(points)))
        self.together[worker] = max(self.together.get(worker, 0), len(self.rows[worker]))

    def news(self, timeout_s: float) -> list[News]:
        assert timeout_s > 0
        events, self.fresh = self.fresh, []
        for worker in [w for w in self.places if self.rows[w]]:
            number, points = self.rows[worker][0]
            broken = self.breaks(worker, _number(points))
            if broken is False:
                self.rows[worker].pop(0)
                events.append(Answered(worker, number, self.measure(points)))
            else:
                problem = broken if isinstance(broken, Exception) else None
                # A worker's own answer may come when it is known to be lost, and Ray tells of
                # the loss once for each trial.
                late = Answered(worker, number, replace(self.measure(points), time_ns=1.0))
                events += [Lost(worker, "its node ended", problem), late]
                events.append(Lost(worker, "its node ended", problem))
        if not events:
            time.sleep(0.001)
        return events

    def forget(self, worker: int) -> None:
        self.forgotten += 1
        self.rows[worker].clear()

    def end(self, worker: int) -> None:
        del self.places[worker]

    def close(self) -> None:
        self.places.clear()


def _number(points: Mapping[str, object]) -> int:
    """That of points which are a number; zero for real ones."""
    return int(str(points.get("p1", 0)))
