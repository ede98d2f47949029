"""How fast this machine really is: FMA peak, and bandwidth of each memory level.

Each figure is the best of several short runs, on one core and on all cores together (threads that
start at a barrier; the kernels run without Python's lock). The whole takes less than three seconds.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
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

__all__ = ["PAGE_BYTES", "FmaPeak", "MemoryStream", "Team", "calibrated", "measure"]

RUN_SECONDS: Final = 0.004
REPETITIONS: Final = 5
MIN_DRAM_BYTES: Final = 64 << 20
MAX_DRAM_BYTES: Final = 192 << 20
PAGE_BYTES: Final = 4096
GAP_BYTES: Final = 17 * 64
"""Between the arrays of a stream, so that they do not meet in the same sets of a cache."""
BUSY: Final = 0.75
"""All cores together below this share of one core times their number: others were using them."""

Work = Callable[[], object]
Bytes = NDArray[np.uint8]


def calibrated(target: Target, folder: Path | None = None) -> Target:
    """The target with measured numbers: those kept in the cache, else measured now and kept.

    Numbers of a machine that was busy meanwhile are given, but not kept.
    """
    found = stored.load(target, folder)
    if found is None:
        found = measure(target)
        if found.fma_gflops.all >= BUSY * target.cores * found.fma_gflops.one:
            stored.store(target, found, folder)
    return target.with_measured(found)


def measure(target: Target) -> Measured:
    """Measure `target`, which must be able to run here."""
    probes = compile_probes(target)
    counts = sorted({1, target.cores})
    memory = _touched_bytes(target, counts)
    with ExitStack() as stack:
        teams = [stack.enter_context(Team(n)) for n in counts]
        peak = _rate(FmaPeak(target, probes, team).best() for team in teams)
        levels = []
        for cache in (*target.caches, None):
            rates = [
                _rate(
                    MemoryStream(target, probes, team, stream, cache, memory).best()
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


def _touched_bytes(target: Target, counts: Sequence[int]) -> Bytes:
    """Memory for a stream beyond the caches, aligned to pages and already mapped."""
    size = max(n * (_working_set(target, None, n) + 4 * GAP_BYTES) for n in counts)
    memory = np.ones(size + PAGE_BYTES, "u1")
    return memory[-memory.ctypes.data % PAGE_BYTES :]


class MemoryStream:
    """A stream on all threads of a team, each in its share of `cache` (None: beyond all of them).

    Each `run` gives the GB/s of a short turn.
    """

    def __init__(
        self,
        target: Target,
        probes: Probes,
        team: Team,
        stream: Stream,
        cache: Cache | None = None,
        memory: Bytes | None = None,
    ) -> None:
        size = _working_set(target, cache, team.threads)
        each = size // stream.arrays // probes.step_bytes * probes.step_bytes
        self._memory = memory if memory is not None else _touched_bytes(target, [team.threads])
        # A stream may touch a few bytes of an array that it does not walk: the gaps are for it.
        span = stream.arrays * each + 4 * GAP_BYTES
        starts = [int(self._memory.ctypes.data) + thread * span for thread in range(team.threads)]
        places = [[s + i * (each + GAP_BYTES) for i in range(stream.arrays)] for s in starts]
        self._places = [(place + [place[-1] + each] * 2)[:3] for place in places]
        self._team, self._walk, self._each = team, probes.streams[stream.name], each
        self._repeats = _calibrate_count(self._time, RUN_SECONDS)
        self._bytes = self._repeats * each * stream.arrays * team.threads

    def run(self) -> float:
        """GB/s of all threads together in one turn."""
        return self._bytes / self._time(self._repeats) / 1e9

    def best(self, repetitions: int = REPETITIONS) -> float:
        """The highest of several turns."""
        return max(self.run() for _ in range(repetitions))

    @property
    def bytes_per_walk(self) -> int:
        """What all threads together move in one walk."""
        return self._bytes // self._repeats

    def walk(self, repeats: int) -> None:
        """So many walks on every thread."""
        self._time(repeats)

    def _time(self, repeats: int) -> float:
        walk, each = self._walk, self._each
        return self._team.time([partial(walk, repeats, each, *place) for place in self._places])


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

    def spin(self, turns: int) -> None:
        """So many turns of the loop on every thread."""
        self._time(turns)

    def _time(self, turns: int) -> float:
        addresses = (rows.ctypes.data for rows in self._data)
        return self._team.time([partial(self._probes.fma, turns, a) for a in addresses])


def _calibrate_count(time_of: Callable[[int], float], seconds: float) -> int:
    """How many repetitions take about this long."""
    count = 1
    while (elapsed := time_of(count)) < seconds / 2:
        count = max(count + 1, int(count * min(16.0, seconds / max(elapsed, 1e-9))))
    return count
