"""Unique kernels are found in the store, or compiled once, several at a time.

LLVM works outside of Python's lock, and many kernels are shared with other processes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import TypeAlias

from tilewright.model.kernel_plan import Planned
from tilewright.model.kernel_store import KernelStore
from tilewright.model.kernel_workers import KernelWorker, kernel_workers
from tilewright.model.kernels import KernelTask, compile_task
from tilewright.pipeline import Compiled
from tilewright.schedule.source import DRAFT, ScheduleSource, points_from
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.visit import walk

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
    begun: Sequence[KernelWorker] = (),
) -> Kernels:
    """Compile the kernels of a plan; `progress` is told how many of how many are done.

    Processes that have `begun` to help are ended with all others.
    """
    tasks = list(plan.tasks.values())
    unique = len({task.key for task in tasks})
    done: list[KernelTask] = []

    def report(task: KernelTask) -> None:
        done.append(task)
        if progress is not None:
            progress(len(done), unique)

    return Kernels(plan, compile_tasks(tasks, target, store, report, schedules, begun))


def compile_tasks(
    tasks: Sequence[KernelTask],
    target: Target,
    store: KernelStore | None,
    report: Callable[[KernelTask], None],
    schedules: ScheduleSource = DRAFT,
    begun: Sequence[KernelWorker] = (),
) -> dict[str, Compiled]:
    """The kernel of each distinct program, by its key.

    `store` keeps kernels that the source `schedules` has scheduled.
    """
    unique = {task.key: task for task in tasks}

    made: dict[str, Compiled] = {}
    for key, task in unique.items():
        kernel = store.find(task) if store is not None else None
        if kernel is not None:
            made[key] = kernel
            report(task)
    missing = [task for key, task in unique.items() if key not in made]
    for task, kernel in _compiled(missing, target, schedules, begun):
        made[task.key] = kernel
        report(task)
        if store is not None:
            store.keep(task, kernel)
    if store is not None:
        store.tidy()
    return {key: made[key] for key in unique}


def _compiled(
    tasks: Sequence[KernelTask],
    target: Target,
    schedules: ScheduleSource,
    begun: Sequence[KernelWorker] = (),
) -> Iterator[tuple[KernelTask, Compiled]]:
    """Kernels, by the threads of this process and, if there are many, by other processes.

    Large programs come first: nobody waits for one of them at the end.
    """
    tasks = sorted(tasks, key=lambda task: -_extent(task.program))
    points = {task.key: points_from(schedules, task.workload(target)) for task in tasks}
    helped = sum(own is not None for own in points.values())
    with kernel_workers(target, helped, begun) as workers:
        # Beside others, one thread of this process: more would wait for Python's lock.
        own = 1 if workers else os.cpu_count() or 1
        idle: SimpleQueue[KernelWorker | None] = SimpleQueue()
        for maker in (*workers, *[None] * own):
            idle.put(maker)

        def make(task: KernelTask) -> Compiled:
            worker = idle.get()
            try:
                known = points[task.key]
                if worker is not None and known is not None:
                    kernel = worker.compiled(replace(task, points=known))
                    if kernel is not None:
                        return kernel
                return compile_task(task, target, schedules)
            finally:
                idle.put(worker)

        with ThreadPoolExecutor(max_workers=len(workers) + own) as pool:
            futures = {pool.submit(make, task): task for task in tasks}
            try:
                for future in as_completed(futures):
                    yield futures[future], future.result()
            except BaseException:  # nobody waits for the rest any more
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def _extent(program: tir.Func) -> int:
    """Nodes of a program, which the time to compile it goes with."""
    return sum(1 for _ in walk(program.body))
