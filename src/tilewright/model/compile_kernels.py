"""Unique kernels are found in the store, or compiled once, several at a time.

LLVM works outside of Python's lock.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeAlias

from tilewright.model.kernel_plan import Planned
from tilewright.model.kernel_store import KernelStore
from tilewright.model.kernels import KernelTask, compile_task
from tilewright.pipeline import Compiled
from tilewright.schedule.source import DRAFT, ScheduleSource
from tilewright.target import Target

__all__ = ["Count", "Kernels", "compile_kernels", "compile_tasks"]

Count: TypeAlias = Callable[[int, int], None]
"""Called with how many of how many are done."""


@dataclass(frozen=True)
class Kernels:
    """The kernels of a plan, compiled, by their keys."""

    planned: Planned
    compiled: Mapping[str, Compiled]

    def __str__(self) -> str:
        from tilewright.model.listing import kernels_text

        return kernels_text(self)


def compile_kernels(
    plan: Planned,
    target: Target,
    store: KernelStore | None = None,
    progress: Count | None = None,
    schedules: ScheduleSource = DRAFT,
) -> Kernels:
    """Compile the kernels of a plan; `progress` is told how many of how many are done."""
    tasks = list(plan.tasks.values())
    unique = len({task.key for task in tasks})
    done: list[KernelTask] = []

    def report(task: KernelTask) -> None:
        done.append(task)
        if progress is not None:
            progress(len(done), unique)

    return Kernels(plan, compile_tasks(tasks, target, store, report, schedules))


def compile_tasks(
    tasks: Sequence[KernelTask],
    target: Target,
    store: KernelStore | None,
    report: Callable[[KernelTask], None],
    schedules: ScheduleSource = DRAFT,
) -> dict[str, Compiled]:
    """The kernel of each distinct program, by its key.

    `store` keeps kernels that the source `schedules` has scheduled.
    """
    unique = {task.key: task for task in tasks}

    def make(task: KernelTask) -> Compiled:
        kernel = store.find(task) if store is not None else None
        if kernel is None:
            kernel = compile_task(task, target, schedules)
            if store is not None:
                store.keep(task, kernel)
        return kernel

    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        futures = {key: pool.submit(make, task) for key, task in unique.items()}
        made: dict[str, Compiled] = {}
        try:
            for key, future in futures.items():
                made[key] = future.result()
                report(unique[key])
        except BaseException:  # nobody waits for the rest any more
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    if store is not None:
        store.tidy()
    return made
