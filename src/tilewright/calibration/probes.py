"""What is measured: loops of single instructions, streams over memory, products, whole kernels.

Units are those in which a figure is wanted: instructions, bytes, register tiles, calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tilewright.calibration.kernels import kernels
from tilewright.calibration.measure import Probe
from tilewright.calibration.products import products
from tilewright.calibration.streams import Memory, streams
from tilewright.llvm.instruction_loops import compile_loops
from tilewright.llvm.vector_loops import compile_vector_loops
from tilewright.target import Target

__all__ = ["probes_of"]

_SCRATCH_BYTES: Final = 4096
_LOOP_SECONDS: Final = 0.00005
"""Of a turn of a loop that touches no memory to speak of."""


def probes_of(target: Target) -> dict[str, Probe]:
    """All probes, ready to run on this machine."""
    memory = Memory.beyond(target)
    return {
        **dict(_instructions(target)),
        **dict(streams(target, memory)),
        **dict(products(target, memory)),
        **dict(kernels(target)),
    }


def _instructions(target: Target) -> Iterator[tuple[str, Probe]]:
    room = np.ones(2 * _SCRATCH_BYTES, "u1")
    address = room.ctypes.data + -room.ctypes.data % _SCRATCH_BYTES
    for name, loop in {**compile_loops(target), **compile_vector_loops(target)}.items():
        run = partial(_looped, loop.run, address, room)
        yield name, Probe(run, loop.per_turn, _LOOP_SECONDS)


def _looped(
    run: Callable[[int, int], None], address: int, room: NDArray[np.uint8], times: int
) -> None:
    """A loop over memory that lives as long as the probe."""
    assert room.size
    run(times, address)
