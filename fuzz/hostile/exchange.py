"""A file that is exchanged between a check and the use of what was checked."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

__all__ = ["exchanging"]


@contextlib.contextmanager
def exchanging(file: Path, outside: Path) -> Iterator[None]:
    """Meanwhile `file` becomes a link to `outside`, a pipe, a folder, a short file, and itself."""
    content, stop = file.read_bytes(), threading.Event()
    draft = file.with_name("draft")
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

    def exchange() -> None:
        for form in cycle(forms):
            if stop.is_set():
                return
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)
                form()
                draft.replace(file)

    thread = threading.Thread(target=exchange, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        shutil.rmtree(draft, ignore_errors=True)
        draft.unlink(missing_ok=True)
        draft.write_bytes(content)
        draft.replace(file)
