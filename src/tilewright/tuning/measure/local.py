"""Building and measuring on this machine.

Builders work ahead in processes of their own, one for each processor, while one process measures.
Measuring is exclusive: meanwhile, builds on the processors that a job runs on are paused
(`gate.py`). Answers come in the order of the questions.

A process that a candidate has ended is replaced, and told the job anew. One that ran other
candidates before may have been damaged by them without anybody noticing; so what it says of a crash
or of wrong results is asked once more, of a fresh one. A job whose own reference fails is not begun
again: all its trials fail, and say so.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, Self

from tilewright.runtime.pool import usable_cpus
from tilewright.target import Target
from tilewright.tuning.measure.build import Builder, Built, LocalBuilder, ProcessBuilder
from tilewright.tuning.measure.gate import Gate
from tilewright.tuning.measure.limits import Limits
from tilewright.tuning.measure.process import GoneError, Process
from tilewright.tuning.measure.setup import setup_of, wants_plain
from tilewright.tuning.measure.trial import CRASH, OK, WRONG, Job, Outcome, Trial

__all__ = ["LocalRunner"]

MODULE: Final = "tilewright.tuning.measure.worker"
ATTEMPTS: Final = 2
"""At the reference of a job: once more, should the first process have ended for another reason."""
DEFAULT: Final = Limits()


@dataclass
class _Prepared:
    """A job as the measuring process is told it, or why it cannot be measured at all.

    `plain` is there as soon as a candidate is to be compared with it.
    """

    key: str
    question: dict[str, Any] = field(default_factory=dict)
    drafted: bytes = b""
    plain: bytes = b""
    failure: Outcome | None = None


class LocalRunner:
    """Builds with so many processes, and measures with one more (`trial.Runner`).

    `builder` makes kernels in another way, and `wrap` makes another builder of the one there is:
    one with faults, or one that has `elsewhere` kernels at once built on other machines.
    """

    def __init__(
        self,
        builders: int | None = None,
        limits: Limits = DEFAULT,
        builder: LocalBuilder | None = None,
        wrap: Callable[[Builder], Builder] = lambda builder: builder,
        elsewhere: int = 0,
    ) -> None:
        here = builders or usable_cpus()
        self.limits, self.builders = limits, here + elsewhere
        # Its one thread starts all processes, and lives as long as they do (see `process.py`).
        self._starter = ThreadPoolExecutor(1, "tilewright-start")
        self._builds = ThreadPoolExecutor(self.builders, "tilewright-build")
        self._gate = Gate(builder or ProcessBuilder(limits, self._started), here)
        self._builder = wrap(self._gate)
        self._worker: Process | None = None
        self._jobs: dict[object, Future[_Prepared]] = {}
        self._plains: dict[object, Future[Built]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, trials: Iterable[Trial]) -> Iterator[tuple[Trial, Outcome]]:
        """Answer trials in their order; `2 * builders + 1` are asked for ahead."""
        coming, source = deque[tuple[Trial, Future[Built] | None]](), iter(trials)
        is_over = False
        try:
            while True:
                while not is_over and len(coming) < 2 * self.builders + 1:
                    trial = next(source, None)
                    is_over = trial is None
                    if trial is not None:
                        self._prepared(trial.job)
                        coming.append((trial, self._building(trial)))
                if not coming:
                    return
                trial, built = coming.popleft()
                yield trial, self._outcome(trial, built)
        finally:
            for _, future in coming:
                if future is not None:
                    future.cancel()

    def close(self) -> None:
        """End all processes, also in the middle of something."""
        self._builds.shutdown(wait=False, cancel_futures=True)
        self._builder.close()
        if self._worker is not None:
            self._worker.close()
            self._worker = None
        self._builds.shutdown(wait=True)
        self._starter.shutdown(wait=True)

    def _started(self, module: str) -> Process:
        return self._starter.submit(Process, module, self.limits).result()

    def _building(self, trial: Trial) -> Future[Built] | None:
        """Its kernel; the draft is the reference of its job, and is not built again."""
        if not trial.points:
            return None
        self._build_plain(trial.job)
        task = trial.job.task.with_points(trial.points)
        return self._builds.submit(self._builder.build, task, trial.job.target)

    def _outcome(self, trial: Trial, building: Future[Built] | None) -> Outcome:
        built = Built() if building is None else building.result()
        if built.status != OK:
            return Outcome(built.status, detail=built.detail, build_s=built.seconds)
        job = self._prepared(trial.job).result()
        if job.failure is not None:
            return job.failure
        plain = self._plains.get(_key(trial.job))
        if plain is not None:
            job.plain = plain.result().data
        with self._gate.measuring(max(0, usable_cpus() - trial.job.threads)):
            begin = time.perf_counter()
            answer = self._measured(job, job.drafted if building is None else built.data)
        return Outcome(
            answer["status"],
            answer.get("time_ns", 0.0),
            answer.get("reference_ns", 0.0),
            answer.get("spread", 0.0),
            answer["detail"],
            built.seconds,
            time.perf_counter() - begin,
        )

    def _prepared(self, job: Job) -> Future[_Prepared]:
        """The reference of a job, built before its first candidate."""
        known = self._jobs.get(_key(job))
        if known is None:
            known = self._builds.submit(self._prepare, job, f"job {len(self._jobs)}")
            self._jobs[_key(job)] = known
        return known

    def _build_plain(self, job: Job) -> None:
        """What candidates are compared with, where a program as it is written is quick enough.

        A variant of which only the draft is measured needs none. Where it cannot be built or kept,
        the draft says what is right.
        """
        if _key(job) not in self._plains and wants_plain(job):
            asked = self._builds.submit(self._builder.build, job.task, job.target, "none")
            self._plains[_key(job)] = asked

    def _prepare(self, job: Job, key: str) -> _Prepared:
        job.target.require_runs_on(Target.host())
        drafted = self._builder.build(job.task, job.target)
        if drafted.status != OK:
            return _Prepared(key, failure=_of_reference(drafted.status, drafted.detail))
        question = {
            "do": "job",
            "job": key,
            "setup": setup_of(job).to_data(),
            "drafted_bytes": len(drafted.data),
        }
        return _Prepared(key, question, drafted.data)

    def _measured(self, job: _Prepared, data: bytes) -> dict[str, Any]:
        """The answer to a trial, of a process that can be trusted."""
        while True:
            worker = self._fit_worker()
            is_fresh = worker.is_fresh
            answer = self._asked(worker, job, data)
            if answer["status"] not in (CRASH, WRONG):
                return answer
            worker.renew()  # who wrote wrong values may have written them anywhere
            if is_fresh or job.failure is not None:
                return answer

    def _asked(self, worker: Process, job: _Prepared, data: bytes) -> dict[str, Any]:
        """One trial, after its job if the process does not have that."""
        question = {"do": "trial", "job": job.key, "checked": bool(job.plain)}
        try:
            answer, _ = worker.ask(question, data, self.limits.run_s)
            if "unknown" in answer:
                problem = self._set_up(job)
                if problem is not None:
                    return {"status": problem.status, "detail": problem.detail}
                answer, _ = self._fit_worker().ask(question, data, self.limits.run_s)
        except GoneError as gone:
            return {"status": gone.status, "detail": gone.detail}
        return answer

    def _set_up(self, job: _Prepared) -> Outcome | None:
        """Tell the process a job; what is wrong with its reference, which stays so."""
        status, detail = OK, ""
        for _ in range(ATTEMPTS):
            try:
                data = job.drafted + job.plain
                answer, _ = self._fit_worker().ask(job.question, data, self.limits.setup_s)
                status, detail = answer["status"], answer["detail"]
            except GoneError as gone:
                status, detail = gone.status, gone.detail
            if status == OK:
                return None
        job.failure = _of_reference(status, detail)
        return job.failure

    def _fit_worker(self) -> Process:
        if self._worker is None or not self._worker.is_running:
            if self._worker is not None:
                self._worker.close()
            self._worker = self._started(MODULE)
        return self._worker


def _key(job: Job) -> object:
    """What equal jobs have in common."""
    sizes = tuple(sorted(job.sizes.items()))
    return job.task.key, job.target, job.threads, sizes, job.cold_bytes


def _of_reference(status: str, detail: str) -> Outcome:
    return Outcome(status, detail=f"the drafted kernel, not the candidate: {detail}")
