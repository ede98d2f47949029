"""Fewer processors than the machine has: a quota of processor time, or some processors only.

Containers have a quota, `taskset` and schedulers of clusters give processors. A process is put into
its confinement before it starts, so that whatever counts processors meets it.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.process import ROOT

__all__ = ["CONFINEMENTS", "Confinement", "NotPossible", "run_confined"]

PERIOD_US: Final = 100_000
ONE: Final = Path("/sys/fs/cgroup/cpu")
"""Where version 1 of control groups has processor time; version 2 has one folder for all."""
TWO: Final = ONE.parent


class NotPossible(Exception):  # noqa: N818  (no error: not every machine lets its users do this)
    """This machine cannot confine a process in that way, or does not let us."""


@dataclass(frozen=True)
class Confinement:
    """Processors' worth of time in each period, and the processors that may be used."""

    name: str
    quota: float | None = None
    processors: frozenset[int] | None = None


CONFINEMENTS: Final = (
    Confinement("free"),
    Confinement("half a processor's time", quota=0.5),
    Confinement("one processor", processors=frozenset({min(os.sched_getaffinity(0))})),
)


def run_confined(
    how: Confinement, command: Sequence[str], timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; `NotPossible` if it cannot be confined."""
    with _group(how.quota) as group:

        def enter() -> None:
            if how.processors is not None:
                os.sched_setaffinity(0, how.processors)
            if group is not None:
                (group / "cgroup.procs").write_text(f"{os.getpid()}\n", encoding="ascii")

        return subprocess.run(
            command,
            preexec_fn=enter,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )


@contextlib.contextmanager
def _group(quota: float | None) -> Iterator[Path | None]:
    """A control group with a quota, gone when it is not needed any more."""
    if quota is None:
        yield None
        return
    first = (ONE / "cpu.cfs_quota_us").exists()
    group = (ONE if first else TWO) / f"tilewright-{uuid.uuid4().hex[:8]}"
    try:
        group.mkdir()
    except OSError as problem:
        raise NotPossible(f"control groups: {problem.strerror}") from None
    try:
        try:
            limit = int(quota * PERIOD_US)
            if first:
                (group / "cpu.cfs_period_us").write_text(f"{PERIOD_US}\n", encoding="ascii")
                (group / "cpu.cfs_quota_us").write_text(f"{limit}\n", encoding="ascii")
            else:
                (group / "cpu.max").write_text(f"{limit} {PERIOD_US}\n", encoding="ascii")
        except OSError as problem:
            raise NotPossible(f"control groups: {problem.strerror}") from None
        yield group
    finally:
        with contextlib.suppress(OSError):  # something of the command is still there
            group.rmdir()
