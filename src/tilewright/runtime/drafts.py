"""Files of a cache that are not entries yet, in a folder that is open; and locks.

A file that is being written has a lock file which its writer holds: the system frees the lock of a
dead writer, however it died, and `sweep` removes what it left.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import time
from collections.abc import Iterator
from typing import Final

__all__ = ["SKEW_S", "lock_within", "remove", "sweep", "unfinished"]

_UNFINISHED: Final = re.compile(r"\..*\.(?:tmp|lock)")
_PATIENCE_S: Final = 3600.0
"""Where files cannot be locked, a file that is being written for longer has lost its writer."""
SKEW_S: Final = 60.0
"""Files from later than this in the future tell nothing about when they were written."""


@contextlib.contextmanager
def unfinished(at: int, key: str) -> Iterator[str]:
    """A name for a file that is not an entry yet, under a lock; nothing of it is left behind."""
    token = f"{key}.{secrets.token_hex(8)}"
    lock, draft = f".{token}.lock", f".{token}.tmp"
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC
    descriptor = os.open(lock, flags, 0o600, dir_fd=at)
    try:
        with contextlib.suppress(OSError):  # where files cannot be locked, their age counts
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield draft
    finally:
        remove(at, draft)
        remove(at, lock)
        os.close(descriptor)


def sweep(at: int) -> None:
    """Remove unfinished files whose writers are dead."""
    names = [name for name in os.listdir(at) if _UNFINISHED.fullmatch(name)]
    locks = [name for name in names if name.endswith(".lock")]
    alive = []
    for lock in locks:
        token = lock.removeprefix(".").removesuffix(".lock")
        if not _is_abandoned(at, lock):
            alive.append(token)
            continue
        for name in names:
            if token in name and name != lock:
                remove(at, name)
        remove(at, lock)  # last: what is left of a writer stays known
    drafts = [name for name in names if name.endswith(".tmp")]
    for name in drafts:
        if not any(token in name for token in alive) and _age_s(at, name) > _PATIENCE_S:
            remove(at, name)


def lock_within(descriptor: int, patience_s: float) -> None:
    """Take a lock, or do without it when that takes too long."""
    end = time.monotonic() + patience_s
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end:
                return None
        time.sleep(0.01)


def remove(at: int, name: str) -> bool:
    """Remove a file; whether it was there, and could be."""
    try:
        os.unlink(name, dir_fd=at)
    except OSError:
        return False
    return True


def _is_abandoned(at: int, lock: str) -> bool:
    """Whether the writer that made a lock file is dead."""
    try:
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(lock, flags, dir_fd=at)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return _age_s(at, lock) > _PATIENCE_S
    else:
        # A writer makes its lock file and then locks it: it gets a moment for that.
        return _age_s(at, lock) > 1.0
    finally:
        os.close(descriptor)


def _age_s(at: int, name: str) -> float:
    """Seconds since a file was changed; a file from the future has no age worth waiting for."""
    try:
        age = time.time() - os.stat(name, dir_fd=at, follow_symlinks=False).st_mtime
    except OSError:
        return 0.0
    return age if age > -SKEW_S else _PATIENCE_S + 1.0
