"""Reading from each level of memory, on one core and on all: kernels of the runtime's own pool.

A call takes a tenth of a millisecond, and the next one goes on where it ended: what is read beyond
the caches is never there when its turn comes again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import cycle, islice
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from tilewright.abi import ParamSpec
from tilewright.calibration.measure import TURNS, Probe
from tilewright.dtypes import u8
from tilewright.llvm.calibrate import PAGE_BYTES
from tilewright.llvm.probes import UNROLL, Walk, compile_walks
from tilewright.runtime import Kernel
from tilewright.runtime.pool import usable_cpus
from tilewright.target import Level, Target
from tilewright.target.machine import nominal

__all__ = ["EXCEEDED", "Memory", "rotating", "streams", "threads_of"]

EXCEEDED: Final = "exceeded"
"""A walk of one core around as much as the last cache is large."""

CALL_CYCLES: Final = 300_000
"""Of a call, about: the threads meet in a hundredth of it."""
_LEAST_BYTES, _MOST_BYTES = 64 << 20, 256 << 20
"""Of memory that is beyond the caches of a core; more takes too long to be touched."""
_MOST_NEAR: Final = 8 << 20
"""Of a cache that is walked by one core."""
_GAP_BYTES: Final = 17 * 64
"""Behind the part of a thread, for what its walk writes."""

Bytes = NDArray[np.uint8]
Item = TypeVar("Item")


def threads_of(target: Target) -> int:
    """All cores that this process may keep busy."""
    return max(1, min(target.cores, usable_cpus()))


class Memory:
    """Memory that no cache holds, and how far it was read.

    Whoever streams through it goes on where the last one ended: nobody finds what another one has
    just read, and all of it is read before anything is read again.
    """

    def __init__(self, size_bytes: int) -> None:
        room = np.ones(size_bytes + PAGE_BYTES, "u1")
        start = -room.ctypes.data % PAGE_BYTES
        self.bytes: Bytes = room[start : start + size_bytes]
        self._near: Bytes = room[:0]
        self._read = 0

    def near(self, size_bytes: int) -> Bytes:
        """So many bytes of other memory, the same ones every time, for what stays in a cache."""
        if size_bytes > len(self._near):
            room = np.ones(size_bytes + PAGE_BYTES, "u1")
            start = -room.ctypes.data % PAGE_BYTES
            self._near = room[start : start + size_bytes]
        return self._near[:size_bytes]

    @classmethod
    def beyond(cls, target: Target) -> Memory:
        """Several times what the caches of a core hold, as far as that can be touched in time."""
        size = 4 * target.caches[-1].size_bytes
        return cls(min(max(_LEAST_BYTES, size), _MOST_BYTES))

    def pieces(self, size_bytes: int, items: Sequence[Item]) -> Iterator[Item]:
        """Without end: the item of each next piece of so many bytes; there is one for each."""
        while True:
            number = -(-self._read // size_bytes)
            if number >= len(items):
                number = 0
            self._read = (number + 1) * size_bytes
            yield items[number]


def streams(target: Target, memory: Memory) -> Iterator[tuple[str, Probe]]:
    """Probes by level and by who reads; a unit is a byte, of all threads together."""
    every = threads_of(target)
    walks, counts = {}, {"one": 1, **({"all": every} if every > 1 else {})}
    for number, level in enumerate(nominal(target).levels, 1):
        for who, threads in counts.items():
            walk = _walk(target, level, number, len(memory.bytes) // 4 // threads)
            if threads * walk.span <= 2 * _MOST_BYTES:
                walks[f"{level.name} {who}"] = walk
    around = _around(target)
    if around.span <= _LEAST_BYTES:
        walks[f"{EXCEEDED} one"] = around
    symbols = {name: name.replace(" ", "_") for name in walks}
    code = compile_walks(target, {symbols[name]: walk for name, walk in walks.items()})
    for name, walk in walks.items():
        threads = counts[name.split()[-1]]
        size = threads * walk.span
        param = ParamSpec("memory", u8, (size,))
        address = code.address(symbols[name])
        kernel = Kernel(address, (param,), threads=threads, name=name, keep_alive=code)
        if name.startswith("DRAM"):
            whole = memory.bytes[: len(memory.bytes) // size * size]
            parts = memory.pieces(size, list(whole.reshape(-1, size)))
        else:
            parts = cycle([memory.near(size)])
        run = partial(rotating, kernel, parts, ())
        yield name, Probe(run, _moved(walk, threads), turns=TURNS * min(2, threads))


def rotating(kernel: Kernel, parts: Iterator[Any], others: Sequence[Any], times: int) -> None:
    """Call a kernel with the next parts of some memory, beside other arrays."""
    for part in islice(parts, times):
        kernel(part, *others)


def _moved(walk: Walk, threads: int) -> int:
    return threads * walk.repeats * walk.bytes


def _share(target: Target, number: int) -> int:
    """Half of what one core has of a cache; less of a large one, but well beyond the next."""
    caches = target.caches
    half = caches[number - 1].share_bytes // 2
    return max(min(half, _MOST_NEAR), 2 * caches[number - 2].share_bytes) if number > 1 else half


def _around(target: Target) -> Walk:
    """A walk through twice what a core may count on of the last cache, beside something else."""
    step = UNROLL * target.vector_bytes
    size = target.caches[-1].share_bytes // step * step
    return Walk(size, math.ceil((size + _GAP_BYTES) / step) * step, 1)


def _walk(target: Target, level: Level, number: int, most_bytes: int) -> Walk:
    """A walk of a thread through its part of a cache, or through so many bytes at most beyond."""
    step = UNROLL * target.vector_bytes
    wanted = CALL_CYCLES * level.read
    if level.size_bytes:
        size = _share(target, number)
        repeats = max(1, round(wanted / size))
    else:
        size, repeats = int(min(wanted, most_bytes)), 1
    size = size // step * step
    return Walk(size, math.ceil((size + _GAP_BYTES) / step) * step, repeats)
