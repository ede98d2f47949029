"""A runner over many nodes: trials go where there is room, and answers come as they are done.

Each trial is answered exactly once. Those that a lost worker had are repeated, alone on their next
worker, so that the loss of that one is theirs and nobody else's; after `repeats` of these they
have crashed. A candidate that its runner answers with a crash is never repeated: only a lost worker
is a fault of the infrastructure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from tilewright.tuning.measure.cluster import Answered, Cluster, Kind, Lost, Opened
from tilewright.tuning.measure.fleet import Fleet, Member
from tilewright.tuning.measure.trial import CRASH, Outcome, Trial

__all__ = ["AHEAD", "Dispatcher"]

AHEAD: Final = 6
"""Trials that a worker has at once: enough for its builders, and for those on the way."""

TICK_S: Final = 0.5
"""How long news are waited for until the fleet is looked at again."""

SILENCE_S: Final = 600.0
"""A worker that answers nothing for so long is given up; its runner's own limits are far below."""

Answer = tuple[Trial, Outcome]


@dataclass
class _Work:
    """A trial on its way, and how many workers were lost with it."""

    trial: Trial
    kind: Kind
    losses: int = 0


class Dispatcher:
    """A `Runner` over the nodes of a cluster."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        ahead: int = AHEAD,
        repeats: int = 2,
        wait_s: float = 60.0,
        silence_s: float = SILENCE_S,
    ) -> None:
        self._cluster = cluster
        self._fleet = Fleet(cluster, wait_s)
        self._ahead, self._repeats, self._silence_s = ahead, repeats, silence_s
        self._next = 0
        self._flight: dict[int, _Work] = {}
        self._waiting: deque[_Work] = deque()
        self._problem: Exception | None = None

    def run(self, trials: Iterable[Trial]) -> Iterator[Answer]:
        """Answer trials as they are done, in any order."""
        source = iter(trials)
        try:
            while self._fill(source):
                yield from self._answers()
                if self._problem is not None:
                    raise self._problem
        finally:
            self._fleet.forget()
            self._flight.clear()
            self._waiting.clear()
            self._problem = None

    def close(self) -> None:
        """Give all nodes back."""
        self._fleet.members.clear()
        self._cluster.close()

    def _fill(self, source: Iterator[Trial]) -> bool:
        """Give out trials while there is room; whether any are left to be answered."""
        while True:
            if not self._waiting:
                trial = next(source, None)
                if trial is None:
                    return bool(self._flight)
                self._waiting.append(_Work(trial, Kind.of(trial.job)))
            work = self._waiting[0]
            self._fleet.require(work.kind)
            member = self._with_room(work)
            if member is None:
                return True
            self._waiting.popleft()
            self._submit(member, work)

    def _with_room(self, work: _Work) -> Member | None:
        """The worker with the fewest trials; one with a trial that is repeated is left alone."""
        room = 1 if work.losses else self._ahead
        free = [
            member
            for member in self._fleet.of_kind(work.kind)
            if member.is_open and len(member.flight) < room and not self._repeats_on(member)
        ]
        return min(free, key=lambda member: len(member.flight), default=None)

    def _repeats_on(self, member: Member) -> bool:
        return any(self._flight[number].losses for number in member.flight)

    def _submit(self, member: Member, work: _Work) -> None:
        number, self._next = self._next, self._next + 1
        self._flight[number] = work
        self._fleet.submitted(member, number)
        self._cluster.submit(member.worker, number, work.trial.job, work.trial.points)

    def _answers(self) -> list[Answer]:
        """What is answered by now; all news are dealt with before anybody sees an answer."""
        answers: list[Answer] = []
        for event in self._cluster.news(TICK_S):
            match event:
                case Opened(worker):
                    self._fleet.opened(worker)
                case Answered(worker, number, outcome):
                    if self._fleet.answered(worker, number):
                        answers.append((self._flight.pop(number).trial, outcome))
                case Lost(worker, detail, problem):
                    answers += self._lost(worker, detail, problem)
        for worker in self._fleet.silent(self._silence_s):
            answers += self._lost(worker, f"no answer for {self._silence_s:g} s", None)
        return answers

    def _lost(self, worker: int, detail: str, problem: Exception | None) -> list[Answer]:
        """Repeat what a worker had; the answers of what has been repeated enough."""
        works = [self._flight.pop(number) for number in sorted(self._fleet.lost(worker, detail))]
        for work in works:
            work.losses += 1
        again = [work for work in works if work.losses <= self._repeats]
        self._waiting.extendleft(reversed(again))
        given_up = [work for work in works if work.losses > self._repeats]
        if given_up and problem is not None:
            self._problem = problem  # raised here as the runner itself would have
            return []
        if given_up:
            self._fleet.forgive()
        text = f"a worker was lost with it {self._repeats + 1} times: {detail}"
        return [(work.trial, Outcome(CRASH, detail=text)) for work in given_up]
