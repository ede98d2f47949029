"""How many threads a kernel gets, and how many it may have.

By default as many as can really run at once: the least of three numbers: processors that the
process may use (affinity), processor time that its control groups grant it (quota), and physical
cores. Two hardware threads of one core share its vector units, so a second one adds contention and
no arithmetic.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Iterator
from pathlib import Path

from tilewright.abi import MAX_THREADS
from tilewright.errors import Code, UserError
from tilewright.options import num_threads
from tilewright.runtime import _native

__all__ = ["count_workers", "default_threads", "physical_cores", "quota_cpus", "shut_down"]
__all__ += ["most_threads", "require_threads", "tell_usable_cpus", "usable_cpus"]

K004 = Code("K004", "there cannot be {threads} threads")

ROOT = Path("/")
CROWD = 8
"""Threads for each processor that are believed to be meant: tests and servers may want several."""
ALWAYS = 64
"""Threads that any machine may be asked for."""


def default_threads() -> int:
    """The environment's wish (see `options.num_threads`), else what the machine can run at once."""
    wish = num_threads()
    return wish if wish is not None else min(usable_cpus(), physical_cores(), MAX_THREADS)


def most_threads() -> int:
    """Threads that a model may be asked to run on: more can only be a mistake on this machine."""
    return min(MAX_THREADS, max(ALWAYS, CROWD * (os.cpu_count() or 1)))


def require_threads(threads: object, most: int = MAX_THREADS) -> None:
    """Refuse what is no number of threads (K004)."""
    if isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= most:
        known = f", as this machine has {os.cpu_count()} processors" if most < MAX_THREADS else ""
        hint = f"give a number from 1 to {most}{known}, or nothing for the default"
        raise UserError(K004, {"threads": repr(threads)}, hint=hint)


def usable_cpus(root: Path = ROOT) -> int:
    """Processors that this process may keep busy: affinity, limited by the quota rounded up."""
    cpus = len(_affinity())
    quota = quota_cpus(root)
    return cpus if quota is None else max(1, min(cpus, math.ceil(quota)))


@functools.cache
def tell_usable_cpus() -> None:
    """Let waiting threads know when there are more of them than processors; once is enough."""
    _native.set_cpus(usable_cpus())


def physical_cores(root: Path = ROOT, cpus: frozenset[int] | None = None) -> int:
    """Distinct cores among the processors that this process may use; all differ if unknown."""
    cpus = _affinity() if cpus is None else cpus
    return len({_siblings(root, cpu) for cpu in cpus})


def quota_cpus(root: Path = ROOT) -> float | None:
    """Processors' worth of time granted by control groups, version 1 or 2; None if unlimited."""
    quotas = [quota for folder in _cpu_cgroups(root) if (quota := _quota_of(folder)) is not None]
    return min(quotas, default=None)


def count_workers() -> int:
    """Worker threads that exist now; none before the first call on several threads."""
    return _native.count_workers()


def shut_down() -> None:
    """End the worker threads and free their memory; the next call starts them anew."""
    _native.shut_down()


def _affinity() -> frozenset[int]:
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


def _siblings(root: Path, cpu: int) -> str:
    topology = root / f"sys/devices/system/cpu/cpu{cpu}/topology"
    for name in ("core_cpus_list", "thread_siblings_list"):
        text = _read(topology / name)
        if text:
            return text
    return f"cpu {cpu}"


def _cpu_cgroups(root: Path) -> Iterator[Path]:
    """Folders of the control groups that limit this process, from its own up to the mount."""
    paths = dict(_cgroup_paths(_read(root / "proc/self/cgroup")))
    for kind, mount_root, mount_point in _cgroup_mounts(_read(root / "proc/self/mountinfo")):
        if kind not in paths:
            continue
        mount = root / mount_point.lstrip("/")
        path = paths[kind]
        # Within a container the mount shows a subtree: its root is a prefix of the path.
        inside = path.removeprefix(mount_root.rstrip("/")) if path.startswith(mount_root) else ""
        parts = [part for part in inside.split("/") if part and part != ".."]
        for depth in range(len(parts), -1, -1):
            yield mount.joinpath(*parts[:depth])


def _cgroup_paths(text: str) -> Iterator[tuple[str, str]]:
    """Lines `id:controllers:path`; version 2 has no controllers."""
    for line in text.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            yield "cgroup2", path
        elif "cpu" in controllers.split(","):
            yield "cgroup", path


def _cgroup_mounts(text: str) -> Iterator[tuple[str, str, str]]:
    """(file system, root, mount point) of the hierarchies that can limit processor time."""
    for line in text.splitlines():
        front, _, back = line.partition(" - ")
        fields, kinds = front.split(), back.split()
        if len(fields) < 5 or len(kinds) < 3:
            continue
        is_cpu = kinds[0] == "cgroup" and "cpu" in kinds[2].split(",")
        if is_cpu or kinds[0] == "cgroup2":
            yield kinds[0], fields[3], fields[4]


def _quota_of(folder: Path) -> float | None:
    """The limit written in one folder; `max`, -1 or a missing file mean none."""
    quota, _, period = _read(folder / "cpu.max").partition(" ")
    if not quota:
        quota, period = _read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us")
    if not (quota.isdigit() and period.isdigit()) or int(period) == 0:
        return None
    return int(quota) / int(period)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
