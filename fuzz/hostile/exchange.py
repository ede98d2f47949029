"""A file that is exchanged between a check and the use of what was checked."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

__all__ = ["exchanging"]


@contextlib.contextmanager
def exchanging(file: Path, outside: Path) -> Iterator[None]:
    """Meanwhile another process makes of `file` a link to `outside`, a pipe, a short file, …"""
    content, draft = file.read_bytes(), file.with_name("draft")
    attacker = os.fork()
    if not attacker:
        _exchange(file, outside, content, draft)
    try:
        yield
    finally:
        os.kill(attacker, signal.SIGKILL)
        os.waitpid(attacker, 0)
        draft.unlink(missing_ok=True)
        draft.write_bytes(content)
        draft.replace(file)


def _exchange(file: Path, outside: Path, content: bytes, draft: Path) -> None:
    forms: list[Callable[[], object]] = [
        lambda: draft.write_bytes(content),
        lambda: draft.symlink_to(outside),
        lambda: draft.write_bytes(content),
        lambda: draft.write_bytes(content[:7]),
        lambda: draft.write_bytes(content),
        lambda: os.mkfifo(draft),
        lambda: draft.symlink_to(f"../{outside.name}"),
        lambda: draft.symlink_to("/dev/zero"),
    ]
    for form in cycle(forms):
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
            form()
            draft.replace(file)
