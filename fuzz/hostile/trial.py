"""One mutant in a process of its own: what became of it, how long it took, what it touched.

The process is forked from one that has imported everything and compiled a model, so that a trial
costs milliseconds; it has limits of its own, and a hook of the interpreter sees every file that it
opens. A crash, a hang or an exhausted limit ends the trial alone.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

__all__ = ["Limits", "Outcome", "attempt", "only_a_run_follows"]

_counted: list[tuple[int, float]] = []
"""Memory and processor time, where limits end."""

RUNS: Final = b"runs\n"
"""What a trial writes first where a run begins."""

_pipe: list[int] = []

GOOD: Final = ("compiled", "ran", "refused", "loaded", "missed")


@dataclass(frozen=True)
class Limits:
    """What a trial may take: seconds of a processor, bytes beyond those of its start."""

    seconds: float = 5.0
    memory_bytes: int = 256 << 20
    file_bytes: int = 1 << 26
    """Of a file that it writes."""
    patience_s: float = 300.0
    """Seconds of the clock: other processes may take most of the processor."""


@dataclass
class Outcome:
    """How a trial ended: one of `GOOD`, or something that must not happen."""

    kind: str
    text: str = ""
    code: str = ""
    cpu_s: float = 0.0
    memory_bytes: int = 0
    touched: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        return self.kind in GOOD and not self.touched


def attempt(action: Callable[[], tuple[str, str]], allowed: list[Path], limits: Limits) -> Outcome:
    """Run an action apart; it gives one of `GOOD` and an error code.

    Files may be opened below `allowed`, and where modules are imported from.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        _be_child(action, allowed, limits, writer)
    os.close(writer)
    data = _read_all(reader, time.monotonic() + limits.patience_s)
    os.close(reader)
    if data is None:
        os.kill(child, signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    cpu = usage.ru_utime + usage.ru_stime
    is_run = data is not None and data.startswith(RUNS)
    data = data.removeprefix(RUNS) if data is not None else None
    if data is None:
        return Outcome("hung", f"after {limits.patience_s} s", cpu_s=cpu)
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        kind = "too slow" if name in ("SIGXCPU", "SIGKILL") else "crashed"
        if kind == "too slow" and is_run:
            return Outcome("ran", code="long")
        return Outcome(kind, f"{name} {data.decode(errors='replace')[-2000:]}", cpu_s=cpu)
    try:
        outcome = Outcome(**json.loads(data))
    except ValueError:
        return Outcome("crashed", f"status {status}: {data[-2000:]!r}", cpu_s=cpu)
    outcome.cpu_s = outcome.cpu_s or cpu
    if outcome.is_good and outcome.cpu_s > limits.seconds:
        outcome.kind = "too slow"
    if outcome.is_good and outcome.memory_bytes > limits.memory_bytes:
        outcome.kind = "too large"
    return outcome


def _read_all(reader: int, end: float) -> bytes | None:
    """What the child wrote until it closed its end; None if it takes too long."""
    data = b""
    while True:
        left = end - time.monotonic()
        if left <= 0 or not select.select([reader], [], [], left)[0]:
            return None
        piece = os.read(reader, 1 << 16)
        if not piece:
            return data
        data += piece


def _be_child(
    action: Callable[[], tuple[str, str]], allowed: list[Path], limits: Limits, writer: int
) -> None:
    touched: list[str] = []
    try:
        import faulthandler

        faulthandler.enable(os.fdopen(os.dup(writer), "wb", 0))
        before = _resident()
        seconds = int(limits.seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        space = _virtual() + (4 << 30)
        resource.setrlimit(resource.RLIMIT_AS, (space, space))
        resource.setrlimit(resource.RLIMIT_FSIZE, (limits.file_bytes, limits.file_bytes))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _watch(allowed, touched)
        _pipe.append(writer)
        outcome = _judged(action)
        peak, outcome.cpu_s = _counted[0] if _counted else (_peak(), 0.0)
        outcome.memory_bytes = max(0, peak - before)
        outcome.touched = touched[:8]
        os.write(writer, json.dumps(vars(outcome)).encode())
    finally:
        os._exit(0)


def only_a_run_follows() -> None:
    """Limits end here: a run may take whatever its model asks for."""
    _counted.append((_peak(), time.process_time()))
    os.write(_pipe[0], RUNS)


def _judged(action: Callable[[], tuple[str, str]]) -> Outcome:
    from tilewright.errors import ArtefactError, CallError, ModelError

    try:
        kind, code = action()
    except (ModelError, ArtefactError) as error:
        text = str(error)
        hidden = [c for c in text if c != "\n" and not c.isprintable()]
        if hidden or len(text) > 20_000:
            return Outcome("badly said", text[:500], error.code.id)
        return Outcome("refused", text[:300], error.code.id)
    except CallError as error:
        return Outcome("refused", str(error)[:300], error.code.id)
    except BaseException as error:  # noqa: BLE001  (anything else is a finding)
        code = getattr(getattr(error, "code", None), "id", type(error).__name__)
        return Outcome("wrong error", "".join(traceback.format_exception(error))[-3000:], str(code))
    return Outcome(kind, code=code)


def _watch(allowed: list[Path], touched: list[str]) -> None:
    """Note every file that is opened, removed or renamed outside of the folders that may be."""
    roots = [*(str(path.resolve()) for path in allowed), os.devnull]
    readable = [str(Path(p).resolve()) for p in (*sys.path, sys.prefix, sys.base_prefix) if p]
    readable += ["/proc", "/sys", "/usr/lib", "/usr/share", "/etc/localtime", "/lib"]
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in ("open", "os.remove", "os.rename", "os.mkdir", "os.truncate", "os.symlink"):
            return
        path = arguments[0]
        if isinstance(path, int) or path is None:
            return
        name = os.fsdecode(path)
        if not Path(name).is_absolute():
            return  # a step inside of a folder that is open, or of the model's own
        own = Path(name)
        if event in ("os.remove", "os.rename", "os.symlink"):  # of which none follows a link
            name = os.path.join(os.path.realpath(own.parent), own.name)  # noqa: PTH118
        else:
            name = os.path.realpath(name)
        if any(name == root or name.startswith(root + "/") for root in roots):
            return
        flags = arguments[2] if event == "open" and len(arguments) > 2 else writing
        is_read = event == "open" and not (isinstance(flags, int) and flags & writing)
        if is_read and any(name.startswith(root) for root in readable):
            return
        touched.append(f"{event} {name}")

    sys.addaudithook(hook)


def _resident() -> int:
    return _pages(1)


def _virtual() -> int:
    return _pages(0)


def _pages(column: int) -> int:
    found = Path("/proc/self/statm").read_text(encoding="ascii").split()[column]
    return int(found) * os.sysconf("SC_PAGE_SIZE")


def _peak() -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    return 0
