"""Candidates become kernels in processes beside this one, within limits of time and memory.

`Builder` is the seam: whoever wants other kernels than those that points make (tests of crashes and
hangs, say) gives a runner a builder of its own. A builder is asked from several threads.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from tilewright.model.kernel_workers import request_of
from tilewright.model.kernels import KernelTask
from tilewright.target import Target
from tilewright.tuning.measure.limits import Limits
from tilewright.tuning.measure.process import GoneError, Process
from tilewright.tuning.measure.trial import BUILD, CRASH, OK

__all__ = ["Builder", "Built", "LocalBuilder", "ProcessBuilder", "Request", "build_request"]

MODULE = "tilewright.tuning.measure.build_worker"

Request = dict[str, Any]


@dataclass(frozen=True)
class Built:
    """A kernel as `kernel_store.encode` writes it, or why there is none."""

    data: bytes = b""
    status: str = OK
    detail: str = ""
    seconds: float = 0.0


class Builder(Protocol):
    """Something that makes kernels of tasks."""

    def build(self, task: KernelTask, target: Target, schedule: str = "draft") -> Built:
        """The kernel of a task with its points; `schedule` may be "none", too."""

    def close(self) -> None:
        """End everything that was started."""


class LocalBuilder(Builder, Protocol):
    """A builder on this machine, which gives processors away and takes them back."""

    def pause(self, but: int) -> None:
        """Let no more than so many builds go on until `go_on`."""

    def go_on(self) -> None:
        """Let all builds go on."""


def build_request(task: KernelTask, target: Target, schedule: str = "draft") -> Request:
    """What a process needs to build a kernel, here or on another machine, as data of JSON."""
    return {**request_of(task, schedule), "target": json.dumps(target.to_dict())}


class ProcessBuilder:
    """Builds in processes, as many as there are threads that ask at once."""

    def __init__(self, limits: Limits, start: Callable[[str], Process]) -> None:
        self.limits, self.start = limits, start
        self._idle: queue.LifoQueue[Process] = queue.LifoQueue()
        self._lock, self._is_closed = threading.Lock(), False
        self._busy: dict[Process, None] = {}
        self._paused: list[Process] = []

    def build(self, task: KernelTask, target: Target, schedule: str = "draft") -> Built:
        """Ask a process that has nothing to do, or a new one."""
        return self.answer(build_request(task, target, schedule))

    def answer(self, request: Request) -> Built:
        """The kernel of a request."""
        begin = time.perf_counter()
        with self._process() as process:
            try:
                answer, data = process.ask(request, within_s=self.limits.build_s)
            except GoneError as gone:
                # Not the candidate has crashed, but the compiler.
                status = BUILD if gone.status == CRASH else gone.status
                return Built(b"", status, f"while it was built: {gone.detail}", _since(begin))
        return Built(data, answer["status"], answer["detail"], _since(begin))

    def pause(self, but: int) -> None:
        """The builds that began last rest: measuring has their processors."""
        with self._lock:
            self._paused = list(self._busy)[but:]
            for process in self._paused:
                process.pause()

    def go_on(self) -> None:
        """Let all builds go on."""
        with self._lock:
            for process in self._paused:
                process.go_on()
            self._paused = []

    def close(self) -> None:
        """End all processes; threads that wait for one find it gone, and tidy up after it."""
        with self._lock:
            self._is_closed = True
            for process in self._busy:
                process.kill()
        while not self._idle.empty():
            self._idle.get().close()

    @contextmanager
    def _process(self) -> Iterator[Process]:
        """A process for one question."""
        process = self._taken()
        with self._lock:
            self._busy[process] = None
            if self._is_closed:
                process.kill()
        try:
            yield process
        finally:
            with self._lock:
                self._busy.pop(process, None)
                is_kept = not self._is_closed
            if is_kept and process.is_running:
                self._idle.put(process)
            else:
                process.close()

    def _taken(self) -> Process:
        while True:
            try:
                process = self._idle.get_nowait()
            except queue.Empty:
                return self.start(MODULE)
            if process.is_running:
                return process
            process.close()


def _since(begin: float) -> float:
    return time.perf_counter() - begin
