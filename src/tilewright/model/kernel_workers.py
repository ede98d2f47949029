"""Processes that compile kernels beside this one.

Two thirds of the work on a kernel are Python (schedule, lowering, text for LLVM), and Python runs
one thread of a process at a time. So a model with many kernels has helpers on the other
processors. Programs go there as text, which parses back to an equal program; kernels come back as
bytes. A helper that cannot be had, or dies, is no error: its share is compiled here.

Until a helper can compile, it imports the compiler for most of a second. One is therefore begun as
soon as a model seems to have many kernels, while they are still being chosen and planned.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from tilewright.model.kernel_store import decode
from tilewright.model.kernels import KernelTask, name_of
from tilewright.options import child_environment
from tilewright.pipeline import Compiled
from tilewright.runtime.pool import usable_cpus
from tilewright.schedule.points import data_of
from tilewright.target import Target

__all__ = ["FEWEST_KERNELS", "PACKAGE_FOLDER", "KernelWorker", "first_worker", "kernel_workers"]
__all__ += ["request_of"]

FEWEST_KERNELS: Final = 16
"""With fewer kernels to compile, starting a process takes longer than it saves."""

MOST_WORKERS: Final = 7
"""A worker holds about 100 MB."""

PACKAGE_FOLDER: Final = Path(__file__).parents[2]


class KernelWorker:
    """A process that compiles one kernel after another."""

    def __init__(self, target: Target) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tilewright.model.kernel_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=child_environment(PACKAGE_FOLDER),
        )
        self._send(target.to_dict())

    def compiled(self, task: KernelTask) -> Compiled | None:
        """The kernel of a task; None if the process cannot make it, or is gone."""
        from tilewright.model.kernel_worker import LENGTH

        try:
            self._send(request_of(task))
            assert self._process.stdout is not None
            head = self._process.stdout.read(LENGTH.size)
            data = self._process.stdout.read(LENGTH.unpack(head)[0]) if head else b""
            return decode(data) if data else None
        except (OSError, ValueError):
            return None

    def close(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                assert stream is not None
                stream.close()

    def _send(self, message: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()


def request_of(task: KernelTask, schedule: str = "draft") -> dict[str, Any]:
    """What another process needs to compile a kernel, as data of JSON."""
    return {
        "program": str(task.program.with_fields(name=name_of(task))),
        "threads": task.threads,
        "constants": sorted(task.constants),
        "schedule": schedule,
        "loops": None if task.loops is None else data_of(task.loops),
        "points": {block: data_of(point) for block, point in task.points.items()},
    }


def first_worker(target: Target, kernels: int) -> list[KernelWorker]:
    """A helper ahead of time for a model that will have about so many kernels, or none."""
    if _count(kernels) > 0:
        with suppress(OSError):
            return [KernelWorker(target)]
    return []


def _count(kernels: int) -> int:
    return min(usable_cpus() - 1, MOST_WORKERS, kernels // FEWEST_KERNELS * MOST_WORKERS)


@contextmanager
def kernel_workers(
    target: Target, kernels: int, begun: Sequence[KernelWorker] = ()
) -> Iterator[list[KernelWorker]]:
    """Helpers for so many kernels: one for each other processor, or none; first those `begun`."""
    count = _count(kernels)
    workers = list(begun)
    try:
        for _ in range(count - len(workers)):
            with suppress(OSError):
                workers.append(KernelWorker(target))
        yield workers[: max(count, 0)]
    finally:
        for worker in workers:
            worker.close()
