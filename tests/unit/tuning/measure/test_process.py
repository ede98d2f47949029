"""Processes that end, hang or answer with nonsense, as the parent sees them."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from tests.expect import raises_code
from tilewright.tuning.measure.frames import message
from tilewright.tuning.measure.limits import Limits
from tilewright.tuning.measure.process import GoneError, Process
from tilewright.tuning.measure.trial import CRASH, MEMORY, TIMEOUT

LIMITS = Limits(start_s=30)
READY = """
text = b'{"ready":true,"pid":%d}' % os.getpid()
sys.stdout.buffer.write(struct.pack("<4sIQ", b"tw-m", len(text), 0) + text)
sys.stdout.flush()
"""


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Start a process that says that it is ready, and then does something."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    started = []

    def start(does: str, ready: str = READY) -> Process:
        code = f"import os, struct, sys, time\n{ready}\n{does}\n"
        (tmp_path / "odd_child.py").write_text(code)
        started.append(Process("odd_child", LIMITS))
        return started[-1]

    yield start
    for process in started:
        process.close()


ENDS = {
    "os._exit(3)": (CRASH, "ended with code 3"),
    "os.kill(os.getpid(), 4)": (CRASH, "illegal instruction (SIGILL)"),
    "os.kill(os.getpid(), 11)": (CRASH, "SIGSEGV"),
    "os.kill(os.getpid(), 9)": (MEMORY, "memory runs out"),
    "os.kill(os.getpid(), 14)": (TIMEOUT, "SIGALRM"),
    "raise MemoryError('far too much')": (MEMORY, "far too much"),
    "print('LLVM ERROR: out of memory', file=sys.stderr, flush=True); os.abort()": (
        MEMORY,
        "out of memory",
    ),
    "raise RuntimeError('a reason')": (CRASH, "a reason"),
    "sys.stdout.buffer.write(b'x' * 99); sys.stdout.flush(); time.sleep(60)": (CRASH, "no answer"),
    f"sys.stdout.buffer.write({message({})!r}[:9]); sys.stdout.flush(); os._exit(0)": (
        CRASH,
        "code 0",
    ),
    "time.sleep(60)": (TIMEOUT, "no answer for 0.2 s"),
}


@pytest.mark.parametrize("does", ENDS)
def test_an_end_is_told_as_what_it_was(start, does):
    process = start(f"sys.stdin.buffer.read(16)\n{does}")
    within_s = 0.2 if does == "time.sleep(60)" else 30
    with pytest.raises(GoneError) as gone:
        process.ask({"do": "something"}, within_s=within_s)
    status, words = ENDS[does]
    assert gone.value.status == status, gone.value.detail
    assert words in gone.value.detail
    assert not process.is_running


def test_lengths_are_not_believed(start):
    huge = "b'tw-m' + b'\\xff' * 12"
    process = start(f"sys.stdout.buffer.write({huge}); sys.stdout.flush(); time.sleep(60)")
    with pytest.raises(GoneError, match="no answer"):
        process.ask({}, within_s=30)


def test_a_process_that_does_not_read_cannot_stop_its_parent(start):
    process = start("time.sleep(60)")
    with pytest.raises(GoneError, match=r"no answer for 0\.2 s"):
        process.ask({}, bytes(10_000_000), within_s=0.2)


FAMILY = """
child = os.fork()
if child == 0:
    time.sleep(60)
text = b'{"pid":%09d}' % child
sys.stdout.buffer.write(struct.pack("<4sIQ", b"tw-m", len(text), 0) + text)
sys.stdout.flush()
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_children_of_a_process_end_with_it(start):
    process = start(FAMILY.replace("%09d", "1%08d"))
    answer, _ = process.ask({}, within_s=30)
    child = answer["pid"] - 100_000_000
    assert _state(child) not in ("", "Z")
    process.close()
    deadline = time.monotonic() + 30
    while _state(child) not in ("", "Z") and time.monotonic() < deadline:
        time.sleep(0.01)
    assert _state(child) in ("", "Z")


def _state(pid: int) -> str:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[0]


def test_a_process_that_ends_before_it_is_ready_is_an_error(start):
    with raises_code("U030", text="no such thing"):
        start("", ready="raise ImportError('no such thing')")


def test_closing_twice_is_harmless(start):
    process = start("time.sleep(60)")
    process.close()
    process.close()
    assert not process.is_running
