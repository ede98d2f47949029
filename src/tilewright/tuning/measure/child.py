"""The other end of `process.py`: a process that answers until nobody asks any more.

Importing the compiler takes most of a second, and a candidate may end the process that runs it. So
there are two: the first imports, runs nothing, and has the second, its fork, answer. Should that
one end, the first says how, and forks again when it is told to, which takes milliseconds.

Both end with their parent, however that ends: at the end of their input, by a signal where the
system sends one (Linux), and, in the middle of a candidate that hangs, by an alarm that no code has
to wait for. Interrupts are for the parent. What is printed goes to the log, never into an answer.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
import warnings
from collections.abc import Callable
from typing import IO, Any, Final

from tilewright.tuning.measure.frames import GarbageError, message, received
from tilewright.tuning.measure.limits import set_limits

__all__ = ["Answer", "serve"]

Answer = Callable[[dict[str, Any], bytes], tuple[dict[str, Any], bytes]]

PR_SET_PDEATHSIG: Final = 1
GRACE_S: Final = 5.0
"""How much later than its parent a process loses patience with itself."""
DONE: Final = 86
"""The code with which a process ends that nobody asks any more."""


def serve(answer: Answer) -> None:
    """Answer questions with a function; arguments are the parent and the limit of memory."""
    parent, memory_bytes = int(sys.argv[1]), int(sys.argv[2])
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with(parent)
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    gc.set_threshold(100_000, 50, 100)  # programs are trees: looking for cycles finds few
    gc.freeze()
    warnings.simplefilter("ignore", DeprecationWarning)  # NumPy has idle threads, fit for a fork
    first = os.getpid()
    while True:
        child = os.fork()
        if child == 0:
            _end_with(first)
            set_limits(memory_bytes)
            _answer_all(answer, requests, answers)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code == DONE:
            os._exit(0)
        _say(answers, {"gone": code})
        _await_parent(requests)


def _await_parent(requests: IO[bytes]) -> None:
    """Until the parent knows; a question that its fork did not live to read is dropped."""
    question: dict[str, Any] = {}
    while "again" not in question:
        try:
            found = received(requests)
        except GarbageError:  # the rest of a question that was begun: there is no way on
            found = None
        if found is None:
            os._exit(0)
        question = found[0]


def _answer_all(answer: Answer, requests: IO[bytes], answers: IO[bytes]) -> None:
    """Until there are no questions; it does not return."""
    facts: dict[str, Any] = {"ready": True, "pid": os.getpid()}
    data = b""
    while True:
        _say(answers, facts, data)
        question = received(requests)
        if question is None:
            os._exit(DONE)  # whatever threads still do
        signal.setitimer(signal.ITIMER_REAL, question[0].pop("within_s") + GRACE_S)
        facts, data = answer(*question)
        signal.setitimer(signal.ITIMER_REAL, 0)


def _say(answers: IO[bytes], facts: dict[str, Any], data: bytes = b"") -> None:
    try:
        answers.write(message(facts, data))
        answers.flush()
    except OSError:
        os._exit(DONE)  # nobody listens


def _end_with(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it was gone before it could be told
        os._exit(DONE)
