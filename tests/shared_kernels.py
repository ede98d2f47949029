"""Kernels that tests of one process share: equal ones are compiled once, as within one model.

Small models of operators are full of the same copies, sums and casts. A kernel is found by what the
cache of kernels finds it by; a test that changes how recipes or LLVM work must not share.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock

import pytest

from tilewright.model import compile_kernels
from tilewright.model.kernels import KernelTask, compile_task
from tilewright.pipeline import Compiled
from tilewright.schedule.source import DRAFT, ScheduleSource
from tilewright.target import Target

__all__ = ["shared_kernels"]

_KEPT: dict[tuple[str, str, str, str], Compiled] = {}
_LOCK = Lock()


def _find_or_compile(
    task: KernelTask, target: Target, schedules: ScheduleSource = DRAFT
) -> Compiled:
    key = task.key, target.fingerprint, target.llvm_features, schedules.digest
    with _LOCK:
        kernel = _KEPT.get(key)
    if kernel is None:
        kernel = compile_task(task, target, schedules)
        with _LOCK:
            _KEPT[key] = kernel
    return kernel


def shared_kernels() -> Iterator[None]:
    """Tests in between share their kernels with all others that do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compile_kernels, "compile_task", _find_or_compile)
        yield
