"""How fast this machine really is: FMA peak, and bandwidth of each memory level.

Each figure is the best of several short runs, on one core and on all cores together (threads that
start at a barrier; the kernels run without Python's lock). The whole takes less than three seconds.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from tilewright.llvm.probes import STREAMS, Probes, Stream, compile_probes
from tilewright.target import Bandwidth, Cache, Measured, Rate, Target
from tilewright.target import measured as stored

__all__ = ["FmaPeak", "calibrated", "measure"]

RUN_SECONDS: Final = 0.004
REPETITIONS: Final = 5
MIN_DRAM_BYTES: Final = 64 << 20
MAX_DRAM_BYTES: Final = 192 << 20
GAP_BYTES: Final = 17 * 64
"""Between the arrays of a stream, so that they do not meet in the same sets of a cache."""

Work = Callable[[], object]
Bytes = NDArray[np.uint8]


def calibrated(target: Target, folder: Path | None = None) -> Target:
    """The target with measured numbers: those kept in the cache, else measured now and kept."""
    found = stored.load(target, folder)
    if found is None:
        found = measure(target)
        stored.store(target, found, folder)
    return target.with_measured(found)


def measure(target: Target) -> Measured:
    """Measure `target`, which must be able to run here."""
    probes = compile_probes(target)
    counts = sorted({1, target.cores})
    memory = _touched_bytes(max(n * _working_set(target, None, n) for n in counts), target.cores)
    with ExitStack() as stack:
        teams = [stack.enter_context(Team(n)) for n in counts]
        peak = _rate(FmaPeak(target, probes, team).best() for team in teams)
        levels = []
        for cache in (*target.caches, None):
            rates = [
                _rate(
                    _stream(probes, stream, team, memory, _working_set(target, cache, team.threads))
                    for team in teams
                )
                for stream in STREAMS
            ]
            levels.append(Bandwidth(f"L{cache.level}" if cache else "DRAM", *rates))
    return Measured(peak, tuple(levels))


def _rate(figures: Iterable[float]) -> Rate:
    """The first figure is that of one core, the last that of all of them."""
    found = list(figures)
    return Rate(found[0], found[-1])


def _working_set(target: Target, cache: Cache | None, threads: int) -> int:
    """Bytes that each thread walks: half of its share of the cache, or (None) far more than all."""
    if cache is not None:
        below = target.cache(cache.level - 1) if cache.level > 1 else None
        return max(cache.share_bytes // 2, 2 * below.share_bytes if below else 0)
    last = target.caches[-1]
    total = last.size_bytes * math.ceil(target.cores / last.shared_by)
    return max(MIN_DRAM_BYTES, min(4 * total, MAX_DRAM_BYTES), 2 * total) // threads


def _touched_bytes(size: int, threads: int) -> Bytes:
    """Memory for all threads, aligned to pages and already mapped."""
    memory = np.ones(size + threads * 4 * GAP_BYTES + 4096, "u1")
    return memory[-memory.ctypes.data % 4096 :]


def _stream(probes: Probes, stream: Stream, team: Team, memory: Bytes, size: int) -> float:
    """Best GB/s of a stream over `size` bytes per thread."""
    each = size // stream.arrays // probes.step_bytes * probes.step_bytes
    run = probes.streams[stream.name]
    # A stream may touch a few bytes of an array that it does not walk; the gaps are there for it.
    span = stream.arrays * each + 4 * GAP_BYTES
    starts = [int(memory.ctypes.data) + thread * span for thread in range(team.threads)]
    places = [[start + i * (each + GAP_BYTES) for i in range(stream.arrays)] for start in starts]
    places = [(place + [place[-1] + each] * 2)[:3] for place in places]

    def time_of(repeats: int) -> float:
        return team.time([partial(run, repeats, each, *place) for place in places])

    repeats = _calibrate_count(time_of, RUN_SECONDS)
    best = min(time_of(repeats) for _ in range(REPETITIONS))
    return repeats * each * stream.arrays * team.threads / best / 1e9


class Team:
    """Threads that start together at a barrier and are kept between runs; one is the caller's."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._barrier = threading.Barrier(threads)
        self._pool = ThreadPoolExecutor(threads)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def time(self, works: Iterable[Work]) -> float:
        """Seconds from the first start to the last end of one piece of work per thread."""
        # On the thread of the caller, a single core is the one that other measurements see, too.
        run = map if self.threads == 1 else self._pool.map
        spans = list(run(self._span, works))
        return (max(end for _, end in spans) - min(start for start, _ in spans)) / 1e9

    def _span(self, work: Work) -> tuple[int, int]:
        self._barrier.wait()
        start = time.perf_counter_ns()
        work()
        return start, time.perf_counter_ns()


class FmaPeak:
    """An FMA-only loop on all threads of a team; each `run` gives the GFLOP/s of a short turn."""

    def __init__(self, target: Target, probes: Probes, team: Team) -> None:
        self._probes, self._team = probes, team
        # With x = y = 0.999 every accumulator tends to 999: no overflow, no denormal numbers.
        shape = (team.threads, target.vector_registers + 2, target.lanes(4))
        self._data = np.full(shape, 0.999, "f4")
        self._turns = _calibrate_count(self._time, RUN_SECONDS)

    def run(self) -> float:
        """GFLOP/s of all threads together in one turn."""
        flops = self._turns * self._probes.fma_flops * self._team.threads
        return flops / self._time(self._turns) / 1e9

    def best(self, repetitions: int = 2 * REPETITIONS) -> float:
        """The highest of several turns."""
        return max(self.run() for _ in range(repetitions))

    def _time(self, turns: int) -> float:
        addresses = (rows.ctypes.data for rows in self._data)
        return self._team.time([partial(self._probes.fma, turns, a) for a in addresses])


def _calibrate_count(time_of: Callable[[int], float], seconds: float) -> int:
    """How many repetitions take about this long."""
    count = 1
    while (elapsed := time_of(count)) < seconds / 2:
        count = max(count + 1, int(count * min(16.0, seconds / max(elapsed, 1e-9))))
    return count
