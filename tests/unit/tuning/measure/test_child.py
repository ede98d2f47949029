"""The process that answers is a fork: it is limited, and soon replaced."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading

import pytest

from tilewright.tuning.measure.limits import Limits
from tilewright.tuning.measure.process import GoneError, Process
from tilewright.tuning.measure.trial import CRASH, MEMORY, TIMEOUT

CODE = """
import os, resource, sys, time
from tilewright.tuning.measure.child import serve

def answer(question, data):
    found = {}
    exec(question["run"], globals(), found)
    return {"found": found.get("found")}, data[::-1]

serve(answer)
"""


@pytest.fixture(scope="module")
def process(tmp_path_factory):
    folder = tmp_path_factory.mktemp("children")
    (folder / "obedient_child.py").write_text(CODE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder))
        made = Process("obedient_child", Limits(memory_bytes=300 << 20))
    yield made
    made.close()


def run(process, code, data=b"", within_s=60):
    return process.ask({"run": code}, data, within_s)


def test_questions_and_bytes_are_answered(process):
    data = bytes(range(256)) * 4000
    answer, back = run(process, "found = 1 + 1", data)
    assert answer == {"found": 2}
    assert back == data[::-1]


def test_what_is_printed_is_no_answer(process):
    answer, _ = run(process, "print('x' * 100, flush=True); os.write(1, b'y'); found = 3")
    assert answer == {"found": 3}


ENDS = {
    "os.kill(os.getpid(), 4)": (CRASH, "illegal instruction (SIGILL)"),
    "os._exit(0)": (CRASH, "code 0"),
    "while True: pass": (TIMEOUT, "no answer for 0.3 s"),
    "raise ValueError('a reason')": (CRASH, "a reason"),
    "found = bytearray(2 << 30)": (MEMORY, "MemoryError"),
}


@pytest.mark.parametrize("code", ENDS)
def test_who_ends_is_replaced(process, code):
    first, _ = run(process, "found = os.getpid()")
    assert not process.is_fresh
    with pytest.raises(GoneError) as gone:
        run(process, code, within_s=0.3 if code.startswith("while") else 60)
    status, words = ENDS[code]
    assert gone.value.status == status, gone.value.detail
    assert words in gone.value.detail
    assert process.is_running
    assert process.is_fresh
    second, _ = run(process, "found = os.getpid()")
    assert second != first


def test_last_words_are_those_of_the_last_question(process):
    run(process, "sys.stderr.write('MemoryError, long ago'); sys.stderr.flush()")
    with pytest.raises(GoneError) as gone:
        run(process, "os._exit(3)")
    assert gone.value.status == CRASH


def test_the_next_one_can_be_asked_for(process):
    first, _ = run(process, "found = os.getpid()")
    process.renew()
    assert process.is_fresh
    assert run(process, "found = os.getpid()")[0] != first


def test_one_that_ended_between_questions_is_nobodys_fault(process):
    first, _ = run(process, "found = os.getpid()")
    os.kill(first["found"], signal.SIGKILL)
    select.select([process._from], [], [], 60)
    assert process.is_running
    assert process.is_fresh
    assert run(process, "found = os.getpid()")[0] != first


def test_a_question_that_nobody_read_is_not_answered_later(process):
    """It ends while the question is on its way: the next answer is that of the next question."""
    first, _ = run(process, "found = os.getpid()")
    os.kill(first["found"], signal.SIGSTOP)
    sent = threading.Timer(0.2, os.kill, (first["found"], signal.SIGKILL))
    sent.start()
    with pytest.raises(GoneError, match="SIGKILL"):
        run(process, "found = 'late'")
    sent.join()
    assert run(process, "found = 'in time'")[0] == {"found": "in time"}


def test_no_core_files_are_written(process):
    answer, _ = run(process, "found = resource.getrlimit(resource.RLIMIT_CORE)[0]")
    assert answer == {"found": 0}


@pytest.mark.skipif(sys.platform != "linux", reason="limits count from /proc")
def test_memory_counts_from_the_start(process):
    code = "found = resource.getrlimit(resource.RLIMIT_DATA)[0]"
    answer, _ = run(process, code)
    assert 300 << 20 < answer["found"] < 1 << 40


def test_an_alarm_ends_who_hangs_without_a_parent(process):
    answer, _ = run(process, "import signal\nfound = signal.getitimer(signal.ITIMER_REAL)[0]")
    assert 60 < answer["found"] <= 65


def test_interrupts_are_for_the_parent(process):
    first, _ = run(process, "found = os.getpid()")
    os.kill(first["found"], signal.SIGINT)
    os.kill(process._process.pid, signal.SIGINT)
    assert run(process, "found = os.getpid()")[0] == first
