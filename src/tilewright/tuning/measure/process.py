"""The parent's end of a process that builds or measures: a question, an answer, a time limit.

Whatever happens there (a signal, a hang, an exit, garbage on the pipe) is a `GoneError` here, which
says what to answer; the process is ended then, with all that it started. Only a process that cannot
be started is an error of this one (U030).

Processes are started by one thread that lives as long as whoever asks for them: the kernel ends a
child whose parent is gone by the *thread* that started it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from typing import IO, Any, Final

from tilewright.errors import Code, TuneError
from tilewright.model.kernel_workers import PACKAGE_FOLDER
from tilewright.options import child_environment
from tilewright.tuning.measure.frames import HEAD, GarbageError, lengths, message, opened
from tilewright.tuning.measure.limits import Limits, ending, silence
from tilewright.tuning.measure.trial import CRASH

__all__ = ["GoneError", "Process"]

U030 = Code("U030", "a process that tunes cannot be started: {problem}")

CHUNK: Final = 1 << 20
LAST_WORDS: Final = 300
"""Characters of what a process said last."""


class GoneError(Exception):
    """A process is gone; `status` and `detail` are those of the trial that it was about."""

    def __init__(self, status: str, detail: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail


class Process:
    """`python -m module`, which answers one question after another (`child.py`)."""

    def __init__(self, module: str, limits: Limits) -> None:
        self.questions = 0
        self._log: IO[bytes] | None = None
        try:
            self._log = tempfile.TemporaryFile()  # noqa: SIM115  (closed in `close`)
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, str(os.getpid()), str(limits.memory_bytes)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                env=child_environment(PACKAGE_FOLDER),
                start_new_session=True,
            )
        except (OSError, ValueError) as problem:
            if self._log is not None:
                self._log.close()
            raise _not_started(str(problem)) from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)
        try:
            self._answer(limits.start_s)
        except GoneError as gone:
            raise _not_started(gone.detail) from None
        except BaseException:  # an interrupt must leave nothing behind
            self.close()
            raise

    @property
    def is_running(self) -> bool:
        """Whether it can be asked."""
        return self._process.poll() is None

    def ask(
        self, facts: dict[str, Any], data: bytes = b"", within_s: float = 60.0
    ) -> tuple[dict[str, Any], bytes]:
        """The answer to a question; `GoneError`, and no process any more, if there is none."""
        self.questions += 1
        deadline = time.monotonic() + within_s
        try:
            self._send(message({**facts, "within_s": within_s}, data), deadline, within_s)
            return self._answer(within_s)
        except GoneError:
            raise
        except BaseException:  # also an interrupt: a late answer must not meet the next question
            self.close()
            raise

    def close(self) -> None:
        """End the process and its group, whatever they do."""
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._log):
            with contextlib.suppress(OSError):
                assert stream is not None
                stream.close()

    def _send(self, data: bytes, deadline: float, within_s: float) -> None:
        rest = memoryview(data)
        while rest:
            self._wait(deadline, within_s, writes=True)
            try:
                rest = rest[os.write(self._to, rest[:CHUNK]) :]
            except BlockingIOError:
                continue
            except OSError:
                raise self._dead() from None

    def _answer(self, within_s: float) -> tuple[dict[str, Any], bytes]:
        deadline = time.monotonic() + within_s
        try:
            text, data = lengths(self._read(HEAD.size, deadline, within_s))
            facts = opened(self._read(text, deadline, within_s))
            return facts, self._read(data, deadline, within_s)
        except GarbageError as garbage:
            self.close()
            raise GoneError(CRASH, str(garbage)) from None

    def _read(self, size: int, deadline: float, within_s: float) -> bytes:
        found = bytearray()
        while len(found) < size:
            self._wait(deadline, within_s, writes=False)
            try:
                part = os.read(self._from, min(CHUNK, size - len(found)))
            except BlockingIOError:
                continue
            except OSError:
                part = b""
            if not part:
                raise self._dead()
            found += part
        return bytes(found)

    def _wait(self, deadline: float, within_s: float, *, writes: bool) -> None:
        left = max(0.0, deadline - time.monotonic())
        ours = [self._to] if writes else [self._from]
        if not any(select.select([] if writes else ours, ours if writes else [], [], left)):
            self.close()
            raise GoneError(*silence(within_s))

    def _dead(self) -> GoneError:
        """How it ended; one that only closed its pipe is ended."""
        try:
            code = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.close()
            return GoneError(CRASH, "it closed its pipe without an answer")
        words = self._last_words()
        self.close()
        return GoneError(*ending(code, words))

    def _last_words(self) -> str:
        assert self._log is not None
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, self._log.tell() - 4 * LAST_WORDS))
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        return lines[-1][-LAST_WORDS:] if lines else ""


def _not_started(problem: str) -> TuneError:
    hint = "free memory and processes; `python -m tilewright doctor` looks at the installation"
    return TuneError(U030, {"problem": problem}, hint=hint)
