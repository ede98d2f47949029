"""Work that may crash, hang or eat memory, in processes of its own that are used again and again.

A task tells its stages while it runs, so that the parent knows what it was about when its process
is gone. Workers are forks of a parent that has loaded no engine with threads; they die with it.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import resource
import signal
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Final, Generic, TypeVar

__all__ = ["Gone", "Limits", "each_apart"]

TICK_S: Final = 0.5
TASKS_OF_A_WORKER: Final = 150
PR_SET_PDEATHSIG: Final = 1

Task = TypeVar("Task")
Tell = Callable[[str, Any], None]
Work = Callable[[Any, Tell], Any]
"""What to do with a task; it may tell (key, value) pairs on its way."""


@dataclass(frozen=True)
class Limits:
    """Of each task: seconds, and bytes of address space of its process."""

    seconds: float = 60.0
    memory_bytes: int = 8 << 30


@dataclass(frozen=True)
class Gone:
    """A task that came to no result: how it ended (`crashed` or `hung`), and what it had told."""

    how: str
    why: str
    told: dict[str, Any]


def each_apart(
    tasks: Iterable[Task], work: Work, *, workers: int = 1, limits: Limits | None = None
) -> Iterator[tuple[Task, Any]]:
    """Each task with its result, or with `Gone`, in the order in which they are done."""
    limits = limits or Limits()
    waiting = iter(tasks)
    busy: list[_Worker[Task]] = []
    try:
        for _ in range(workers):
            _start_next(waiting, busy, _Worker(work, limits))
        clock = time.monotonic()
        while busy:
            ready = wait([worker.pipe for worker in busy], timeout=TICK_S)
            before, clock = clock, time.monotonic()
            for worker in list(busy):
                # Time in which this process was stopped as well does not count.
                worker.waited_s += min(clock - before, 2 * TICK_S)
                done, result = worker.look(is_ready=worker.pipe in ready, limit=limits.seconds)
                if done:
                    busy.remove(worker)
                    yield worker.task, result
                    _start_next(waiting, busy, worker.again(work, limits))
    finally:
        for worker in busy:
            worker.end()


def _start_next(waiting: Iterator[Task], busy: list[_Worker[Task]], worker: _Worker[Task]) -> None:
    for task in waiting:
        worker.start(task)
        busy.append(worker)
        return
    worker.end()


class _Worker(Generic[Task]):
    """A process, its pipe, and the task that it is at."""

    task: Task

    def __init__(self, work: Work, limits: Limits) -> None:
        context = multiprocessing.get_context("fork")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, work, limits), daemon=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forks among threads
            self.process.start()
        theirs.close()
        self.waited_s, self.count = 0.0, 0
        self.told: dict[str, Any] = {}

    def start(self, task: Task) -> None:
        self.task, self.waited_s, self.told = task, 0.0, {}
        self.count += 1
        self.pipe.send(task)

    def look(self, *, is_ready: bool, limit: float) -> tuple[bool, Any]:
        """Whether the task has ended, and with what."""
        if is_ready:
            try:
                key, value = self.pipe.recv()
            except (EOFError, ConnectionResetError):
                self.process.join()
                return True, Gone("crashed", _how(self.process.exitcode or 0), self.told)
            if key == "result":
                return True, value
            self.told[key] = value
        if self.waited_s > limit:
            self.end()
            return True, Gone("hung", f"no result in {limit:g} s", self.told)
        return False, None

    def again(self, work: Work, limits: Limits) -> _Worker[Task]:
        """This worker, or a new one if it is gone or has worked long enough."""
        if self.process.is_alive() and self.count < TASKS_OF_A_WORKER:
            return self
        self.end()
        return _Worker(work, limits)

    def end(self) -> None:
        """The process has nothing to save."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _how(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _serve(pipe: Connection, work: Work, limits: Limits) -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes, limits.memory_bytes))
    try:
        while True:
            result = work(pipe.recv(), lambda key, value: pipe.send((key, value)))
            pipe.send(("result", result))
    except EOFError:
        return
