"""What runs on a node of a Ray cluster that measures: a runner, and trials that wait for it.

Ray calls `measure` once for each trial, from as many threads as there may be trials at once. One
thread of its own gives them to the runner, so that the runner sees a row of trials and builds
ahead as it does locally. It is given what is at hand: a row that waited for more, with trials in it
that nobody has answered, would wait for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, suppress
from itertools import chain
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any

from tilewright.tuning.measure.sending import from_bytes
from tilewright.tuning.measure.trial import Job, Outcome, Runner, Trial

__all__ = ["MakeRunner", "NodeWorker"]

MakeRunner = Callable[[], Runner]
"""Makes the runner of a node, there."""

CLOSE_S = 10.0
"""How long a runner may take to end its processes."""


class NodeWorker:
    """The actor on a node, which has it for itself."""

    def __init__(self, make_runner: MakeRunner) -> None:
        self._make_runner = make_runner
        self._begun: Future[None] = Future()
        self._waiting: SimpleQueue[Trial | None] = SimpleQueue()
        self._answers: dict[int, Future[Outcome]] = {}
        self._jobs: dict[int, Job] = {}
        self._problem: BaseException | None = None
        self._lock = Lock()
        self._thread = Thread(target=self._serve, daemon=True)
        self._thread.start()

    def begun(self) -> bool:
        """Return as soon as there is a runner; raises what kept it from being made."""
        self._begun.result()
        return True

    def measure(self, number: int, job: int, boxed: list[Any], points: bytes) -> Outcome:
        """The outcome of a trial; `boxed` refers to the job, which is fetched once."""
        answer: Future[Outcome] = Future()
        trial = Trial(self._job(job, boxed), from_bytes(points), tag=number)
        with self._lock:
            if self._problem is not None:
                raise self._problem
            self._answers[number] = answer
            self._waiting.put(trial)
        return answer.result()

    def forget(self) -> None:
        """Leave out what the runner has not been given."""
        for trial in self._at_hand():
            with self._lock:
                self._answers.pop(_number(trial)).cancel()

    def close(self) -> None:
        """End the runner with its processes."""
        self.forget()
        self._waiting.put(None)
        self._thread.join(CLOSE_S)

    def _job(self, number: int, boxed: list[Any]) -> Job:
        import ray

        with self._lock:
            if number not in self._jobs:
                self._jobs[number] = from_bytes(ray.get(boxed[0]))
            return self._jobs[number]

    def _serve(self) -> None:
        """One runner, made, used and closed by one thread: its processes may depend on that."""
        try:
            runner = self._make_runner()
        except BaseException as problem:  # noqa: BLE001 (whoever asks raises it)
            self._begun.set_exception(problem)
            return
        self._begun.set_result(None)
        try:
            with closing(runner):
                while (first := self._waiting.get()) is not None:
                    for trial, outcome in runner.run(chain([first], self._at_hand())):
                        self._answer(trial, outcome)
        except BaseException as problem:  # noqa: BLE001 (whoever asks raises it)
            self._fail(problem)

    def _at_hand(self) -> Iterator[Trial]:
        with suppress(Empty):
            while (trial := self._waiting.get_nowait()) is not None:
                yield trial
            self._waiting.put(None)  # the end, which is for `_serve`

    def _answer(self, trial: Trial, outcome: Outcome) -> None:
        with self._lock:
            answer = self._answers.pop(_number(trial))
        answer.set_result(outcome)

    def _fail(self, problem: BaseException) -> None:
        with self._lock:
            self._problem = problem
            answers, self._answers = self._answers, {}
        for answer in answers.values():
            answer.set_exception(problem)


def _number(trial: Trial) -> int:
    assert isinstance(trial.tag, int)
    return trial.tag
