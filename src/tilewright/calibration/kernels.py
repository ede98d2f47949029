"""Whole kernels: calling one, meeting of threads, transforms of Winograd."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import cycle, islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tilewright.build import build
from tilewright.calibration.measure import Probe
from tilewright.calibration.streams import threads_of
from tilewright.runtime import Kernel
from tilewright.target import Target
from tilewright.tensor import ir as tir
from tilewright.tensor.build import compute, func, placeholder
from tilewright.tensor.library.elementwise import add
from tilewright.tensor.library.tiles import Tiles
from tilewright.tensor.library.winograd import transformed_data

__all__ = ["STEP", "kernels", "meeting_counts"]

STEP: Final = "step"
TRANSFORMED: Final = Tiles((3, 3), (4, 4))
"""F(4×4, 3×3), whose transform of the data is measured."""
_TILES: Final = (3, 5)
"""Down and across, of the data of a transform."""
_CHANNEL_VECTORS: Final = 4
_STEP_NS: Final = 20_000
_MEETING_SECONDS: Final = 0.00001
"""Of a turn: whoever waits for a thread that a neighbour keeps from running waits for long."""

Array = NDArray[Any]


def kernels(target: Target) -> Iterator[tuple[str, Probe]]:
    """All probes that are kernels of one kind."""
    yield STEP, _step(target)
    for threads in meeting_counts(target):
        probe = _meeting(target, threads)
        if probe is not None:
            yield f"meeting of {threads}", probe
    yield "transform", _transform(target)


def _step(target: Target) -> Probe:
    """A kernel of one vector, called as models do: not from Python."""
    kernel = build(add(1, target.lanes(4)), target, 1)
    arrays = [np.zeros((1, target.lanes(4)), np.float32) for _ in range(3)]

    def run(times: int) -> float:
        return 1e-9 * times * kernel.time(arrays, repeat=1, min_ns=_STEP_NS)[0]

    return Probe(run, 1)


def meeting_counts(target: Target) -> list[int]:
    """One thread, two, and all; nothing where there is but one."""
    every = threads_of(target)
    return sorted({1, 2, every}) if every > 1 else []


def _meeting(target: Target, threads: int) -> Probe | None:
    """Rows in reverse, forth and back: every thread reads what another one has written.

    Half of the first cache is as little as is worth sharing. None where a recipe does not share it.
    """
    eager = replace(target.machine, barrier_cycles=1e-3)
    rows = max(64, 2 * threads)
    shape = rows, max(16, target.cache(1).size_bytes // 2 // 4 // rows)
    source = placeholder("A", shape)
    turned = compute("C", shape, lambda i, j: source[rows - 1 - i, j] + 1.0)
    kernel = build(func("turned", [source], [turned]), replace(target, model=eager), threads)
    if kernel.threads != threads:
        return None
    there, back = (np.zeros(shape, np.float32) for _ in range(2))

    def run(times: int) -> None:
        for _ in range(times):
            kernel(there, back)
            kernel(back, there)

    return Probe(run, 2, _MEETING_SECONDS, turns=24)


def _transform(target: Target) -> Probe:
    """Data of F(4×4, 3×3) in the second cache; a unit is a vector of an element of a tile."""
    channels = _CHANNEL_VECTORS * target.lanes(4)
    down, across = (n * m for n, m in zip(_TILES, TRANSFORMED.results, strict=True))
    border = [taps - 1 for taps in TRANSFORMED.taps]
    source = placeholder("X", (1, down + border[0], across + border[1], channels))
    made = transformed_data(source, TRANSFORMED, (tir.Const(down), tir.Const(across)))
    kernel = build(func("transform", [source], [made]), target, 1)
    data = np.zeros([tir.int_value(d) or 1 for d in source.shape], np.float32)
    result = kernel(data)
    units = math.prod(_TILES) * TRANSFORMED.elements * _CHANNEL_VECTORS
    return Probe(partial(_paired, kernel, cycle([(data, result)])), units)


def _paired(kernel: Kernel, pairs: Iterator[tuple[Array, Array]], times: int) -> None:
    for source, result in islice(pairs, times):
        kernel(source, result)
