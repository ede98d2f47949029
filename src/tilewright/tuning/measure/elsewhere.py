"""Kernels built on other machines, and measured here.

Building needs a processor and no particular one: code for this machine can be made on any. So a
runner that measures may have kernels built where nobody measures (`Places`), which leaves its own
processors alone. What comes from there is used only if it says that it was made of this very
request, target and points included, by the same compiler. Everything else (a place that is lost,
has another version, or does not answer) is no fault of the candidate: its kernel is built here.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from tilewright.model.kernels import KernelTask
from tilewright.runtime.keys import digest_of_bytes
from tilewright.target import Target
from tilewright.tuning.measure.build import Builder, Built, Request, build_request
from tilewright.tuning.measure.fingerprint import Versions, versions
from tilewright.tuning.measure.trial import BUILD

__all__ = ["Elsewhere", "Made", "Places", "made"]

REST_S: Final = 5.0
"""After something went wrong elsewhere, for so long everything is built here."""


@dataclass(frozen=True)
class Made:
    """A kernel from another machine: what it was made of, and by which compiler."""

    built: Built
    request: str
    versions: Versions

    def is_of(self, request: Request) -> bool:
        """Whether it is what a build of a request would have made here."""
        return (self.request, self.versions) == (_digest(request), versions())


def made(request: Request, build: Callable[[Request], Built]) -> Made:
    """The kernel of a request, built where this runs."""
    return Made(build(request), _digest(request), versions())


class Places(Protocol):
    """Machines that build for others."""

    def room(self) -> int:
        """How many kernels can be built there at once; quick to be asked."""

    def ask(self, request: Request, is_over: Callable[[], bool]) -> Made | None:
        """The kernel of a request; None if there is none for a fault of the infrastructure.

        It gives up as soon as `is_over` says so.
        """


class Elsewhere:
    """A `Builder` that has kernels built elsewhere where there is room, and else here."""

    def __init__(
        self, here: Builder, places: Places, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.here, self.places = here, places
        self._clock = clock
        self._lock = threading.Lock()
        self._builds = 0
        self._rests_until = clock()
        self._is_closed = False

    def build(self, task: KernelTask, target: Target, schedule: str = "draft") -> Built:
        """The kernel of a task, wherever it was built."""
        if self._begins():
            try:
                found = self._asked(build_request(task, target, schedule))
            finally:
                with self._lock:
                    self._builds -= 1
            if found is not None:
                return found
        if self._is_closed:
            return Built(status=BUILD, detail="the runner was closed")
        return self.here.build(task, target, schedule)

    def close(self) -> None:
        """Wait for nothing any more, and end what was started here."""
        self._is_closed = True
        self.here.close()

    def _begins(self) -> bool:
        """Whether there is room elsewhere, which is taken then."""
        with self._lock:
            is_open = not self._is_closed and self._clock() >= self._rests_until
            if not is_open or self._builds >= self.places.room():
                return False
            self._builds += 1
            return True

    def _asked(self, request: Request) -> Built | None:
        found = self.places.ask(request, lambda: self._is_closed)
        if found is not None and found.is_of(request):
            return found.built
        with self._lock:
            self._rests_until = self._clock() + REST_S
        return None


def _digest(request: Request) -> str:
    return digest_of_bytes(json.dumps(request, sort_keys=True).encode())
