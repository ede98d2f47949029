"""Candidates become kernels in processes beside this one, within limits of time and memory.

`Builder` is the seam: whoever wants other kernels than those that points make (tests of crashes and
hangs, say) gives a runner a builder of its own. A builder is asked from several threads.
"""

from __future__ import annotations

import json
import queue
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from tilewright.model.kernel_workers import request_of
from tilewright.model.kernels import KernelTask
from tilewright.target import Target
from tilewright.tuning.measure.limits import Limits
from tilewright.tuning.measure.process import GoneError, Process
from tilewright.tuning.measure.trial import BUILD, OK

__all__ = ["Builder", "Built", "ProcessBuilder"]

MODULE = "tilewright.tuning.measure.build_worker"


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
        self._all: set[Process] = set()
        self._targets: dict[Target, str] = {}

    def build(self, task: KernelTask, target: Target, schedule: str = "draft") -> Built:
        """Ask a process that has nothing to do, or a new one."""
        begin = time.perf_counter()
        process = self._taken()
        request = {**request_of(task, schedule), "target": self._target(target)}
        try:
            answer, data = process.ask(request, within_s=self.limits.build_s)
        except GoneError as gone:
            self._all.discard(process)
            # Who built is gone; what of the build was to blame is for the record.
            status = BUILD if gone.status == "crash" else gone.status
            return Built(b"", status, f"while it was built: {gone.detail}", _since(begin))
        self._idle.put(process)
        return Built(data, answer["status"], answer["detail"], _since(begin))

    def close(self) -> None:
        """End all processes; threads that wait for one find it gone."""
        for process in list(self._all):
            process.close()
        self._all.clear()

    def _taken(self) -> Process:
        while True:
            try:
                process = self._idle.get_nowait()
            except queue.Empty:
                process = self.start(MODULE)
                self._all.add(process)
                return process
            if process.is_running:
                return process
            self._all.discard(process)

    def _target(self, target: Target) -> str:
        text = self._targets.get(target)
        if text is None:
            text = self._targets[target] = json.dumps(target.to_dict())
        return text


def _since(begin: float) -> float:
    return time.perf_counter() - begin
