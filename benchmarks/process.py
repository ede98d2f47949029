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
from pathlib import Path
from typing import IO, Any, Final

__all__ = ["EngineGoneError", "EngineProcess", "LOAD_SECONDS"]

THREAD_VARIABLES: Final = (
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TILEWRIGHT_NUM_THREADS",
)  # fmt: skip
LOAD_SECONDS: Final = 300.0
TURN_SECONDS: Final = 60.0
ROOT: Final = Path(__file__).parents[1]


class EngineGoneError(Exception):
    """An engine's process ended or did not answer in time."""


class EngineProcess:
    """The parent's end of one engine. Stopped except while a request is under way.

    `called` is its name among others, where one engine takes part several times.
    """

    def __init__(
        self,
        name: str,
        threads: int,
        environment: Mapping[str, str] | None = None,
        called: str = "",
    ) -> None:
        self.name = called or name
        self.log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed in `close`)
        request_read, request_write = os.pipe()
        answer_read, answer_write = os.pipe()
        command = [sys.executable, "-m", "benchmarks.worker", name, str(threads)]
        variables = {**dict.fromkeys(THREAD_VARIABLES, str(threads)), **(environment or {})}
        self._process = subprocess.Popen(
            [*command, str(request_read), str(answer_write)],
            cwd=ROOT,
            env={**os.environ, **variables},
            pass_fds=(request_read, answer_write),
            stdout=self.log,
            stderr=self.log,
        )
        os.close(request_read)
        os.close(answer_write)
        self._requests = os.fdopen(request_write, "w", buffering=1)
        self._answers = os.fdopen(answer_read)
        self.hello = self._answer(LOAD_SECONDS)
        self._pause()

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, do: str, *, timeout: float = TURN_SECONDS, **details: Any) -> dict[str, Any]:
        """Let the engine run until it has answered."""
        try:
            os.kill(self._process.pid, signal.SIGCONT)
            self._requests.write(json.dumps({"do": do, **details}) + "\n")
        except OSError as problem:
            raise EngineGoneError(self._last_words()) from problem
        answer = self._answer(timeout)
        self._pause()
        return answer

    def _answer(self, timeout: float) -> dict[str, Any]:
        ready, _, _ = select.select([self._answers], [], [], timeout)
        if not ready:
            raise EngineGoneError(f"no answer in {timeout:.0f} s")
        line = self._answers.readline()
        if not line:
            raise EngineGoneError(self._last_words())
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _pause(self) -> None:
        if self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGSTOP)

    def _last_words(self) -> str:
        code = self._process.wait(timeout=10)
        self.log.seek(0)
        lines = self.log.read().decode(errors="replace").strip().splitlines()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return f"ended with {how}; {lines[-1] if lines else 'no message'}"

    def close(self) -> None:
        """End the process, which has nothing to save."""
        self._process.kill()
        self._process.wait()
        for stream in (self._requests, self._answers, self.log):
            with contextlib.suppress(OSError):  # what was still in a buffer is of no interest
                stream.close()
