"""The process of one engine: reads requests, one JSON object per line, and answers each in turn.

It dies with its parent, even while it is stopped. Whatever an engine prints goes to the log, never
into the protocol, which has two pipes of its own.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import signal
import statistics
import sys
import time
import traceback
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from benchmarks import kinds
from benchmarks.engines import Builder, Runner
from benchmarks.memory import Memory

SAMPLE_SECONDS: Final = 40e-6
"""A sample holds as many calls as fill this time, so that the clock costs less than 0.2 %."""
FOOTPRINT_RUNS: Final = 3
PR_SET_PDEATHSIG: Final = 1


@dataclass
class Worker:
    """The engine, and the workload that is loaded at present."""

    engine: Any
    workload: kinds.AnyWorkload | None = None
    expected: Any = None
    arrays: dict[str, Any] = field(default_factory=dict)  # kept: engines hold their addresses alone
    runners: dict[str, Runner] = field(default_factory=dict)

    def load(self, workload: dict[str, Any], reference: str | None) -> dict[str, Any]:
        """Build every variant, and check its result before anything is timed."""
        self.unload()
        self.workload = kinds.read(workload)
        self.expected = kinds.read_reference(reference)
        self.arrays = kinds.inputs(self.workload)
        builders = self.engine.variants(self.workload)
        return {"variants": {name: self._build(name, b) for name, b in builders.items()}}

    def _build(self, name: str, builder: Builder) -> dict[str, Any]:
        start = time.perf_counter()
        try:
            runner = builder(self.arrays)
            runner.run()
            prepare_ms = 1e3 * (time.perf_counter() - start)
            runner.settle()
            error = self._error(runner)
        except Exception as problem:  # noqa: BLE001 (an engine may fail in any way it likes)
            traceback.print_exc()
            return {"state": "failed", "why": _reason(problem)}
        if self.workload and self.workload.group == "compile":
            runner = Runner(lambda: builder(self.arrays), runner.output)
        self.runners[name] = runner
        facts = {"prepare_ms": prepare_ms, "flops": runner.flops}
        return {"state": self._state(error), "error": error, **facts}

    def _error(self, runner: Runner) -> float:
        if self.workload is None or self.expected is None or runner.self_timed:
            return 0.0
        return kinds.error_of(self.workload, runner.output(), self.expected)

    def _state(self, error: float) -> str:
        tolerance = kinds.tolerance(self.workload) if self.workload else 0.0
        return "ok" if error <= tolerance else "wrong"

    def turn(self, variant: str, seconds: float) -> dict[str, Any]:
        """Run for about this long; what comes first warms the caches and is not counted.

        A call longer than the turn is made once to warm up and once to be counted.
        """
        runner = self.runners[variant]
        each = _warm_up(runner, seconds / 4)
        calls = 1 if runner.self_timed else max(1, round(SAMPLE_SECONDS / max(each, 1e-9)))
        fewest = 3 if each < seconds else 1
        samples: list[float] = []
        end = time.perf_counter() + seconds
        while len(samples) < fewest or time.perf_counter() < end:
            samples.append(_sample(runner, calls))
        return {"min": min(samples), "median": statistics.median(samples), "count": len(samples)}

    def check(self, variant: str) -> dict[str, Any]:
        """Whether the result is still right after all those turns."""
        error = self._error(self.runners[variant])
        return {"state": self._state(error), "error": error}

    def deploy(self, workload: dict[str, Any], scratch: str) -> dict[str, Any]:
        """Make what another process can open, if this engine has such a thing."""
        prepare = getattr(self.engine, "deploy", None)
        return prepare(kinds.read(workload), scratch) if prepare else {}

    def footprint(self, workload: dict[str, Any], scratch: str) -> dict[str, Any]:
        """Seconds to open a model and memory to run it, for a process that did nothing yet."""
        model = kinds.read(workload)
        arrays = kinds.inputs(model)
        try:
            before, start = Memory.start(), time.perf_counter()
            run = self.engine.open_model(model, arrays, scratch)
            load_s = time.perf_counter() - start
            loaded, start = Memory.now(), time.perf_counter()
            run()
            first_s = time.perf_counter() - start
            for _ in range(FOOTPRINT_RUNS):
                run()
        except Exception as problem:  # noqa: BLE001 (an engine may fail in any way it likes)
            traceback.print_exc()
            return {"why": _reason(problem)}
        return {
            "load_s": load_s,
            "first_run_s": first_s,
            "loaded_bytes": loaded.resident - before.resident,
            "resident_bytes": Memory.now().resident - before.resident,
            "peak_bytes": Memory.now().peak - before.resident,
        }

    def held(self, workload: dict[str, Any], scratch: str, way: str) -> dict[str, Any]:
        """What a process holds that opened a model in one way and ran it once, all counted."""
        model = kinds.read(workload)
        arrays = kinds.inputs(model)
        gc.enable()  # as in any program
        try:
            start, busy = time.perf_counter(), time.process_time()
            run = getattr(self.engine, way)(model, arrays, scratch)
            times = {
                "seconds": time.perf_counter() - start,
                "cpu_seconds": time.process_time() - busy,
            }
            run()
        except Exception as problem:  # noqa: BLE001 (an engine may fail in any way it likes)
            traceback.print_exc()
            return {"why": _reason(problem)}
        return {**times, **asdict(Memory.now())}

    def unload(self) -> dict[str, Any]:
        """Forget the workload and free its memory."""
        self.runners.clear()
        self.arrays = {}
        self.expected = self.workload = None
        gc.collect()
        return {}


def _reason(problem: Exception) -> str:
    """One line of a table."""
    return " ".join(f"{type(problem).__name__}: {problem}".split())[:300]


def _warm_up(runner: Runner, seconds: float) -> float:
    """Run for this long, at least once; the fastest call in seconds."""
    times = [_sample(runner, 1)]
    end = time.perf_counter() + seconds - times[0]
    while time.perf_counter() < end:
        times.append(_sample(runner, 1))
    return min(times)


def _sample(runner: Runner, calls: int) -> float:
    """Seconds per call."""
    run = runner.run
    if runner.self_timed:
        return float(run())
    start = time.perf_counter_ns()
    for _ in range(calls):
        run()
    return (time.perf_counter_ns() - start) / calls / 1e9


def main(name: str, threads: int, request_fd: int, answer_fd: int) -> None:
    """Serve requests until the pipe closes."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # The last CPUs: the first one tends to serve the interrupts of the machine.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-threads:])
    with os.fdopen(request_fd) as requests, os.fdopen(answer_fd, "w", buffering=1) as answers:
        try:
            engine = importlib.import_module(f"benchmarks.engines.{name}")
            hello = {"versions": engine.start(threads), "peer": engine.PEER}
        except ImportError as problem:
            answers.write(json.dumps({"missing": str(problem)}) + "\n")
            return
        answers.write(json.dumps(hello) + "\n")
        worker = Worker(engine)
        gc.disable()
        for line in requests:
            request = json.loads(line)
            answer = getattr(worker, request.pop("do"))(**request)
            answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
