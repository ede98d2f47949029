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
from typing import Protocol

from tilewright.model.kernel_workers import request_of
from tilewright.model.kernels import KernelTask
from tilewright.target import Target
from tilewright.tune.measure.limits import Limits
from tilewright.tune.measure.process import GoneError, Process
from tilewright.tune.measure.trial import BUILD, CRASH, OK

__all__ = ["Builder", "Built", "ProcessBuilder"]

MODULE = "tilewright.tune.measure.build_worker"


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


class ProcessBuilder:
    """Builds in processes, as many as there are threads that ask at once."""

    def __init__(self, limits: Limits, start: Callable[[str], Process]) -> None:
        self.limits, self.start = limits, start
        self._idle: queue.LifoQueue[Process] = queue.LifoQueue()
        self._targets: dict[Target, str] = {}
        self._lock, self._is_closed = threading.Lock(), False
        self._busy: set[Process] = set()

    def build(self, task: KernelTask, target: Target, schedule: str = "draft") -> Built:
        """Ask a process that has nothing to do, or a new one."""
        begin = time.perf_counter()
        request = {**request_of(task, schedule), "target": self._target(target)}
        with self._process() as process:
            try:
                answer, data = process.ask(request, within_s=self.limits.build_s)
            except GoneError as gone:
                # Not the candidate has crashed, but the compiler.
                status = BUILD if gone.status == CRASH else gone.status
                return Built(b"", status, f"while it was built: {gone.detail}", _since(begin))
        return Built(data, answer["status"], answer["detail"], _since(begin))

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
            self._busy.add(process)
            if self._is_closed:
                process.kill()
        try:
            yield process
        finally:
            with self._lock:
                self._busy.discard(process)
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

    def _target(self, target: Target) -> str:
        text = self._targets.get(target)
        if text is None:
            text = self._targets[target] = json.dumps(target.to_dict())
        return text


def _since(begin: float) -> float:
    return time.perf_counter() - begin
