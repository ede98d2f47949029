"""What a process that builds or measures may take, and how its end is told.

Limits of memory are set by the process itself, once it has imported what it needs: they count from
what it holds by then. Limits of time are kept by whoever waits for it; should that one be gone, an
alarm of its own ends a process that never comes back (`child.py`).
"""

from __future__ import annotations

import os
import resource
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tilewright.tuning.measure.trial import CRASH, MEMORY, TIMEOUT

__all__ = ["Limits", "ending", "set_limits", "silence"]

THREAD_BYTES: Final = 16 << 20
"""Stack and heap that a thread may hold; not what a candidate asks for."""
THREAD_ADDRESSES: Final = 160 << 20
"""The same in addresses: heaps of threads reserve far more than they use."""

_SIGNALS: Final = {
    signal.SIGSEGV: "an access to memory that is not there (SIGSEGV)",
    signal.SIGBUS: "an access to memory that is not there (SIGBUS)",
    signal.SIGILL: "illegal instruction (SIGILL)",
    signal.SIGFPE: "a division that cannot be done (SIGFPE)",
    signal.SIGABRT: "it gave up (SIGABRT)",
}
_SHORT_OF_MEMORY: Final = ("out of memory", "bad_alloc", "MemoryError", "allocate memory")


@dataclass(frozen=True)
class Limits:
    """Seconds for a build, for a trial, and for the reference of a job; bytes beyond the start.

    `start_s` is how long a process may take until it answers at all.
    """

    build_s: float = 30.0
    run_s: float = 10.0
    setup_s: float = 60.0
    start_s: float = 120.0
    memory_bytes: int = 4 << 30


def set_limits(memory_bytes: int) -> None:
    """Limit this process to so many bytes beyond those that it has; no core files."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    held = _held_bytes()
    if held is None:
        return
    threads = os.cpu_count() or 1
    addresses, data = held
    _limit(resource.RLIMIT_AS, addresses + memory_bytes + threads * THREAD_ADDRESSES)
    _limit(resource.RLIMIT_DATA, data + memory_bytes + threads * THREAD_BYTES)


def _limit(kind: int, size_bytes: int) -> None:
    _, most = resource.getrlimit(kind)
    least = size_bytes if most == resource.RLIM_INFINITY else min(size_bytes, most)
    resource.setrlimit(kind, (least, most))


def _held_bytes() -> tuple[int, int] | None:
    """Addresses and writable memory of this process; None where the system does not tell."""
    try:
        numbers = Path("/proc/self/statm").read_text(encoding="ascii").split()
    except OSError:
        return None
    page = os.sysconf("SC_PAGE_SIZE")
    return int(numbers[0]) * page, int(numbers[5]) * page


def ending(code: int, last_words: str) -> tuple[str, str]:
    """What the end of a process means for the trial that it was about: status and detail."""
    said = f"; its last words: {last_words}" if last_words else ""
    if any(words in last_words for words in _SHORT_OF_MEMORY):
        return MEMORY, f"there was not enough memory{said}"
    if code >= 0:
        return CRASH, f"the process ended with code {code}{said}"
    number = signal.Signals(-code)
    if number == signal.SIGKILL:  # nobody else sends it, and we know of our own
        return MEMORY, "killed by the system (SIGKILL), which does so when memory runs out"
    if number == signal.SIGALRM:
        return TIMEOUT, "its own alarm ended it (SIGALRM)"
    return CRASH, _SIGNALS.get(number, f"ended by {number.name}") + said


def silence(seconds: float) -> tuple[str, str]:
    """The same for a process that did not answer in time, and was ended for it."""
    return TIMEOUT, f"no answer for {seconds:g} s"
