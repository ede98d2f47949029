"""The profile of a session: all its runs in one file, which viewers of Chrome traces open."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

from tilewright.runtime.profile import Profile

__all__ = ["TraceFile"]


class TraceFile:
    """Events in memory until `write`; `prefix` is how the name of the file begins."""

    def __init__(self, prefix: str, start_ns: int) -> None:
        self.prefix, self.start_ns = prefix, start_ns
        self._events: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        self._note("session_initialization", "Session", start_ns, time.perf_counter_ns())

    def add(self, profile: Profile, begin_ns: int, end_ns: int) -> None:
        """A run that lasted from `begin_ns` to `end_ns` on the clock `time.perf_counter_ns`."""
        with self._lock:
            self._note("model_run", "Session", begin_ns, end_ns)
            offset_us = (begin_ns - self.start_ns) / 1000
            for event in profile.chrome_events():
                event["ts"] += offset_us
                self._events.append({**event, "cat": "Node", "tid": _thread()})

    def write(self) -> str:
        """Write the file; its name."""
        stamp = time.strftime("%Y-%m-%d_%H-%M-%S")
        path = Path(f"{self.prefix}_{stamp}_{os.getpid()}.json")
        with self._lock:
            path.write_text(json.dumps(self._events, indent=0), encoding="utf-8")
        return str(path)

    def _note(self, name: str, kind: str, begin_ns: int, end_ns: int) -> None:
        self._events.append(
            {
                "name": name,
                "cat": kind,
                "ph": "X",
                "ts": (begin_ns - self.start_ns) / 1000,
                "dur": (end_ns - begin_ns) / 1000,
                "pid": 0,
                "tid": _thread(),
                "args": {},
            }
        )


def _thread() -> int:
    return threading.get_native_id()
