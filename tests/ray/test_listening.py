"""Nothing of a cluster that is started here can be reached from another machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
"""127.0.0.1, the same written as an address of IPv6, and ::1, as the kernel prints them."""

# Ray is used in one cluster of a process, and the other tests have theirs.
ALONE = """
from tests.ray.test_listening import listeners
from tests.unit.tuning.measure.clusters import FakeRunner, trials
from tilewright.tuning.measure.ray_runner import RayRunner

runner = RayRunner(make_runner=FakeRunner)
assert len(list(runner.run(trials(5)))) == 5
print(*sorted({address for _, address in listeners()}))
runner.close()
"""


def listeners() -> list[tuple[int, str]]:
    """Processes below this one, itself included, with addresses on which they listen."""
    rows = [row for name in ("tcp", "tcp6") for row in _rows(Path("/proc/net") / name)]
    at = {row[9]: row[1].split(":")[0] for row in rows if row[3] == "0A"}
    return [(pid, at[inode]) for pid in _family(os.getpid()) for inode in _sockets(pid) & at.keys()]


def _rows(path: Path) -> list[list[str]]:
    return [line.split() for line in path.read_text(encoding="ascii").splitlines()[1:]]


def _family(pid: int) -> Iterator[int]:
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text(encoding="ascii").split():
            yield from _family(int(child))


def _sockets(pid: int) -> set[str]:
    try:
        links = [str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:  # it has ended meanwhile
        return set()
    return {link[8:-1] for link in links if link.startswith("socket:[")}


def test_the_cluster_of_these_tests_keeps_to_this_machine(add_node):
    add_node()
    found = listeners()
    assert len({pid for pid, _ in found}) >= 3  # this process, a head and a node, at least
    assert {address for _, address in found} <= LOOPBACK


@pytest.mark.usefixtures("ray")
def test_a_cluster_that_a_runner_starts_keeps_to_this_machine():
    command: list[Any] = [sys.executable, "-c", ALONE]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert found.stdout.split()
    assert set(found.stdout.split()) <= LOOPBACK
