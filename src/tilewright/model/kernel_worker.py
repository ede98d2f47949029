"""The other end of `kernel_workers`: a process that compiles kernels until nobody asks any more.

    python -m tilewright.model.kernel_worker

A line with the target as JSON comes first, then a line for each kernel; for each, the length of an
answer and the kernel as the store keeps it. An empty answer means that it could not be made here:
whoever asked makes it again, and sees the error.
"""

from __future__ import annotations

import json
import signal
import struct
import sys
from typing import Any

from tilewright.errors import TilewrightError
from tilewright.model.kernel_store import encode
from tilewright.pipeline import Pipeline
from tilewright.schedule.recipes.contraction.space import ContractionPoint
from tilewright.schedule.recipes.windows.channel_space import ChannelPoint
from tilewright.schedule.recipes.windows.line_space import LinePoint
from tilewright.target import Target
from tilewright.tensor.parser import parse

__all__ = ["LENGTH", "POINTS", "main"]

LENGTH = struct.Struct("<Q")
POINTS = {kind.__name__: kind for kind in (ContractionPoint, ChannelPoint, LinePoint)}


def main() -> None:
    """Answer until the input ends; an interrupt is for the process that asks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    target = Target.from_dict(json.loads(requests.readline()))
    for line in requests:
        data = _answer(json.loads(line), target)
        answers.write(LENGTH.pack(len(data)) + data)
        answers.flush()


def _answer(request: dict[str, Any], target: Target) -> bytes:
    point = request["point"]
    loops = None if point is None else POINTS[point[0]](**point[1])
    pipeline = Pipeline(target, request["threads"], "draft", request["constants"], loops=loops)
    try:
        return encode(pipeline.compiled(parse(request["program"]))) or b""
    except TilewrightError:
        return b""


if __name__ == "__main__":
    main()
