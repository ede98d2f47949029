"""The process of one engine: reads requests, one JSON object per line, and answers each in turn.

It dies with its parent, even while it is stopped. Whatever an engine prints goes to the log, never
into the protocol, which has two pipes of its own.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import sys
import time
import traceback
from typing import Any, Final

import numpy as np

from tilewright.contest.engines import ENGINES, Runner

SAMPLE_SECONDS: Final = 40e-6
"""A sample holds as many calls as fill this time, so that the clock costs next to nothing."""
MAX_SAMPLES: Final = 2000
PR_SET_PDEATHSIG: Final = 1


class Worker:
    """An engine, and the model that it has open."""

    def __init__(self, engine: str, threads: int) -> None:
        self.engine, self.threads = engine, threads
        self.runner: Runner | None = None
        self.feeds: dict[str, Any] = {}

    def load(self, model: str, inputs: str, names: list[str]) -> dict[str, Any]:
        """Open a model; `inputs` is a file with its arrays, in the order of `names`."""
        start = time.perf_counter()
        try:
            with np.load(inputs, allow_pickle=False) as arrays:
                pairs = zip(names, arrays.files, strict=True)
                self.feeds = {name: np.require(arrays[key], None, "C") for name, key in pairs}
            self.runner = ENGINES[self.engine](model, self.feeds, self.threads)
            self.runner.run()
        except Exception as problem:  # noqa: BLE001  (an engine may fail in any way it likes)
            traceback.print_exc()
            return {"problem": f"{type(problem).__name__}: {problem}"[:500]}
        return {"version": self.runner.version, "load_s": time.perf_counter() - start}

    def turn(self, seconds: float) -> dict[str, Any]:
        """Run for about this long; seconds per call. What comes first warms up, uncounted."""
        assert self.runner is not None
        run = self.runner.run
        each = min(_sample(run, 1), _sample(run, 1))
        end = time.perf_counter() + seconds / 4
        while time.perf_counter() < end:
            each = min(each, _sample(run, 1))
        calls = max(1, round(SAMPLE_SECONDS / max(each, 1e-9)))
        samples: list[float] = []
        end = time.perf_counter() + seconds
        while not samples or (time.perf_counter() < end and len(samples) < MAX_SAMPLES):
            samples.append(_sample(run, calls))
        return {"samples": samples}

    def save(self, path: str) -> dict[str, Any]:
        """Write the results of one more run to a file."""
        assert self.runner is not None
        outputs = [np.asarray(array) for array in self.runner.outputs()]
        np.savez(path, *outputs)
        return {"count": len(outputs)}


def _sample(run: Any, calls: int) -> float:
    start = time.perf_counter_ns()
    for _ in range(calls):
        run()
    return (time.perf_counter_ns() - start) / calls / 1e9


def main(name: str, threads: int, request_fd: int, answer_fd: int) -> None:
    """Serve requests until the pipe closes."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        # The last CPUs: the first one tends to serve the interrupts of the machine.
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-threads:])
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.putenv(variable, str(threads))
    worker = Worker(name, threads)
    with os.fdopen(request_fd) as requests, os.fdopen(answer_fd, "w", buffering=1) as answers:
        gc.disable()
        for line in requests:
            request = json.loads(line)
            answer = getattr(worker, request.pop("do"))(**request)
            answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
