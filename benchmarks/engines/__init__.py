"""One module per engine; each is imported in a process of its own and gives the same few names.

    PEER: bool                        counts as a peer to be compared with
    def start(threads) -> versions    set the thread count; ImportError = not installed
    def variants(workload) -> dict    the ways this engine can do it: name → builder

A builder takes the input arrays and gives a `Runner`. An engine with several ways tries each of
them in the first rounds and goes on with its fastest, so that peers are met at their best. A
workload with a `path` is a file of ONNX: a whole model, or one layer (`benchmarks.layers`).

An engine whose memory and time to load a model are of interest also has

    def open_model(workload, arrays, scratch) → what runs the model once
    def deploy(workload, scratch)     optional: in an earlier process, write what is opened then
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.numbers import Arrays

__all__ = ["ENGINES", "LIMITS", "NOTHING", "Builder", "Runner", "Variants", "empty"]

ENGINES: Final = (
    "tilewright", "numpy", "torch", "inductor", "onnxruntime", "openvino", "ncnn", "mnn",
    "peak", "memory",
)  # fmt: skip

LIMITS: Final = ("peak", "memory")
"""Not engines but what the machine can do at most, measured by turns like them."""


@dataclass(frozen=True, slots=True)
class Runner:
    """Something to time. `run` does the work once; `output` shows the result of the last run: an
    array, or the list of all outputs of a model.

    A runner that is `self_timed` returns its seconds from `run`, for `flops` operations. `settle`
    waits for what building left in the background, before anything is timed.
    """

    run: Callable[[], Any]
    output: Callable[[], NDArray[Any] | list[NDArray[Any]]]
    self_timed: bool = False
    flops: int = 0
    settle: Callable[[], None] = lambda: None


Builder = Callable[[Arrays], Runner]
Variants = dict[str, Builder]
NOTHING: Final[Variants] = {}


def empty(*shape: int) -> NDArray[np.float32]:
    """An output array on a 64-byte boundary, already mapped."""
    count = int(np.prod(shape))
    memory = np.zeros(count + 16, "f4")
    start = -memory.ctypes.data % 64 // 4
    return memory[start : start + count].reshape(shape)
