"""Builds that give way: measuring has the processors that a job runs on for itself.

Builds here and measurements take turns on a machine. While one is measured, as many builds go on as
there are processors beside it: those that began last are paused, and no other one begins.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from tilewright.model.kernels import KernelTask
from tilewright.target import Target
from tilewright.tuning.measure.build import Built, LocalBuilder

__all__ = ["Gate"]


class Gate:
    """A `Builder` that has at most so many builds at once, and fewer beside a measurement."""

    def __init__(self, builder: LocalBuilder, most: int) -> None:
        self.builder = builder
        self._changed = threading.Condition()
        self._queue = deque[object]()  # who asked first is served first: answers have an order
        self._builds = 0
        self._most, self._room = most, most

    def build(self, task: KernelTask, target: Target, schedule: str = "draft") -> Built:
        """Build when there is room."""
        ticket = object()
        with self._changed:
            self._queue.append(ticket)
            self._changed.wait_for(lambda: self._queue[0] is ticket and self._builds < self._room)
            self._queue.popleft()
            self._builds += 1
            self._changed.notify_all()
        try:
            return self.builder.build(task, target, schedule)
        finally:
            with self._changed:
                self._builds -= 1
                self._changed.notify_all()

    @contextmanager
    def measuring(self, beside: int) -> Iterator[None]:
        """Have no more than so many builds while something is measured."""
        try:
            with self._changed:
                self._room = min(self._most, beside)
            self.builder.pause(beside)
            yield
        finally:
            self.builder.go_on()
            with self._changed:
                self._room = self._most
                self._changed.notify_all()

    def close(self) -> None:
        """End what the builder has started."""
        self.builder.close()
