"""The parent's end of an engine's process: requests and answers as lines of JSON over two pipes.

The process is stopped (SIGSTOP) except while a request is under way: no spinning thread pool of one
engine can spoil the turn of another.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import IO, Any, Final, Self

__all__ = ["EngineGoneError", "EngineProcess"]

LOAD_SECONDS: Final = 600.0
TURN_SECONDS: Final = 120.0


class EngineGoneError(Exception):
    """An engine's process ended or did not answer in time."""


class EngineProcess:
    """One engine, which is stopped except while it answers."""

    def __init__(
        self, name: str, threads: int, environment: Mapping[str, str] | None = None
    ) -> None:
        """`environment` stands in for the variables of this process."""
        self.name = name
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (closed in `close`)
        request_read, request_write = os.pipe()
        answer_read, answer_write = os.pipe()
        command = [sys.executable, "-m", "tilewright.contest.worker", name, str(threads)]
        self._process = subprocess.Popen(
            [*command, str(request_read), str(answer_write)],
            pass_fds=(request_read, answer_write),
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            env=environment,
        )
        os.close(request_read)
        os.close(answer_write)
        self._requests = os.fdopen(request_write, "w", buffering=1)
        self._answers = os.fdopen(answer_read)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def load(self, model: str, inputs: str, names: list[str]) -> dict[str, Any]:
        """Open a model; the answer has `problem` if the engine cannot."""
        return self._ask("load", LOAD_SECONDS, model=model, inputs=inputs, names=names)

    def turn(self, seconds: float) -> list[float]:
        """Seconds of each call."""
        samples: list[float] = self._ask("turn", TURN_SECONDS, seconds=seconds)["samples"]
        return samples

    def save(self, path: str) -> None:
        """Results of a run into a file."""
        self._ask("save", TURN_SECONDS, path=path)

    def close(self) -> None:
        """End the process, which has nothing to save."""
        self._process.kill()
        self._process.wait()
        for stream in (self._requests, self._answers, self._log):
            with contextlib.suppress(OSError):  # what was still in a buffer is of no interest
                stream.close()

    def _ask(self, do: str, timeout: float, **details: Any) -> dict[str, Any]:
        try:
            os.kill(self._process.pid, signal.SIGCONT)
            self._requests.write(json.dumps({"do": do, **details}) + "\n")
        except OSError as problem:
            raise EngineGoneError(self._last_words()) from problem
        ready, _, _ = select.select([self._answers], [], [], timeout)
        if not ready:
            raise EngineGoneError(f"no answer in {timeout:.0f} s")
        line = self._answers.readline()
        if not line:
            raise EngineGoneError(self._last_words())
        if self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGSTOP)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _last_words(self) -> str:
        code = self._process.wait(timeout=10)
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return f"ended with {how}; {lines[-1] if lines else 'no message'}"
