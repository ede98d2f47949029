"""The other end of `process.py`: a process that answers until nobody asks any more.

It ends with its parent, however that ends: at the end of its input, by a signal where the system
sends one (Linux), and, in the middle of a candidate that hangs, by an alarm that no code has to
wait for. Interrupts are for the parent. What is printed goes to the log, never into an answer.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, Final

from tilewright.tuning.measure.frames import message, received
from tilewright.tuning.measure.limits import set_limits

__all__ = ["Answer", "serve"]

Answer = Callable[[dict[str, Any], bytes], tuple[dict[str, Any], bytes]]

PR_SET_PDEATHSIG: Final = 1
GRACE_S: Final = 5.0
"""How much later than its parent a process loses patience with itself."""


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
    set_limits(memory_bytes)
    facts: dict[str, Any] = {"ready": True}
    data = b""
    while True:
        answers.write(message(facts, data))
        answers.flush()
        question = received(requests)
        if question is None:
            os._exit(0)  # whatever threads still do
        signal.setitimer(signal.ITIMER_REAL, question[0].pop("within_s") + GRACE_S)
        facts, data = answer(*question)
        signal.setitimer(signal.ITIMER_REAL, 0)


def _end_with(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it was gone before it could be told
        os._exit(0)
