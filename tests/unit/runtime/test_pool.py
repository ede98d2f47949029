"""Default thread counts on made-up machines, and the life of worker threads in real processes."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tilewright.runtime import _native, pool


class Machine:
    """A file tree that looks like /proc and /sys."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def cgroups(self, membership: str, *mounts: str) -> None:
        self.write("proc/self/cgroup", membership)
        self.write("proc/self/mountinfo", "\n".join(mounts))


V2 = "30 23 0:26 {root} /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate"
V1 = "33 30 0:30 {root} /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct"
V1_OTHER = "34 30 0:31 / /sys/fs/cgroup/memory rw shared:10 - cgroup cgroup rw,memory"


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_no_control_groups_mean_no_quota(machine):
    assert pool.quota_cpus(machine.root) is None


@pytest.mark.parametrize(("text", "quota"), [("150000 100000", 1.5), ("max 100000", None)])
def test_quota_of_version_2(machine, text, quota):
    machine.cgroups("0::/app\n", V2.format(root="/"))
    machine.write("sys/fs/cgroup/app/cpu.max", f"{text}\n")
    assert pool.quota_cpus(machine.root) == quota


def test_strictest_ancestor_decides(machine):
    machine.cgroups("0::/a/b/c\n", V2.format(root="/"))
    machine.write("sys/fs/cgroup/a/cpu.max", "200000 100000")
    machine.write("sys/fs/cgroup/a/b/cpu.max", "max 100000")
    machine.write("sys/fs/cgroup/a/b/c/cpu.max", "300000 100000")
    assert pool.quota_cpus(machine.root) == 2


@pytest.mark.parametrize("path", ["/docker/1234", "/"])
def test_container_sees_its_group_at_the_mount(machine, path):
    machine.cgroups(f"0::{path}\n", V2.format(root=path))
    machine.write("sys/fs/cgroup/cpu.max", "50000 100000")
    assert pool.quota_cpus(machine.root) == 0.5


def test_group_outside_of_the_mount_uses_the_mount(machine):
    machine.cgroups("0::/../other\n", V2.format(root="/docker/1234"))
    machine.write("sys/fs/cgroup/cpu.max", "400000 100000")
    assert pool.quota_cpus(machine.root) == 4


@pytest.mark.parametrize(("text", "quota"), [("250000", 2.5), ("-1", None), ("rubbish", None)])
def test_quota_of_version_1(machine, text, quota):
    membership = "4:memory:/app\n3:cpu,cpuacct:/app\n"
    machine.cgroups(membership, V1_OTHER, V1.format(root="/"))
    machine.write("sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_quota_us", text)
    machine.write("sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_period_us", "100000\n")
    assert pool.quota_cpus(machine.root) == quota


def test_both_versions_at_once(machine):
    membership = "3:cpu,cpuacct:/app\n0::/app\n"
    machine.cgroups(membership, V1.format(root="/"), V2.format(root="/").replace("30 23", "39 23"))
    machine.write("sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_quota_us", "300000")
    machine.write("sys/fs/cgroup/cpu,cpuacct/app/cpu.cfs_period_us", "100000")
    assert pool.quota_cpus(machine.root) == 3


def test_broken_files_are_ignored(machine):
    machine.cgroups("nonsense\n\n0::/\n", "short line", V2.format(root="/"))
    machine.write("sys/fs/cgroup/cpu.max", "100000 0")
    assert pool.quota_cpus(machine.root) is None


def test_usable_cpus_round_the_quota_up(machine, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    machine.cgroups("0::/\n", V2.format(root="/"))
    for quota, usable in [("1", 1), ("150000", 2), ("300000", 3), ("9900000", 8), ("max", 8)]:
        machine.write("sys/fs/cgroup/cpu.max", f"{quota} 100000")
        assert pool.usable_cpus(machine.root) == usable


@pytest.mark.parametrize("name", ["core_cpus_list", "thread_siblings_list"])
def test_hardware_threads_of_a_core_count_once(machine, name):
    for cpu in range(8):
        siblings = f"{cpu % 4},{cpu % 4 + 4}\n"
        machine.write(f"sys/devices/system/cpu/cpu{cpu}/topology/{name}", siblings)
    assert pool.physical_cores(machine.root, frozenset(range(8))) == 4
    assert pool.physical_cores(machine.root, frozenset({1, 5})) == 1
    assert pool.physical_cores(machine.root, frozenset({1, 2})) == 2


def test_unknown_topology_counts_every_processor(machine):
    assert pool.physical_cores(machine.root, frozenset(range(3))) == 3


def test_environment_overrides_the_machine(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("TILEWRIGHT_NUM_THREADS", raising=False)
    assert pool.default_threads() == 3
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", "5")
    assert pool.default_threads() == 5


def test_default_is_at_least_one_and_at_most_the_affinity(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("TILEWRIGHT_NUM_THREADS", raising=False)
    assert 1 <= pool.default_threads() <= len(os.sched_getaffinity(0))


PREAMBLE = '''
import ctypes, os, sys, threading, time
import numpy as np
from tilewright.dtypes import i64
from tilewright.runtime import Kernel, ParamSpec, count_workers, shut_down

library = ctypes.CDLL(sys.argv[1])
address = ctypes.cast(library.iota, ctypes.c_void_p).value
kernel = Kernel(address, (ParamSpec("x", i64, ("N",), True),), ("N",), 3)

def call():
    x = np.full(50, -1)
    kernel(x)
    assert (x == np.arange(50)).all()

def count_threads():
    return len(os.listdir("/proc/self/task"))

def ends_with(threads):
    """A thread that was joined stays in the list for another moment."""
    end = time.monotonic() + 20
    while count_threads() != threads and time.monotonic() < end:
        time.sleep(0.001)
    return count_threads() == threads
'''


def run_program(library, program: str) -> None:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    result = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c",
         PREAMBLE + textwrap.dedent(program), library._name],
        capture_output=True, text=True, check=False, timeout=60, env=environment,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stderr == ""


def test_workers_start_at_the_first_call_and_end_on_demand(library):
    program = """
        assert count_workers() == 0 and count_threads() == 1
        call()
        assert count_workers() == 2 and count_threads() == 3
        shut_down()
        assert count_workers() == 0 and ends_with(1)
        call()
        assert count_workers() == 2
    """
    run_program(library, program)


def test_forked_children_have_their_own_workers(library):
    program = """
        call()
        for _ in range(5):
            child = os.fork()
            if child == 0:
                good = count_workers() == 0
                call()
                os._exit(0 if good and count_workers() == 2 else 1)
            assert os.waitpid(child, 0)[1] == 0
            call()
    """
    run_program(library, program)


def test_process_ends_while_daemon_threads_call(library):
    program = """
        def call_forever():
            while True:
                call()

        for _ in range(2):
            threading.Thread(target=call_forever, daemon=True).start()
        time.sleep(0.1)
    """
    run_program(library, program)


def test_usable_processors_reach_the_waiting_threads():
    before = _native.get_cpus()
    try:
        _native.set_cpus(7)
        assert _native.get_cpus() == 7
        _native.set_cpus(0)
        assert _native.get_cpus() == len(os.sched_getaffinity(0))
    finally:
        _native.set_cpus(before)
