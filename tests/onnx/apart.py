"""Work that may hang or crash, in processes of its own: what goes wrong with one task stays there.

The workers are forks, so that they have the cases of the parent without making them again. The
parent must not have threads of its own that matter to the work.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

__all__ = ["TICK_SECONDS", "each_apart"]

TICK_SECONDS = 1.0

Result = TypeVar("Result")


def each_apart(
    count: int,
    work: Callable[[int], Result],
    gone: Callable[[int, str], Result],
    *,
    workers: int = 2,
    limit_s: float = 120.0,
) -> Iterator[tuple[int, Result]]:
    """`work` of each number below `count`, in the order in which they are done.

    A task that ends its process or takes longer than `limit_s` becomes `gone(number, reason)`, and
    the others go on in a new process. Time in which this process was stopped as well does not
    count.
    """
    numbers = iter(range(count))
    busy = [_Worker(work) for _ in range(min(workers, count))]
    try:
        for worker in busy:
            worker.start(next(numbers))
        clock = time.monotonic()
        while busy:
            ready = wait([worker.pipe for worker in busy], timeout=TICK_SECONDS)
            clock, before = time.monotonic(), clock
            for place, worker in reversed(list(enumerate(busy))):
                worker.waited_s += min(clock - before, 2 * TICK_SECONDS)
                if worker.pipe in ready:
                    result = worker.result(gone)
                elif worker.waited_s > limit_s:
                    worker.end()
                    result = gone(worker.number, f"no result in {limit_s:g} s")
                else:
                    continue
                yield worker.number, result
                number = next(numbers, None)
                if number is None:
                    busy.pop(place).end()
                    continue
                if not worker.process.is_alive():
                    worker = busy[place] = _Worker(work)
                worker.start(number)
    finally:
        for worker in busy:
            worker.end()


class _Worker(Generic[Result]):
    """A process that does one task after another."""

    def __init__(self, work: Callable[[int], Result]) -> None:
        context = multiprocessing.get_context("fork")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, work), daemon=True)
        with warnings.catch_warnings():
            # Newer Pythons warn of forks among threads; those of the parent are of no interest.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.process.start()
        theirs.close()
        self.number, self.waited_s = -1, 0.0

    def start(self, number: int) -> None:
        """Hand over a task."""
        self.number, self.waited_s = number, 0.0
        self.pipe.send(number)

    def result(self, gone: Callable[[int, str], Result]) -> Result:
        """What came back, or what is said of a process that is gone."""
        try:
            found: Result = self.pipe.recv()
        except EOFError:
            self.process.join()
            code = self.process.exitcode or 0
            how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            return gone(self.number, f"the process ended with {how}")
        return found

    def end(self) -> None:
        """The process has nothing to save."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _serve(pipe: Connection, work: Callable[[int], Any]) -> None:
    try:
        while True:
            pipe.send(work(pipe.recv()))
    except EOFError:
        return
