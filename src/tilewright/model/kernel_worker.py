"""The other end of `kernel_workers`: a process that compiles kernels until nobody asks any more.

    python -m tilewright.model.kernel_worker

A line with the target as JSON comes first, then a line for each kernel; for each, the length of an
answer and the kernel as the store keeps it. An empty answer means that it could not be made here:
whoever asked makes it again, and sees the error.
"""

from __future__ import annotations

import gc
import json
import signal
import struct
import sys
from typing import Any

# What others import when they need it: here, a kernel will come for sure.
import tilewright.llvm.emit
import tilewright.llvm.interface
import tilewright.llvm.machine  # noqa: F401
from tilewright.errors import TilewrightError
from tilewright.model.kernel_store import encode
from tilewright.pipeline import Compiled, Pipeline
from tilewright.schedule.points import point_of, points_of
from tilewright.schedule.source import ScheduleSource
from tilewright.target import Target
from tilewright.tensor.parser import parse

__all__ = ["LENGTH", "compiled_for", "main"]

LENGTH = struct.Struct("<Q")


def main() -> None:
    """Answer until the input ends; an interrupt is for the process that asks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.set_threshold(100_000, 50, 100)  # programs are trees: looking for cycles finds few
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    target = Target.from_dict(json.loads(requests.readline()))
    for line in requests:
        data = _answer(json.loads(line), target)
        answers.write(LENGTH.pack(len(data)) + data)
        answers.flush()


def _answer(request: dict[str, Any], target: Target) -> bytes:
    try:
        return encode(compiled_for(request, target)) or b""
    except TilewrightError:
        return b""


def compiled_for(
    request: dict[str, Any], target: Target, source: ScheduleSource | None = None
) -> Compiled:
    """The kernel that a request (`kernel_workers.request_of`) is about.

    It is scheduled as the request says, or by another source.
    """
    loops = None if request["loops"] is None else point_of(request["loops"])
    schedule = source or request["schedule"]
    about = target, request["threads"], schedule, request["constants"]
    points = points_of(request["points"])
    pipeline = Pipeline(*about, loops=loops, points=points, of_model=True)  # type: ignore[arg-type]
    return pipeline.compiled(parse(request["program"]))


if __name__ == "__main__":
    main()
