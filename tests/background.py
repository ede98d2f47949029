"""Work that a compilation leaves to the background."""

from __future__ import annotations

import threading

from tilewright.model.compiler import WRITER


def wait_for_writers() -> None:
    """Wait until the compile cache has everything that was compiled so far."""
    for thread in threading.enumerate():
        if thread.name == WRITER:
            thread.join(timeout=60)
            assert not thread.is_alive(), "the cache is still being written"
