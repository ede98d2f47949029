"""Unique kernels are found in the store, or compiled once, several at a time.

LLVM works outside of Python's lock.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tilewright.model.kernel_store import KernelStore
from tilewright.model.kernels import KernelTask, compile_task
from tilewright.pipeline import Compiled
from tilewright.schedule.source import DRAFT, ScheduleSource
from tilewright.target import Target

__all__ = ["compile_tasks"]


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
